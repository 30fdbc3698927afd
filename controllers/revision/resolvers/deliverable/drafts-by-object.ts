import { packageKey } from '../../../../src/delivery/selection/select-revisions.ts';
import { type PackageRevision, revisionId } from '../../../../src/package/model/revision/package-revision.ts';
import type { ObjectKey } from '../../../../src/resource/object/object.ts';
import type { ShippedChanges } from '../../../delivery/target/target-objects.ts';
import type { Deliverability } from './deliverability.ts';

interface Entry {
  readonly key: ObjectKey;
  /** `packageKey` of its own package, which may ship the same objects. */
  readonly own: string;
  /** `keyText` of the targets that select it. */
  readonly targets: ReadonlySet<string>;
  readonly places: ReadonlyMap<string, string>;
  /** True if its condition is kept until the objects of a target are known. */
  readonly waits: boolean;
}

/** The pending revisions by the objects that they would deliver, so that a delivery wakes only those that it affects. */
export class DraftsByObject {
  readonly #entries = new Map<string, Entry>();
  readonly #byIdentity = new Map<string, Set<Entry>>();
  readonly #waiting = new Set<Entry>();

  /** Records the targets and objects by which a revision was evaluated. */
  record(revision: PackageRevision, { keys, places }: Deliverability, waits: boolean): void {
    const id = revisionId(revision);
    const known = this.#entries.get(id);
    const isSame = known?.places === places && known.waits === waits && sameKeys(known.targets, keys);
    if (isSame) return;
    this.forget(id);
    if (keys.length === 0 || places.size === 0) return;
    const { namespace, name } = revision;
    const entry = { key: { namespace, name }, own: packageKey(revision.key), targets: new Set(keys), places, waits };
    this.#entries.set(id, entry);
    if (waits) this.#waiting.add(entry);
    for (const identity of places.keys()) {
      const entries = this.#byIdentity.get(identity);
      if (entries === undefined) this.#byIdentity.set(identity, new Set([entry]));
      else entries.add(entry);
    }
  }

  forget(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#waiting.delete(entry);
    for (const identity of entry.places.keys()) {
      const entries = this.#byIdentity.get(identity);
      entries?.delete(entry);
      if (entries?.size === 0) this.#byIdentity.delete(identity);
    }
  }

  /** The revisions to evaluate again: another package started or stopped shipping one of their objects. */
  affectedBy({ target, isFirst, objects }: ShippedChanges): ObjectKey[] {
    const concerned = new Set<ObjectKey>();
    for (const [identity, { before, after }] of objects)
      for (const { key, own, targets } of this.#byIdentity.get(identity) ?? []) {
        const isOther = (name: string) => name !== own;
        if (targets.has(target) && before.find(isOther) !== after.find(isOther)) concerned.add(key);
      }
    if (isFirst) for (const { key, targets } of this.#waiting) if (targets.has(target)) concerned.add(key);
    return [...concerned];
  }
}

function sameKeys(known: ReadonlySet<string>, keys: readonly string[]): boolean {
  return known.size === keys.length && keys.every((key) => known.has(key));
}
