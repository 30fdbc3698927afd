import { createHash } from 'node:crypto';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { type PackageDelivery, packageDeliveryKind } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../resource/object/object.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { packageKey } from '../selection/select-revisions.ts';

/** A package in the last delivered commit of a target. */
export interface DeliveredPackage {
  readonly repository: string;
  /** Path of the package in its repository. */
  readonly package: string;
  readonly revision: number;
  /** Of the revision; empty if it is not known. */
  readonly commit: string;
  /** The tree with the manifests; empty if it is not known. */
  readonly tree: string;
  /** True if the folder in the branch has changes of another writer, which stay. */
  readonly drifted?: true | undefined;
}

/** Label of the objects of a target; see `targetLabelValue`. */
export const TARGET_LABEL = 'sluice.dev/target';

const MAX_LABEL_CHARACTERS = 63;
/** 64 bits: a label only selects candidates, whose spec is compared. */
const LABEL_DIGEST_CHARACTERS = 16;
/** 128 bits: names of packages come from users, who could search for two with one digest. */
const NAME_DIGEST_CHARACTERS = 32;
/** Readable part of a name. */
const MAX_READABLE_CHARACTERS = 200;

/** The value of the label for a target: its name, or the beginning of a name that is too long for a label and a digest. */
export function targetLabelValue(target: string): string {
  if (target.length <= MAX_LABEL_CHARACTERS) return target;
  const start = trimEnd(target.slice(0, MAX_LABEL_CHARACTERS - LABEL_DIGEST_CHARACTERS - 1));
  return `${start}-${digestOf(target).slice(0, LABEL_DIGEST_CHARACTERS)}`;
}

/** The name of the object of a package: a DNS sub-domain. The digest alone distinguishes packages; the rest is for readers. */
export function packageDeliveryName(target: string, { repository, package: path }: PackageDelivery['spec']): string {
  const slug = path
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
  const readable = [target, slug]
    .filter((part) => part !== '')
    .join('.')
    .slice(0, MAX_READABLE_CHARACTERS);
  const digest = digestOf(JSON.stringify([target, repository, path]));
  return `${trimEnd(readable)}-${digest.slice(0, NAME_DIGEST_CHARACTERS)}`;
}

/** Cuts what may not precede a dash in a DNS label. */
function trimEnd(text: string): string {
  return text.replace(/[-.]+$/, '');
}

/** The object of a package. `deliveredAt` stays while the same revision is delivered. */
export function packageDeliveryOf(
  { metadata }: Stored<DeliveryTarget>,
  { repository, package: path, revision, commit, tree, drifted }: DeliveredPackage,
  folder: string,
  deliveredAt: string,
): PackageDelivery {
  const { apiVersion, kind } = packageDeliveryKind;
  const spec = { target: metadata.name, repository, package: path };
  // The group is that of the target.
  const owner = { apiVersion, kind: 'DeliveryTarget', name: metadata.name, uid: metadata.uid, controller: true };
  return {
    ...{ apiVersion, kind },
    metadata: {
      name: packageDeliveryName(metadata.name, spec),
      namespace: metadata.namespace ?? DEFAULT_NAMESPACE,
      labels: { [TARGET_LABEL]: targetLabelValue(metadata.name) },
      ownerReferences: [owner],
    },
    spec,
    status: { revision, commit, tree, folder, deliveredAt, ...(drifted === true ? { drifted } : {}) },
  };
}

/** True if the object belongs to this target, and not to an earlier one with its name. */
export function isOwnedBy({ metadata }: PackageDelivery, uid: string | undefined): boolean {
  return metadata.ownerReferences?.some((owner) => owner.controller === true && owner.uid === uid) === true;
}

/** What an object records; undefined for an object without a revision. */
export function deliveredIn({ spec, status }: PackageDelivery): DeliveredPackage | undefined {
  if (status === undefined) return undefined;
  const { revision, commit, tree, drifted } = status;
  const mark = drifted === true ? { drifted } : {};
  return { repository: spec.repository, package: spec.package, revision, commit, tree, ...mark };
}

/** True if two versions of an object record the same for the same target. */
export function isSameDelivery(one: PackageDelivery, other: PackageDelivery): boolean {
  return (
    sameValue(deliveredIn(one), deliveredIn(other)) &&
    sameValue(one.metadata.ownerReferences, other.metadata.ownerReferences)
  );
}

/** The number of packages in the last delivered commit of a target. */
export function deliveredCount(status: DeliveryTarget['status']): number {
  return status?.packages?.length ?? status?.packageCount ?? 0;
}

/** Of lists that readers keep: a list is replaced when a package changes. */
const digests = new WeakMap<readonly DeliveredPackage[], string>();

/** A text that is the same for the same packages, in this order. Computed once for a list, which must not change. */
export function packagesDigest(packages: readonly DeliveredPackage[]): string {
  const known = digests.get(packages);
  if (known !== undefined) return known;
  const parts = packages.map((one) => [
    ...[packageKey(one), one.revision, one.commit, one.tree],
    ...(one.drifted === true ? ['drifted'] : []),
  ]);
  const digest = digestOf(JSON.stringify(parts));
  digests.set(packages, digest);
  return digest;
}

/**
 * True if a status is about these packages. The objects of packages are written before the status of their target, so that a reader can see
 * packages of which the status, and the report of the engine in it, knows nothing yet.
 */
export function isAbout(status: DeliveryTarget['status'], packages: readonly DeliveredPackage[]): boolean {
  const digest = status?.packagesDigest;
  // Targets that list their packages in the status have none.
  return digest === undefined || digest === packagesDigest(packages);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
