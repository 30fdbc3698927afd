import { type RecordedOwner, recordedOwners } from '../../src/package/model/record/owners.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { DEFAULT_NAMESPACE } from '../../src/resource/object/object.ts';
import { VARIANT_PREFIX } from '../draft-rates.ts';

type Upstream = PackageVariant['spec']['upstream'];

/** A revision that may be cloned, or the reason why there is none. */
export type FoundUpstream = { readonly revision: PackageRevision } | { readonly problem: string };

/** What to do about the downstream package. */
export type DownstreamPlan =
  /** There is no package: clone it. */
  | { readonly step: 'clone' }
  /** Bring an open revision up to date. */
  | { readonly step: 'keep'; readonly revision: PackageRevision; readonly adopt: readonly PackageRevision[] }
  /** Open a draft from a published revision, if anything would change. */
  | { readonly step: 'renew'; readonly revision: PackageRevision; readonly adopt: readonly PackageRevision[] }
  | { readonly step: 'none'; readonly problem: string };

const WORKSPACE = new RegExp(`^${VARIANT_PREFIX}(\\d+)$`);

/** The owner of the revisions of a variant. */
export function ownerOf(variant: PackageVariant & { readonly metadata: { readonly uid: string } }) {
  const { apiVersion, kind, metadata } = variant;
  const { name, uid, namespace = DEFAULT_NAMESPACE } = metadata;
  return { ...{ apiVersion, kind, name, uid, namespace }, controller: true } satisfies RecordedOwner;
}

export function ownersOf({ record }: PackageRevision): readonly RecordedOwner[] {
  return recordedOwners(record);
}

export function isOwnedBy(revision: PackageRevision, uid: string): boolean {
  return ownersOf(revision).some((owner) => owner.uid === uid);
}

/** The revision that a variant clones, among those of the upstream package. */
export function selectUpstream(upstream: Upstream, revisions: readonly PackageRevision[]): FoundUpstream {
  const { repo, package: path, revision: number, workspaceName } = upstream;
  const named = revisions.filter(
    ({ revision, key }) =>
      (number === undefined || number === 0 || revision === number) &&
      (workspaceName === undefined || workspaceName === '' || key.workspace === workspaceName),
  );
  const published = named.filter(isPublished).sort((a, b) => b.revision - a.revision);
  const [found] = published;
  if (found !== undefined) return { revision: found };
  const wanted = [
    ...(number === undefined || number === 0 ? [] : [`revision ${number}`]),
    ...(workspaceName === undefined || workspaceName === '' ? [] : [`workspaceName ${workspaceName}`]),
  ].join(' and ');
  const what = `upstream package revision ${repo}/${path}${wanted === '' ? '' : ` with ${wanted}`}`;
  const [open] = named;
  if (open !== undefined) return { problem: `${what} is ${open.lifecycle}: publish ${open.name} first` };
  const [other] = revisions;
  const next = other === undefined ? 'publish the package, or change spec.upstream' : 'change spec.upstream';
  return { problem: `could not find ${what}; ${next}` };
}

/** Decides about the downstream package of a variant by its revisions. */
export function planDownstream(
  variant: PackageVariant & { readonly metadata: { readonly uid: string } },
  revisions: readonly PackageRevision[],
): DownstreamPlan {
  const { uid } = variant.metadata;
  const { repo, package: path } = variant.spec.downstream;
  const holder = holderOf(revisions, variant);
  if (holder !== undefined)
    return {
      step: 'none',
      problem: `package ${path} in repository ${repo} belongs to ${holder.kind} ${placed(holder, variant)}; choose another spec.downstream, or delete that object`,
    };
  if (revisions.length === 0) return { step: 'clone' };
  const own = revisions.filter((revision) => isOwnedBy(revision, uid));
  const adopts = variant.spec.adoptionPolicy === 'adoptExisting';
  const real = revisions.filter((revision) => !isPlaceholder(revision));
  if (own.length === 0 && !adopts) return { step: 'none', problem: foreignProblem(variant, latestPublished(real)) };
  const adopt = adopts ? real.filter((revision) => !isOwnedBy(revision, uid)) : [];
  const [open] = [...own, ...adopt].filter((revision) => !isPublished(revision)).sort(byAge);
  if (open !== undefined) return { step: 'keep', revision: open, adopt };
  // Published by any user: what users did to the package is kept.
  const latest = latestPublished(real);
  if (latest === undefined)
    return {
      step: 'none',
      problem: `package ${path} in repository ${repo} has no revision with a version, only what is on its branch; publish one ("sluice repo adopt"), or choose another spec.downstream`,
    };
  if (latest.lifecycle === 'DeletionProposed')
    return {
      step: 'none',
      problem: `${latest.name} is proposed for deletion; reject the deletion ("sluice rpkg reject ${latest.name}"), or delete this variant`,
    };
  return { step: 'renew', revision: latest, adopt };
}

