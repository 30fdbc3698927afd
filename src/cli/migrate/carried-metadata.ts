import type { OwnerReference } from '../../resource/object/object.ts';
import type { RevisionView } from './revision-view.ts';

/** Metadata of a package revision that Porch keeps outside of Git, and that Sluice lacks. */
export interface CarriedMetadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** With the uids of the cluster of Porch. */
  readonly owners: readonly OwnerReference[];
}

/** What `sluice` lacks of the metadata of `porch`; undefined if nothing. A value that Sluice has already wins, so that nothing is undone. */
export function carriedMetadata(porch: RevisionView, sluice: RevisionView): CarriedMetadata | undefined {
  const labels = missingOf(porch.labels, sluice.labels);
  const annotations = missingOf(porch.annotations, sluice.annotations);
  const known = new Set(sluice.owners.map(ownerId));
  const owners = porch.owners.filter((owner) => !known.has(ownerId(owner)));
  const count = Object.keys(labels).length + Object.keys(annotations).length + owners.length;
  return count === 0 ? undefined : { labels, annotations, owners };
}

/** `label team=a, owner PackageVariant/web`. Values of annotations can be long, and are left out. */
export function describeMetadata({ labels, annotations, owners }: CarriedMetadata): string {
  return [
    ...Object.entries(labels).map(([key, value]) => `label ${key}=${value}`),
    ...Object.keys(annotations).map((key) => `annotation ${key}`),
    ...owners.map(({ kind, name }) => `owner ${kind}/${name}`),
  ].join(', ');
}

/** An owner without its uid, which each server chooses itself. */
export function ownerId({ apiVersion, kind, name }: OwnerReference): string {
  return `${apiVersion.split('/')[0]} ${kind} ${name}`;
}

function missingOf(theirs: Readonly<Record<string, string>>, ours: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(theirs).filter(([key]) => !Object.hasOwn(ours, key)));
}
