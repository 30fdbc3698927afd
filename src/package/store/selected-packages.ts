import { type PackageVariant, packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { type PackageVariantSet, packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../resource/kinds/sluice/package-policy.ts';
import type { DeepReadonly, ObjectKey, OwnerReference, Stored } from '../../resource/object/object.ts';
import { labelSelector, matchesLabels } from '../../resource/selector/label-selector.ts';
import { approvedMetadata } from '../model/record/object-metadata.ts';
import { type RecordedOwner, recordedOwners } from '../model/record/owners.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';

/*
 * Which packages policies, targets and plans select. What restricts a package selects it by all that names it. What lets controllers approve it
 * selects it only by what users decide who may approve, or may write variants and their sets: users who may edit a draft can write its labels, its owners
 * and its Kptfile.
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

/** True if a package selector matches a revision. An absent field is no restriction. */
export function selects(
  selector: PackageSelector,
  revision: LabelledPackage,
  repository: DeepReadonly<Repository> | undefined,
): boolean {
  if (selector.repositories !== undefined && !selector.repositories.includes(revision.key.repository)) return false;
  if (selector.packages !== undefined && !selector.packages.includes(revision.key.package)) return false;
  if (
    selector.repositorySelector !== undefined &&
    !matchesLabels(labelSelector(selector.repositorySelector), repository?.metadata.labels)
  ) {
    return false;
  }
  if (selector.packageSelector === undefined) return true;
  const labels = { ...revision.kptfile?.metadata?.labels, ...revision.record?.labels };
  return matchesLabels(labelSelector(selector.packageSelector), labels);
}

/** True if a selector matches also without the labels that users without the right to approve have written. */
export function selectsForApproval(
  selector: PackageSelector,
  revision: SelectedRevision,
  repository: DeepReadonly<Repository> | undefined,
): boolean {
  if (!selects(selector, revision, repository)) return false;
  if (selector.packageSelector === undefined) return true;
  const { labels } = approvedMetadata(revision.record);
  return matchesLabels(labelSelector(selector.packageSelector), labels);
}

/** True if a policy selects a revision. */
export function isSelectedBy(
  { spec: { selector } }: DeepReadonly<PackagePolicy>,
  revision: SelectedRevision,
  repository: DeepReadonly<Repository> | undefined,
  sets: (() => VariantSets) | undefined,
): boolean {
  return selects(selector, revision, repository) && isIn(selector.variantSets, () => sets?.().concerning);
}

/** True if a policy lets controllers approve, and selects a revision for that. */
export function mayApproveBy(
  { spec: { selector, approval, kptfileApprovals } }: DeepReadonly<PackagePolicy>,
  revision: SelectedRevision,
  repository: DeepReadonly<Repository> | undefined,
  sets: (() => VariantSets) | undefined,
): boolean {
  if (!approval.automatic && !kptfileApprovals) return false;
  return selectsForApproval(selector, revision, repository) && isIn(selector.variantSets, () => sets?.().owning);
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
export function ownsPackage(
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

/** The sets that own a variant. */
function setsOf({ metadata }: Stored<PackageVariant>): readonly OwnerReference[] {
  return (metadata.ownerReferences ?? []).filter(({ kind }) => kind === packageVariantSetKind.kind);
}

/** True if a set controls a variant. */
export function isVariantOf(variant: Stored<PackageVariant>, set: Stored<PackageVariantSet>): boolean {
  return setsOf(variant).some(({ uid, controller }) => controller === true && uid === set.metadata.uid);
}
