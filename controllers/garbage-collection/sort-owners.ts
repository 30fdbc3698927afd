import type { Client } from '../../src/resource/client/client.ts';
import type { ObjectKey, OwnerReference, Stored } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import { awaitsDependents, type OwnerGraph, ownersOf } from './owner-graph.ts';

/**
 * The owners that have existed on this server. Some objects outlive the server of their owners, as packages do in Git: an owner
 * that this server has never seen does not count as deleted.
 */
export interface OwnerMemory {
  /** True if it applies to the owners of this object. */
  isFor(dependent: Stored): boolean;
  knows(uid: string): boolean;
  remember(uid: string): void;
}

export interface OwnerLookup {
  readonly client: Client;
  readonly registry: Pick<Registry, 'kindOf'>;
  readonly graph: OwnerGraph;
  /** True where an object that is not found may exist, such as a package of a repository that is not open. */
  readonly mayBeHidden?: (kind: Kind, key: ObjectKey) => boolean;
  readonly memory?: OwnerMemory;
}

/** An owner that does not exist, or of which that is unknown. */
export interface MissingOwner {
  readonly reference: OwnerReference;
  readonly reason: 'OwnerGone' | 'OwnerHidden' | 'OwnerKindUnknown' | 'OwnerRefInvalidNamespace';
  readonly message: string;
}

/** The owners of an object, by their effect on it. */
export interface SortedOwners {
  /** They exist. */
  readonly solid: readonly OwnerReference[];
  /** Their deletion completes as soon as their dependents are deleted. */
  readonly waiting: readonly OwnerReference[];
  readonly absent: readonly MissingOwner[];
  /** It is unknown whether they exist, so the object must stay. */
  readonly unclear: readonly MissingOwner[];
}

/** Looks up the owners of an object, each only in the place of its reference. */
export async function sortOwners(object: Stored, lookup: OwnerLookup): Promise<SortedOwners> {
  const solid: OwnerReference[] = [];
  const waiting: OwnerReference[] = [];
  const absent: MissingOwner[] = [];
  const unclear: MissingOwner[] = [];
  for (const reference of ownersOf(object)) {
    const found = await findOwner(object, reference, lookup);
    if (!('reason' in found)) (awaitsDependents(found) ? waiting : solid).push(reference);
    else if (found.isAbsent) absent.push(found);
    else unclear.push(found);
  }
  return { solid, waiting, absent, unclear };
}

async function findOwner(
  object: Stored,
  reference: OwnerReference,
  { client, registry, graph, mayBeHidden, memory }: OwnerLookup,
): Promise<Stored | (MissingOwner & { readonly isAbsent: boolean })> {
  const { namespace } = object.metadata;
  const { name, uid } = reference;
  const what = `${reference.kind}.${reference.apiVersion} ${JSON.stringify(name)}`;
  const missing = (reason: MissingOwner['reason'], isAbsent: boolean, message: string) => ({
    ...{ reference, reason, isAbsent, message },
  });
  const removed = missing('OwnerGone', true, `its owner ${what} was deleted`);
  const kind = registry.kindOf(reference);
  if (kind === undefined) {
    // The kind was removed after its objects.
    if (graph.wasDeleted(uid)) return removed;
    return missing('OwnerKindUnknown', false, `its owner ${what} is of a kind that is not served here; it stays`);
  }
  if (kind.namespaced && namespace === undefined)
    return missing('OwnerRefInvalidNamespace', false, `ownerRef ${what}, uid ${uid}, does not exist in namespace ""`);
  const key = { name, ...(kind.namespaced ? { namespace } : {}) };
  const owner = await client.find(kind, key);
  const remembers = memory?.isFor(object) === true ? memory : undefined;
  if (owner?.metadata.uid === uid) {
    remembers?.remember(uid);
    return owner;
  }
  const elsewhere = graph.get(uid);
  if (kind.namespaced && elsewhere !== undefined && elsewhere.metadata.namespace !== namespace) {
    const place = JSON.stringify(namespace);
    // Git has the owners of packages, which several namespaces can show: the owner of another one does not count here.
    return missing(
      'OwnerRefInvalidNamespace',
      remembers === undefined,
      `ownerRef ${what}, uid ${uid}, does not exist in namespace ${place}`,
    );
  }
  if (owner === undefined && mayBeHidden?.(kind, key) === true)
    return missing('OwnerHidden', false, `its owner ${what} cannot be read at present`);
  if (remembers !== undefined && !graph.wasDeleted(uid) && !remembers.knows(uid))
    return missing('OwnerHidden', false, `its owner ${what}, uid ${uid}, was never on this server; it stays`);
  return removed;
}
