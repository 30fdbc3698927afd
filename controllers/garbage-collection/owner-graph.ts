import type { KubernetesObject, OwnerReference, Stored } from '../../src/resource/object/object.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../../src/resource/storage/storage.ts';

/** How many deleted objects are remembered. */
const REMEMBERED = 10_000;

/**
 * Which objects name which others as their owners, by uid. Kept up to date by events, so that nobody has to look through all
 * objects to find the dependents of one.
 */
export class OwnerGraph {
  readonly #objects = new Map<string, Stored>();
  readonly #dependents = new Map<string, Set<string>>();
  /** Of the dependents those whose owner must not go before them. */
  readonly #blocking = new Map<string, Set<string>>();
  readonly #deleted = new Set<string>();

  put(object: Stored): void {
    const { uid } = object.metadata;
    this.#unlink(uid);
    this.#objects.set(uid, object);
    this.#deleted.delete(uid);
    for (const { uid: owner, blockOwnerDeletion } of ownersOf(object)) {
      // What owns itself could never go first.
      if (owner === uid) continue;
      enter(this.#dependents, owner, uid);
      if (blockOwnerDeletion === true) enter(this.#blocking, owner, uid);
    }
  }

  /** Takes a deleted object out. */
  remove({ metadata: { uid } }: Stored): void {
    this.#unlink(uid);
    this.#objects.delete(uid);
    this.#deleted.add(uid);
    for (const oldest of this.#deleted) {
      if (this.#deleted.size <= REMEMBERED) return;
      this.#deleted.delete(oldest);
    }
  }

  /** Takes all objects of a kind out, which are not deleted but cannot be seen any more. */
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

  /** True for an object that was deleted not long ago. */
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

  /** True while there are dependents that must go before their owner does. */
  isBlocked(uid: string): boolean {
    return this.#blocking.has(uid);
  }

  /** True for an object that waits for dependents which, over others that wait too, wait for it. */
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
      leave(this.#dependents, owner, uid);
      leave(this.#blocking, owner, uid);
    }
  }
}

export function ownersOf(object: KubernetesObject): readonly OwnerReference[] {
  return object.metadata.ownerReferences ?? [];
}

/** True for an object that goes once its dependents are gone. */
export function awaitsDependents({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(FOREGROUND_FINALIZER) === true;
}

/** True for an object that goes once its dependents have forgotten it. */
export function orphansDependents({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(ORPHAN_FINALIZER) === true;
}

function enter(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function leave(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