/** Why a package that exists is left alone. An earlier variant for it may have proposed its deletion at its end. */
function foreignProblem({ metadata, spec }: PackageVariant, latest: PackageRevision | undefined): string {
  const { repo, package: path } = spec.downstream;
  const what = `package ${path} exists in repository ${repo} and does not belong to this variant`;
  const set = setOf(metadata);
  // The set overwrites the fields of its variants.
  const [field, downstream] =
    set === undefined
      ? ['spec.adoptionPolicy', 'spec.downstream']
      : [`template.adoptionPolicy of its target in PackageVariantSet ${set}`, 'downstream there'];
  const adopt = `set ${field} to adoptExisting`;
  return latest?.lifecycle === 'DeletionProposed'
    ? `${what}, and ${latest.name} is proposed for deletion; to keep it, reject the deletion ("sluice rpkg reject ${latest.name}") and ${adopt}; otherwise choose another ${downstream}`
    : `${what}; ${adopt}, or choose another ${downstream}`;
}

/** The set that made a variant. */
export function setOf({ ownerReferences = [] }: PackageVariant['metadata']): string | undefined {
  return ownerReferences.find(({ kind, controller }) => kind === packageVariantSetKind.kind && controller)?.name;
}

/** The published revision with the highest number; undefined if none has one. */
export function latestPublished(revisions: readonly PackageRevision[]): PackageRevision | undefined {
  return revisions.filter((one) => isPublished(one) && one.revision > 0).sort((a, b) => b.revision - a.revision)[0];
}

/** True if one of the revisions is a draft or a proposal of the variant. */
export function hasOpenDraft(uid: string, revisions: readonly PackageRevision[]): boolean {
  return revisions.some((revision) => !isPublished(revision) && isOwnedBy(revision, uid));
}

/** The workspace of the next draft: the same one for the same revisions, so that a repeated attempt collides with the first one. */
export function nextWorkspace(revisions: readonly PackageRevision[]): string {
  const numbers = revisions.map(({ key }) => Number(WORKSPACE.exec(key.workspace)?.[1] ?? 0));
  return `${VARIANT_PREFIX}${Math.max(0, ...numbers) + 1}`;
}

/**
 * True for an earlier variant of the same name, such as that of the server from which this one was moved. One of another namespace may exist
 * beside it: two with the same name must not take a package from each other.
 */
export function isFormer({ kind, metadata, spec }: PackageVariant, owner: RecordedOwner): boolean {
  const { name, uid, namespace = DEFAULT_NAMESPACE } = metadata;
  if (owner.kind !== kind || owner.name !== name || owner.uid === uid) return false;
  return owner.namespace === undefined || owner.namespace === namespace || spec.adoptionPolicy === 'adoptExisting';
}

function placed({ namespace, name }: RecordedOwner, { metadata }: PackageVariant): string {
  return namespace === undefined || namespace === (metadata.namespace ?? DEFAULT_NAMESPACE)
    ? `${name}`
    : `${namespace}/${name}`;
}

/** The controlling owner of a package, if that is another object. */
function holderOf(revisions: readonly PackageRevision[], variant: PackageVariant): RecordedOwner | undefined {
  return revisions
    .flatMap((revision) => ownersOf(revision).filter(({ controller }) => controller === true))
    .find((owner) => owner.uid !== variant.metadata.uid && !isFormer(variant, owner));
}

/** The youngest first. */
function byAge(a: PackageRevision, b: PackageRevision): number {
  const [left, right] = [a.record?.createdAt ?? '', b.record?.createdAt ?? ''];
  if (left !== right) return left < right ? 1 : -1;
  return a.name < b.name ? 1 : -1;
}
