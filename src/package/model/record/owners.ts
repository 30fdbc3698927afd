import type { OwnerReference } from '../../../resource/object/object.ts';
import type { RevisionRecord } from './record.ts';

/**
 * An owner in a record: an owner reference of Kubernetes with the namespace of the owner. A record is in Git, so that other namespaces and
 * other clusters that have registered the repository read it too, where a reference without its namespace would name an object that does not
 * exist, and the garbage collection would delete the revision. Others and earlier versions wrote records, so that parts may be missing.
 */
export interface RecordedOwner extends Partial<OwnerReference> {
  readonly namespace?: string | undefined;
}

type OwnersOf = Pick<RevisionRecord, 'ownerReferences'> | undefined;

export function recordedOwners(record: OwnersOf): readonly RecordedOwner[] {
  return (record?.ownerReferences ?? []) as readonly RecordedOwner[];
}

/** The owner references of a revision as its object in a namespace has them. */
export function ownersShownIn(namespace: string, record: OwnersOf): OwnerReference[] {
  return recordedOwners(record)
    .filter((owner) => !isElsewhere(owner, namespace))
    .map(({ namespace: _namespace, ...reference }) => reference as OwnerReference);
}

/** The owners in other namespaces, as text such as `PackageVariant team-a/web`. */
export function ownersElsewhere(namespace: string, record: OwnersOf): string[] {
  return recordedOwners(record)
    .filter((owner) => isElsewhere(owner, namespace))
    .map((owner) => `${owner.kind ?? 'object'} ${owner.namespace}/${owner.name}`);
}

/** The owners of a record after a client of a namespace wrote these references: those of other namespaces, which it does not see, stay. */
export function ownersWritten(
  namespace: string,
  record: OwnersOf,
  references: readonly OwnerReference[],
): NonNullable<RevisionRecord['ownerReferences']> {
  const before = recordedOwners(record);
  const others = before.filter((owner) => isElsewhere(owner, namespace));
  const written = references.map((reference) => {
    const known = before.find(({ uid }) => uid === reference.uid);
    // What an earlier version recorded may be of any namespace.
    if (known !== undefined && known.namespace === undefined) return { ...reference };
    return { ...reference, namespace };
  });
  return [...others.map((owner) => ({ ...owner })), ...written];
}

function isElsewhere(owner: RecordedOwner, namespace: string): boolean {
  return owner.namespace !== undefined && owner.namespace !== namespace;
}
