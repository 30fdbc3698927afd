import { setImmediate } from 'node:timers/promises';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { keyOf, type OwnerReference, type Stored } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../../src/resource/storage/storage.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { identityText, type ObjectIdentity, ownedObjects } from './owned-objects.ts';
import { awaitsDependents, OwnerGraph, orphansDependents, ownersOf } from './owner-graph.ts';
import { type OwnerLookup, sortOwners } from './sort-owners.ts';

const GARBAGE_COLLECTION_ACTOR = 'controller:garbage-collection';

export interface GarbageCollectionOptions extends Pick<OwnerLookup, 'mayBeHidden' | 'memory'> {
  readonly client: Client;
  readonly registry: Pick<Registry, 'storages' | 'kindOf' | 'onChange'>;
  readonly clock: Clock;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** Time until a failed step is retried, if no event wakes the controller earlier. */
const RETRY_MS = 10 * 60_000;

/** Dependents from which an orphaning deletion removes the owner at once. */
const MAX_CONCURRENT_ORPHANS = 32;

/**
 * Deletes objects whose owners are deleted, and removes the finalizers of owners that wait for their dependents. The rules are those
 * of the garbage collector of Kubernetes.
 */
export function garbageCollectionController(options: GarbageCollectionOptions): ControllerOptions<ObjectIdentity> {
  const { registry, clock, mayBeHidden, memory } = options;
  const client = options.client.as({ name: GARBAGE_COLLECTION_ACTOR }, 'controller');
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: GARBAGE_COLLECTION_ACTOR });
  const events = new EventDeduplicator(recorder);
  const graph = new OwnerGraph();
  const lookup: OwnerLookup = {
    ...{ client, registry, graph },
    ...(mayBeHidden === undefined ? {} : { mayBeHidden }),
    ...(memory === undefined ? {} : { memory }),
  };

  return {
    name: 'garbage-collection',
    sources: [ownedObjects(registry, graph)],
    keyOf: identityText,
    maxConcurrentReconciles: 16,
    async reconcile(identity) {
      const kind = registry.kindOf(identity);
      const object = kind === undefined ? undefined : await client.find(kind, identity);
      if (kind === undefined || object?.metadata.uid !== identity.uid) return void events.forget(identity);
      try {
        return await attend(kind, object);
      } catch (error) {
        // Already deleted by another client.
        if (isSluiceError(error, 'NotFound')) return undefined;
        if (!isSluiceError(error, 'Refused')) throw error;
        events.record(object, 'Warning', 'NotCollected', error.message, `${kind.kind} refused`);
        return { requeueAfter: RETRY_MS, reason: error.message };
      }
    },
  };

  async function attend(kind: Kind, object: Stored): Promise<ReconcileResult | undefined> {
    if (object.metadata.deletionTimestamp === undefined) return collect(kind, object);
    if (awaitsDependents(object)) await endForeground(kind, object);
    else if (orphansDependents(object)) await endOrphan(kind, object);
    return undefined;
  }

  /** Deletes an object without an existing owner, or removes its references to deleted owners. */
  async function collect(kind: Kind, object: Stored): Promise<ReconcileResult | undefined> {
    const { solid, waiting, absent, unclear } = await sortOwners(object, lookup);
    for (const { message } of [...absent, ...unclear].filter(({ reason }) => reason === 'OwnerRefInvalidNamespace'))
      events.record(object, 'Warning', 'OwnerRefInvalidNamespace', message, `${kind.kind} namespace`);
    if (solid.length > 0) {
      const removed = new Set([...waiting, ...absent.map(({ reference }) => reference)]);
      if (removed.size > 0)
        await setOwners(kind, object, (reference) => (removed.has(reference) ? undefined : reference));
      // No event reports the deletion of an owner whose kind is not followed, or that is deleted before it is followed.
      const isFollowed = solid.some(({ uid }) => graph.get(uid) !== undefined);
      return isFollowed
        ? undefined
        : { requeueAfter: RETRY_MS, reason: 'the next check of an owner that is not followed' };
    }
    const [open] = unclear;
    if (open !== undefined) {
      if (open.reason === 'OwnerKindUnknown')
        events.record(object, 'Warning', open.reason, open.message, `${kind.kind} owner`);
      return { requeueAfter: RETRY_MS, reason: open.message };
    }
    if (waiting.length + absent.length > 0) await remove(kind, object, waiting.length > 0);
    return undefined;
  }

  /** Deletes exactly the evaluated state. If an owner waits for it, its own dependents are deleted first. */
  async function remove(kind: Kind, object: Stored, ownerWaits: boolean): Promise<void> {
    let result = object;
    const foreground = ownerWaits && graph.hasDependents(object.metadata.uid);
    // In a cycle of objects that wait for each other, one must not wait.
    if (foreground && graph.dependents(object.metadata.uid).some(awaitsDependents))
      result = await release(kind, object);
    const { uid, resourceVersion } = result.metadata;
    await client.delete(kind, keyOf(result), {
      ...{ uid, resourceVersion, reason: 'all its owners were deleted' },
      propagationPolicy: foreground ? 'Foreground' : 'Background',
    });
  }

  async function endForeground(kind: Kind, object: Stored): Promise<void> {
    await untilSeen();
    // Each dependent that is deleted or drops its reference wakes this controller again.
    if (!graph.isBlocked(object.metadata.uid)) await dropFinalizer(kind, object, FOREGROUND_FINALIZER);
    else if (graph.waitsForItself(object.metadata.uid)) await release(kind, object);
  }

  /** Marks that its owners need not wait for it any more. */
  function release(kind: Kind, object: Stored): Promise<Stored> {
    return setOwners(kind, object, (reference) => ({ ...reference, blockOwnerDeletion: false }));
  }

  async function endOrphan(kind: Kind, object: Stored): Promise<void> {
    await untilSeen();
    const { uid } = object.metadata;
    const dependents = graph.dependents(uid);
    if (dependents.length === 0) return dropFinalizer(kind, object, ORPHAN_FINALIZER);
    // The last dependent that drops its reference wakes this controller again.
    await mapLimited(dependents, MAX_CONCURRENT_ORPHANS, async (dependent) => {
      const dependentKind = registry.kindOf(dependent);
      if (dependentKind === undefined) return;
      const live = await client.find(dependentKind, keyOf(dependent));
      if (live === undefined || live.metadata.uid !== dependent.metadata.uid) return;
      await setOwners(dependentKind, live, (reference) => (reference.uid === uid ? undefined : reference));
    });
  }

  async function dropFinalizer(kind: Kind, object: Stored, finalizer: string): Promise<void> {
    const finalizers = object.metadata.finalizers?.filter((one) => one !== finalizer);
    await client.update(kind, { ...object, metadata: { ...object.metadata, finalizers } });
  }

  function setOwners(
    kind: Kind,
    object: Stored,
    change: (reference: OwnerReference) => OwnerReference | undefined,
  ): Promise<Stored> {
    const left = ownersOf(object).flatMap((reference) => change(reference) ?? []);
    const ownerReferences = left.length === 0 ? undefined : left;
    return client.update(kind, { ...object, metadata: { ...object.metadata, ownerReferences } });
  }
}

/** Watches of this process deliver earlier writes within one turn of the event loop. */
async function untilSeen(): Promise<void> {
  await setImmediate();
}
