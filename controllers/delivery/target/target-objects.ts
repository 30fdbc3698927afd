import type { DesiredRevision } from '../../../src/delivery/tree/desired-result.ts';
import { inSlices } from '../../../src/foundation/concurrency/in-slices.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';

interface TargetName {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
}

interface Shipped {
  readonly of: DesiredRevision;
  readonly identities: readonly string[];
}

interface Contents {
  /** By the key of the package. */
  readonly packages: Map<string, Shipped>;
  /** Packages by the identity of an object, sorted; mostly one. */
  readonly shippers: Map<string, readonly string[]>;
}

/** The packages that shipped an object, and those that ship it now. */
export interface ShipperChange {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** The objects that a delivery changed, by identity. `isFirst` for the first delivery of a target in this process. */
export interface ShippedChanges {
  /** `keyText` of the target. */
  readonly target: string;
  readonly isFirst: boolean;
  readonly objects: ReadonlyMap<string, ShipperChange>;
}

const NONE: readonly string[] = [];

/** The objects of each package at a target, as of its last delivery. In memory only: the first delivery fills it. */
export class TargetObjects {
  readonly #byTarget = new Map<string, Contents>();
  readonly #listeners = new Set<(changes: ShippedChanges) => void>();

  /** Calls the listener whenever a delivery changes the objects of a target. */
  subscribe(listener: (changes: ShippedChanges) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Records the current objects of a target; `chosen` has its packages by their keys. A revision that is the same object as before ships
   * the same objects: it costs a comparison.
   */
  async set(target: TargetName, chosen: ReadonlyMap<string, DesiredRevision>): Promise<void> {
    const key = keyText(keyOf(target));
    const known = this.#byTarget.get(key);
    const packages = known?.packages ?? new Map<string, Shipped>();
    const changes = new Map<string, Shipped | undefined>();
    await inSlices(chosen, ([name, revision]) => {
      if (packages.get(name)?.of !== revision) changes.set(name, { of: revision, identities: identitiesOf(revision) });
    });
    if (packages.size + changes.size > chosen.size)
      await inSlices(packages.keys(), (name) => {
        if (!chosen.has(name)) changes.set(name, undefined);
      });
    const objects = new Map<string, ShipperChange>();
    const change = (identity: string, edit: (shippers: readonly string[]) => readonly string[]) => {
      const before = objects.get(identity)?.before ?? known?.shippers.get(identity) ?? NONE;
      objects.set(identity, { before, after: edit(objects.get(identity)?.after ?? before) });
    };
    for (const [name, after] of changes) {
      const before = packages.get(name);
      if (before !== undefined && after !== undefined && isSame(before.identities, after.identities)) continue;
      for (const identity of before?.identities ?? []) change(identity, (shippers) => without(shippers, name));
      for (const identity of after?.identities ?? []) change(identity, (shippers) => [...shippers, name].sort());
    }
    // Replaces all entries in one step: a check between two steps would see an incomplete state.
    const shippers = known?.shippers ?? new Map<string, readonly string[]>();
    for (const [identity, { after }] of objects) {
      if (after.length === 0) shippers.delete(identity);
      else shippers.set(identity, after);
    }
    for (const [name, after] of changes) {
      if (after === undefined) packages.delete(name);
      else packages.set(name, after);
    }
    this.#byTarget.set(key, { packages, shippers });
    const isFirst = known === undefined;
    if (objects.size === 0 && !isFirst) return;
    for (const listener of this.#listeners) listener({ target: key, isFirst, objects });
  }

  forget(target: TargetName): void {
    this.#byTarget.delete(keyText(keyOf(target)));
  }

  /**
   * Returns the keys (`packageKey`) of the packages that ship an object to a target; undefined while the target is unknown. They are
   * sorted: conditions name the first one, which must not depend on the order of the deliveries of this process.
   */
  packagesOf(target: TargetName, identity: string): readonly string[] | undefined {
    const contents = this.#byTarget.get(keyText(keyOf(target)));
    return contents === undefined ? undefined : (contents.shippers.get(identity) ?? NONE);
  }
}

function without(names: readonly string[], name: string): readonly string[] {
  return names.filter((other) => other !== name);
}

function identitiesOf({ built }: DesiredRevision): readonly string[] {
  return [...(built?.manifests?.places.keys() ?? [])];
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one, index) => one === b[index]);
}
