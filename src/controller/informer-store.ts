import { type KubernetesObject, keyOf, keyText, type ObjectKey, type Stored } from '../resource/object/object.ts';

/** The values under which an object is found in an index. */
export type IndexFunction<T extends KubernetesObject> = (object: Stored<T>) => Iterable<string>;

/** A change of an object of an informer. `old` is the previous object in the store. */
export type InformerEvent<T extends KubernetesObject> =
  | { readonly type: 'add'; readonly object: Stored<T> }
  | { readonly type: 'update'; readonly object: Stored<T>; readonly old: Stored<T> }
  | { readonly type: 'delete'; readonly object: Stored<T> };

const BY_NAMESPACE = 'namespace';

/** The objects of one kind by key, and by the values of index functions. */
export class InformerStore<T extends KubernetesObject> {
  readonly #objects = new Map<string, Stored<T>>();
  readonly #indexes = new Map<string, { of: IndexFunction<T>; keys: Map<string, Set<string>> }>();

  addIndex(name: string, of: IndexFunction<T>): void {
    const index = { of, keys: new Map<string, Set<string>>() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) enter(index.keys, of(object), key);
  }

  get(key: ObjectKey): Stored<T> | undefined {
    return this.#objects.get(keyText(key));
  }

  values(): Iterable<Stored<T>> {
    return this.#objects.values();
  }

  get size(): number {
    return this.#objects.size;
  }

  /** The objects under one value of an index, in no particular order. Throws if there is no such index. */
  byIndex(name: string, value: string): Stored<T>[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new Error(`no index ${name}`);
    const found: Stored<T>[] = [];
    for (const key of index.keys.get(value) ?? []) {
      const object = this.#objects.get(key);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  /** The objects of a namespace, in no particular order. */
  inNamespace(namespace: string): Stored<T>[] {
    // An index costs memory, which most stores can save.
    if (!this.#indexes.has(BY_NAMESPACE)) this.addIndex(BY_NAMESPACE, ({ metadata }) => [metadata.namespace ?? '']);
    return this.byIndex(BY_NAMESPACE, namespace);
  }

  /** Stores a state of an object and returns the events that follow; none if it is stored already. */
  put(object: Stored<T>): InformerEvent<T>[] {
    const key = keyText(keyOf(object));
    const old = this.#objects.get(key);
    if (old?.metadata.uid === object.metadata.uid && old.metadata.resourceVersion === object.metadata.resourceVersion)
      return [];
    this.#set(key, object);
    if (old === undefined) return [{ type: 'add', object }];
    if (old.metadata.uid === object.metadata.uid) return [{ type: 'update', object, old }];
    // The name went to another object between two lists.
    return [
      { type: 'delete', object: old },
      { type: 'add', object },
    ];
  }

  /** Removes an object, of which this is the last state. */
  remove(object: Stored<T>): InformerEvent<T>[] {
    const key = keyText(keyOf(object));
    if (!this.#objects.has(key)) return [];
    this.#set(key, undefined);
    return [{ type: 'delete', object }];
  }

  /** Replaces all objects by a list: objects that are not in it are removed. Those of the namespaces to `keep` stay as they are. */
  replace(items: readonly Stored<T>[], keep: ReadonlySet<string> = new Set()): InformerEvent<T>[] {
    const isReplaced = ({ metadata }: Stored<T>) => !keep.has(metadata.namespace ?? '');
    return this.#replace([...this.#objects.values()].filter(isReplaced), items.filter(isReplaced));
  }

  /** Replaces the objects of a namespace by a list of these. */
  replaceIn(namespace: string, items: readonly Stored<T>[]): InformerEvent<T>[] {
    return this.#replace(this.inNamespace(namespace), items);
  }

  #replace(old: readonly Stored<T>[], items: readonly Stored<T>[]): InformerEvent<T>[] {
    const present = new Set(items.map((item) => keyText(keyOf(item))));
    const removed = old.filter((object) => !present.has(keyText(keyOf(object))));
    return [...removed.flatMap((object) => this.remove(object)), ...items.flatMap((item) => this.put(item))];
  }

  /** True if the store contains exactly these objects in these versions. */
  equals(items: readonly Stored<T>[]): boolean {
    return (
      items.length === this.#objects.size &&
      items.every((item) => {
        const held = this.get(keyOf(item))?.metadata;
        return held?.uid === item.metadata.uid && held.resourceVersion === item.metadata.resourceVersion;
      })
    );
  }

  #set(key: string, object: Stored<T> | undefined): void {
    const old = this.#objects.get(key);
    for (const { of, keys } of this.#indexes.values()) {
      if (old !== undefined) leave(keys, of(old), key);
      if (object !== undefined) enter(keys, of(object), key);
    }
    if (object === undefined) this.#objects.delete(key);
    else this.#objects.set(key, object);
  }
}

function enter(keys: Map<string, Set<string>>, values: Iterable<string>, key: string): void {
  for (const value of values) {
    const set = keys.get(value) ?? new Set();
    keys.set(value, set.add(key));
  }
}

function leave(keys: Map<string, Set<string>>, values: Iterable<string>, key: string): void {
  for (const value of values) {
    const set = keys.get(value);
    set?.delete(key);
    if (set?.size === 0) keys.delete(value);
  }
}
