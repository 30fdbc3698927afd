import type { ObjectKey } from '../../../../src/resource/object/object.ts';
import { keyText } from '../../../../src/resource/object/object.ts';

/** The name under which consumers of a package path are found, in a namespace. */
export function packageInterest(namespace: string, path: string): string {
  return `package ${namespace}/${path}`;
}

export function clusterInterest(namespace: string, cluster: string): string {
  return `cluster ${namespace}/${cluster}`;
}

/** Consumers by what they depend on, so that an event wakes these and no others. */
export class ConsumerIndex {
  readonly #byName = new Map<string, Map<string, ObjectKey>>();
  readonly #namesOf = new Map<string, readonly string[]>();

  record(key: ObjectKey, names: readonly string[]): void {
    const id = keyText(key);
    const before = this.#namesOf.get(id) ?? [];
    if (before.length === names.length && names.every((name, at) => name === before[at])) return;
    this.forget(id);
    if (names.length === 0) return;
    this.#namesOf.set(id, names);
    for (const name of names) {
      const consumers = this.#byName.get(name) ?? new Map<string, ObjectKey>();
      this.#byName.set(name, consumers.set(id, key));
    }
  }

  forget(id: string): void {
    for (const name of this.#namesOf.get(id) ?? []) {
      const consumers = this.#byName.get(name);
      consumers?.delete(id);
      if (consumers?.size === 0) this.#byName.delete(name);
    }
    this.#namesOf.delete(id);
  }

  of(name: string): Iterable<ObjectKey> {
    return this.#byName.get(name)?.values() ?? [];
  }

  /** The cost is that of all consumers. */
  inNamespace(namespace: string): ObjectKey[] {
    const consumers = new Map([...this.#byName.values()].flatMap((those) => [...those]));
    return [...consumers.values()].filter((key) => key.namespace === namespace);
  }
}
