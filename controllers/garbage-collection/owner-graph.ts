import type { KubernetesObject, OwnerReference, Stored } from '../../src/resource/object/object.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../../src/resource/storage/storage.ts';

/** Number of deleted objects that are remembered. */
const MAX_REMEMBERED = 10_000;

/**
 * The owner references of all objects, by uid. Events keep it up to date, so that finding the dependents of an object does
 * not require a pass over all objects.
 */
export class OwnerGraph {
  readonly #objects = new Map<string, Stored>();
  readonly #dependents = new Map<string, Set<string>>();
  /** The dependents that must be deleted before their owner. */
  readonly #blocking = new Map<string, Set<string>>();
  readonly #deleted = new Set<string>();

  put(object: Stored): void {
    const { uid } = object.metadata;
    this.#unlink(uid);
    this.#objects.set(uid, object);
    this.#deleted.delete(uid);
    for (const { uid: owner, blockOwnerDeletion } of ownersOf(object)) {
      // An object that owns itself could never be deleted first.
      if (owner === uid) continue;
      addTo(this.#dependents, owner, uid);
      if (blockOwnerDeletion === true) addTo(this.#blocking, owner, uid);
    }
  }

  /** Removes a deleted object. */
  remove({ metadata: { uid } }: Stored): void {
    this.#unlink(uid);
    this.#objects.delete(uid);
    this.#deleted.add(uid);
    for (const oldest of this.#deleted) {
      if (this.#deleted.size <= MAX_REMEMBERED) return;
      this.#deleted.delete(oldest);
    }
  }

  /** Removes all objects of a kind that is no longer served; they do not count as deleted. */
  forget(kind: { readonly apiVersion: string; readonly kind: string }): void {
    for (const [uid, object] of this.#objects) {
      if (object.apiVersion !== kind.apiVersion || object.kind !== kind.kind) continue;
      this.#unlink(uid);
      this.#objects.delete(uid);
    }
  }

  get(uid: string): Stored | undefined {
    return this.#objects.get(uid);
  }

  /** True for an object that was deleted recently. */
  wasDeleted(uid: string): boolean {
    return this.#deleted.has(uid);
  }

  dependents(uid: string): Stored[] {
    const found: Stored[] = [];
    for (const dependent of this.#dependents.get(uid) ?? []) {
      const object = this.#objects.get(dependent);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  hasDependents(uid: string): boolean {
    return this.#dependents.has(uid);
  }

  /** True while there are dependents that must be deleted before the owner. */
  isBlocked(uid: string): boolean {
    return this.#blocking.has(uid);
  }

  /** True for an object in a cycle of objects that wait for their dependents. */
  waitsForItself(uid: string): boolean {
    const seen = new Set<string>();
    const next = [uid];
    for (let owner = next.pop(); owner !== undefined; owner = next.pop()) {
      for (const dependent of this.#blocking.get(owner) ?? []) {
        if (dependent === uid) return true;
        const object = this.#objects.get(dependent);
        if (seen.has(dependent) || object === undefined || !awaitsDependents(object)) continue;
        seen.add(dependent);
        next.push(dependent);
      }
    }
    return false;
  }

  #unlink(uid: string): void {
    const object = this.#objects.get(uid);
    if (object === undefined) return;
    for (const { uid: owner } of ownersOf(object)) {
      removeFrom(this.#dependents, owner, uid);
      removeFrom(this.#blocking, owner, uid);
    }
  }
}

export function ownersOf(object: KubernetesObject): readonly OwnerReference[] {
  return object.metadata.ownerReferences ?? [];
}

/** True for an object whose deletion completes once its dependents are deleted. */
export function awaitsDependents({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(FOREGROUND_FINALIZER) === true;
}

/** True for an object whose deletion completes once its dependents refer to it no longer. */
export function orphansDependents({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(ORPHAN_FINALIZER) === true;
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function removeFrom(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
