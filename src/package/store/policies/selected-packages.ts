import { type PackageVariant, packageVariantKind } from '../../../resource/kinds/porch/package-variant.ts';
import { type PackageVariantSet, packageVariantSetKind } from '../../../resource/kinds/porch/package-variant-set.ts';
import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../../resource/kinds/sluice/package-policy.ts';
import type { DeepReadonly, ObjectKey, OwnerReference, Stored } from '../../../resource/object/object.ts';
import { type LabelSelector, labelSelector, matchesLabels } from '../../../resource/selector/label-selector.ts';
import { approvedMetadata } from '../../model/record/object-metadata.ts';
import { type RecordedOwner, recordedOwners } from '../../model/record/owners.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';

/*
 * Which packages policies, plans and targets select. Users who may edit a draft write its Kptfile, labels and owners, so these must not decide who
 * approves it. The labels that count are those that users who may approve, or controllers, wrote on the object (`approvedMetadata`).
 *
 * - What restricts (gates, issuers, quorums, windows, freezes, soak times, limits, holds of plans) selects a package with or without what does not
 *   count: `selectsToRestrict`, `isSelectedBy`.
 * - What permits (automatic approval, break-glass, reviews that approve, waves of plans and their order) selects it only with and without:
 *   `selectsForApproval`, `isPermittedBy`.
 * - What decides about no approval takes labels as they are: `selects`. Targets select publications, whose Kptfile was approved and whose labels only
 *   users who may approve change; editors may propose themselves what is proposed automatically.
 */

/** The fields of a revision that policies select by. */
export type SelectedRevision = Pick<PackageRevision, 'key'> & Partial<Pick<PackageRevision, 'kptfile' | 'record'>>;

/** A package with the labels of its Kptfile and of its record. */
interface LabelledPackage {
  readonly key: PackageRevision['key'];
  readonly kptfile?:
    | { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> | undefined } | undefined }
    | undefined;
  readonly record?: { readonly labels?: Readonly<Record<string, string>> | undefined } | undefined;
}

/** A policy, or a plan in its form. */
export interface Selecting {
  readonly spec: Pick<DeepReadonly<PackagePolicy>['spec'], 'selector'>;
}

type PackageSelector = Omit<DeepReadonly<PackagePolicy>['spec']['selector'], 'variantSets'>;

/** Names of PackageVariantSets. */
export interface VariantSets {
  /** Those with a variant of this package, whichever object owns the revision. */
  readonly concerning: readonly string[];
  /** Those that exist, with a variant of this package that owns the revision. */
  readonly owning: readonly string[];
}

/** Reads the variants of a namespace and their sets. */
export interface VariantReader {
  variant(key: ObjectKey): Stored<PackageVariant> | undefined;
  /** The variants with this downstream package. */
  variantsOf(
    namespace: string,
    downstream: DeepReadonly<PackageVariant>['spec']['downstream'],
  ): readonly Stored<PackageVariant>[];
  set(key: ObjectKey): Stored<PackageVariantSet> | undefined;
}

type RepositoryObject = DeepReadonly<Repository> | undefined;

/** True if a package selector matches a revision with its labels as they are. An absent field is no restriction. */
export function selects(selector: PackageSelector, revision: LabelledPackage, repository: RepositoryObject): boolean {
  if (!selectsByName(selector, revision, repository)) return false;
  return requirementsOf(selector).every((one) => matchesLabels(one, allLabels(revision)));
}

/** True if each requirement of a selector is met with or without the labels that do not count: none of them takes a revision out. */
export function selectsToRestrict(
  selector: PackageSelector,
  revision: LabelledPackage,
  repository: RepositoryObject,
): boolean {
  if (!selectsByName(selector, revision, repository)) return false;
  const { labels } = approvedMetadata(revision.record);
  return requirementsOf(selector).every((one) => matchesLabels(one, allLabels(revision)) || matchesLabels(one, labels));
}

/** True if each requirement of a selector is met with and without the labels that do not count: none of them brings a revision in. */
export function selectsForApproval(
  selector: PackageSelector,
  revision: SelectedRevision,
  repository: RepositoryObject,
): boolean {
  if (!selects(selector, revision, repository)) return false;
  const { labels } = approvedMetadata(revision.record);
  return requirementsOf(selector).every((one) => matchesLabels(one, labels));
}

