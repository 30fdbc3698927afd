import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../object/object.ts';
import type { Kind } from '../schema/kind.ts';
import type { KindIdentity } from '../schema/kind-identity.ts';
import type { Storage } from './storage.ts';

/** The registered kinds, and the storage of each. */
export class Registry {
  readonly #storages = new Map<string, Storage>();
  readonly #byWord = new Map<string, Kind>();
  readonly #byPlural = new Map<string, Storage>();
  readonly #listeners = new Set<() => void>();

  /**
   * Registers a storage for its kind. A kind can be registered once; a short name that two kinds share belongs to the
   * first.
   */
  register(storage: Storage): void {
    const { kind } = storage;
    const id = idOf(kind);
    if (this.#storages.has(id)) throw new SluiceError('AlreadyExists', `kind ${id} is registered already`);
    this.#storages.set(id, storage);
    this.#byPlural.set(pluralOf(kind), storage);
    for (const word of wordsOf(kind)) if (!this.#byWord.has(word)) this.#byWord.set(word, kind);
    for (const listener of this.#listeners) listener();
  }

  /** Takes a kind out again; what its storage keeps stays as it is. */
  unregister(kind: KindIdentity): void {
    if (!this.#storages.delete(idOf(kind))) return;
    this.#byPlural.delete(pluralOf(kind));
    this.#byWord.clear();
    for (const other of this.kinds())
      for (const word of wordsOf(other)) if (!this.#byWord.has(word)) this.#byWord.set(word, other);
    for (const listener of this.#listeners) listener();
  }

  /** Calls the listener whenever kinds come or go. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** All storages, in the order of registration. */
  storages(): Storage[] {
    return [...this.#storages.values()];
  }

  /** The storage behind a path such as `/apis/porch.kpt.dev/v1alpha1/packagerevisions`; undefined if there is none. */
  find(group: string, version: string, plural: string): Storage | undefined {
    return this.#byPlural.get(pluralOf({ group, version, plural }));
  }

  /** All kinds, in the order of registration. */
  kinds(): Kind[] {
    return [...this.#storages.values()].map((storage) => storage.kind);
  }

  /** The kind of an object; undefined if it is not registered. */
  kindOf(object: { readonly apiVersion: string; readonly kind: string }): Kind | undefined {
    return this.#storages.get(idOf(object))?.kind;
  }

  /**
   * The kind that a person means by a word: plural, singular, kind or short name, each also with `.group`; upper and
   * lower case are the same. Undefined if there is none.
   */
  lookup(word: string): Kind | undefined {
    return this.#byWord.get(word.toLowerCase());
  }

  /** The storage of a kind. Unsupported if it is not registered. */
  storage<T extends KubernetesObject>(kind: Kind<T>): Storage<T> {
    const storage = this.#storages.get(idOf(kind));
    if (storage === undefined) throw new SluiceError('Unsupported', `no storage is registered for ${idOf(kind)}`);
    // The map is keyed by the identity of the kind, so this is the storage that was registered for T.
    return storage as unknown as Storage<T>;
  }
}

function idOf(object: { readonly apiVersion: string; readonly kind: string }): string {
  return `${object.apiVersion} ${object.kind}`;
}

function pluralOf({ group, version, plural }: Pick<KindIdentity, 'group' | 'version' | 'plural'>): string {
  return `${group}/${version}/${plural}`;
}

function wordsOf(kind: KindIdentity): string[] {
  const words = [kind.plural, kind.singular, kind.kind, ...kind.shortNames].map((word) => word.toLowerCase());
  return kind.group === '' ? words : [...words, ...words.map((word) => `${word}.${kind.group}`)];
}
