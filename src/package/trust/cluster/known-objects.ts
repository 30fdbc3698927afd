import type { Stored } from '../../../resource/object/object.ts';
import { isOlder } from '../../../resource/object/resource-version.ts';
import type { LedgerObject } from './ledger-objects.ts';

interface Known {
  /** As it was stored last. */
  readonly object: Stored<LedgerObject>;
  readonly isMissing: boolean;
}

/**
 * The objects of a ledger as the cluster had them last, by name. The only writer need not read an object before each write, and can restore
 * one that was deleted.
 */
export class KnownObjects {
  readonly #known = new Map<string, Known>();

  /** The object as it is in the cluster; undefined if it is not there. */
  stored(name: string): Stored<LedgerObject> | undefined {
    const known = this.#known.get(name);
    return known?.isMissing === false ? known.object : undefined;
  }

  /** The data of the object, also of one that was deleted. */
  data(name: string): Readonly<Record<string, string>> {
    return this.#known.get(name)?.object.data ?? {};
  }

  /** Notes an object that was read or written. One that is older than the known one is ignored: a watch is behind. */
  note(object: Stored<LedgerObject>): void {
    const { name, resourceVersion } = object.metadata;
    const known = this.#known.get(name);
    if (known !== undefined && isOlder(resourceVersion, known.object.metadata.resourceVersion)) return;
    // What was deleted from the object by hand is restored with the next write.
    const data = { ...known?.object.data, ...object.data };
    this.#known.set(name, { object: { ...object, data }, isMissing: false });
  }

  /** Notes that an object does not exist any more. If it does, its creation fails and it is read again. Returns false if it is not known. */
  noteMissing(name: string): boolean {
    const known = this.#known.get(name);
    if (known === undefined) return false;
    this.#known.set(name, { object: known.object, isMissing: true });
    return true;
  }
}