/** True if the fields of a selector that do not depend on labels of the package match. */
export function selectsByName(
  selector: PackageSelector,
  revision: Pick<LabelledPackage, 'key'>,
  repository: RepositoryObject,
): boolean {
  if (selector.repositories !== undefined && !selector.repositories.includes(revision.key.repository)) return false;
  if (selector.packages !== undefined && !selector.packages.includes(revision.key.package)) return false;
  return (
    selector.repositorySelector === undefined ||
    matchesLabels(labelSelector(selector.repositorySelector), repository?.metadata.labels)
  );
}

function requirementsOf({ packageSelector = {} }: PackageSelector): LabelSelector[] {
  return labelSelector(packageSelector).requirements.map((one) => ({ requirements: [one] }));
}

function allLabels({ kptfile, record }: LabelledPackage): Readonly<Record<string, string>> {
  return { ...kptfile?.metadata?.labels, ...record?.labels };
}

/** True if a policy or a plan selects a revision by what it restricts. */
export function isSelectedBy(
  { spec: { selector } }: Selecting,
  revision: SelectedRevision,
  repository: RepositoryObject,
  sets: (() => VariantSets) | undefined,
): boolean {
  return selectsToRestrict(selector, revision, repository) && isIn(selector.variantSets, () => sets?.().concerning);
}

/** True if a policy or a plan selects a revision by what it permits. */
export function isPermittedBy(
  { spec: { selector } }: Selecting,
  revision: SelectedRevision,
  repository: RepositoryObject,
  sets: (() => VariantSets) | undefined,
): boolean {
  return selectsForApproval(selector, revision, repository) && isIn(selector.variantSets, () => sets?.().owning);
}

/** True if a policy lets controllers approve. */
export function letsControllersApprove({ spec: { approval, kptfileApprovals } }: DeepReadonly<PackagePolicy>): boolean {
  return approval.automatic || kptfileApprovals;
}

/** True if one of the sets is among the wanted ones, or none is required. */
export function isIn(wanted: readonly string[] | undefined, sets: () => readonly string[] | undefined): boolean {
  return wanted === undefined || sets()?.some((name) => wanted.includes(name)) === true;
}

/** The sets that a revision belongs to, in a namespace. */
export function variantSetsOf(
  reader: VariantReader,
  { key, record }: SelectedRevision,
  namespace: string,
): VariantSets {
  const named = reader.variantsOf(namespace, { repo: key.repository, package: key.package });
  const owners = recordedOwners(record).flatMap(({ kind, name, uid }) => {
    const variant = kind === packageVariantKind.kind && name ? reader.variant({ namespace, name }) : undefined;
    // Another variant may have the name by now.
    return variant?.metadata.uid === uid ? (variant ?? []) : [];
  });
  return {
    concerning: [...named, ...owners].flatMap((variant) => setsOf(variant).map(({ name }) => name)),
    owning: named
      .filter((variant) => ownsPackage(variant, { key, record }))
      .flatMap((variant) => setsOf(variant).filter(({ controller }) => controller === true))
      .filter(({ name, uid }) => reader.set({ namespace, name })?.metadata.uid === uid)
      .map(({ name }) => name),
  };
}

/** True if a variant owns a revision of its downstream package, and no user without the right to approve wrote that. */
function ownsPackage(
  { metadata, spec: { downstream } }: Stored<PackageVariant>,
  { key, record }: Pick<SelectedRevision, 'key' | 'record'>,
): boolean {
  const isOwner = ({ kind, uid }: RecordedOwner) => kind === packageVariantKind.kind && uid === metadata.uid;
  return (
    downstream.repo === key.repository &&
    downstream.package === key.package &&
    approvedMetadata(record).owners.some(isOwner)
  );
}

/** The sets that own a variant. Its label of a set is for users: those who may change variants may remove it. */
export function setsOf({ metadata }: DeepReadonly<PackageVariant>): readonly OwnerReference[] {
  return (metadata.ownerReferences ?? []).filter(({ kind }) => kind === packageVariantSetKind.kind);
}
