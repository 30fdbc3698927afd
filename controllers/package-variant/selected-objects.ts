import type { Informer } from '../../src/controller/informer.ts';
import type { InformerEvent } from '../../src/controller/informer-store.ts';
import type { Source, SourceContext } from '../../src/controller/source.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { type KubernetesObject, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import type { SelectedObject } from './injection.ts';
import { isSelectable, type KindName, type SelectableKinds, unreadableReason } from './selectable-kind.ts';

/** A watch of the objects of a kind in a namespace. */
interface Followed {
  readonly informer: Informer;
  readonly end: () => void;
  /** Variants that could not read them: they are woken once the first list succeeds. */
  readonly waiting: Map<string, ObjectKey>;
}

/**
 * The objects that variants inject, whether they exist or not: reads them, and wakes the variants of an object when it changes. Kinds are
 * followed in the namespaces of the variants that select objects of them.
 */
export class SelectedObjects {
  readonly #client: Client;
  readonly #kinds: SelectableKinds;
  /** Variants by the kind and namespace of what they select (see `followedId`), then by its name. */
  readonly #variants = new Map<string, Map<string, Map<string, ObjectKey>>>();
  /** What each variant selects; see `idOf`. */
  readonly #selected = new Map<string, Set<string>>();
  /** Watches by kind and namespace. */
  readonly #followed = new Map<string, Followed>();
  #context: SourceContext<ObjectKey> | undefined;

  constructor(client: Client, kinds: SelectableKinds) {
    this.#client = client;
    this.#kinds = kinds;
  }

  readonly source: Source<ObjectKey> = {
    start: (context) => {
      this.#context = context;
      // A kind that arrives may have objects that variants wait for.
      const unsubscribe = this.#kinds.onChange(() => this.#followAll());
      this.#followAll();
      return () => {
        unsubscribe();
        this.#context = undefined;
        for (const { end } of this.#followed.values()) end();
        this.#followed.clear();
      };
    },
  };

  /** Reads for one reconciliation of a variant. */
  readingFor(variant: ObjectKey): {
    readonly read: (
      selected: SelectedObject,
    ) => Promise<{ readonly object?: KubernetesObject; readonly problem?: string }>;
    /** Forgets what the variant did not select any more. Returns why objects cannot be read now, which no event ends. */
    readonly end: () => string | undefined;
  } {
    let unreadable: string | undefined;
    const seen = new Set<string>();
    return {
      read: async (selected) => {
        const { namespace = '' } = variant;
        const id = idOf(namespace, selected);
        seen.add(id);
        // Before it is read, so that no later change is missed.
        this.#add(variant, id);
        await this.#hold(variant);
        const kind = this.#kinds.kindOf(selected);
        if (kind === undefined || !isSelectable(kind)) {
          const reason = this.#kinds.problemOf?.(selected);
          const problem = `no in-cluster resources of type ${selected.apiVersion}.${selected.kind}`;
          return { problem: reason === undefined ? problem : `${problem}: ${reason}` };
        }
        this.#follow(selected, namespace);
        try {
          const fieldSelector = `metadata.name=${selected.name}`;
          const [object] = (await this.#client.list(kind, { namespace, fieldSelector })).items;
          return object === undefined ? {} : { object };
        } catch (error) {
          const problem = unreadableReason(error, kind, namespace);
          if (problem === undefined) throw error;
          this.#wait(variant, selected, namespace);
          unreadable = problem;
          return { problem };
        }
      },
      end: () => {
        this.#keep(variant, seen);
        return unreadable;
      },
    };
  }

  forget(variant: ObjectKey): void {
    this.#keep(variant, new Set());
  }

  #add(variant: ObjectKey, id: string): void {
    const key = keyText(variant);
    const { namespace, name, ...kind } = selectedOf(id);
    const followed = followedId(kind, namespace);
    const names = this.#variants.get(followed) ?? new Map<string, Map<string, ObjectKey>>();
    this.#variants.set(followed, names.set(name, (names.get(name) ?? new Map()).set(key, variant)));
    this.#selected.set(key, (this.#selected.get(key) ?? new Set()).add(id));
  }

  #keep(variant: ObjectKey, kept: ReadonlySet<string>): void {
    const key = keyText(variant);
    for (const id of this.#selected.get(key) ?? []) {
      if (!kept.has(id)) this.#remove(key, id);
    }
    if (kept.size === 0) this.#selected.delete(key);
    else this.#selected.set(key, new Set(kept));
    void this.#hold(variant);
  }

  #remove(variant: string, id: string): void {
    const { namespace, name, ...kind } = selectedOf(id);
    const followed = followedId(kind, namespace);
    const names = this.#variants.get(followed);
    const variants = names?.get(name);
    variants?.delete(variant);
    if (variants?.size === 0) names?.delete(name);
    if (names?.size !== 0) return;
    this.#variants.delete(followed);
    this.#unfollow(followed);
  }

  /** Announces the kinds that the variant names now. */
  async #hold(variant: ObjectKey): Promise<void> {
    if (this.#kinds.hold === undefined) return;
    const names = [...(this.#selected.get(keyText(variant)) ?? [])].map(selectedOf);
    await this.#kinds.hold({ ...variant, kind: packageVariantKind.kind }, names);
  }

  #wait(variant: ObjectKey, selected: KindName, namespace: string): void {
    const followed = this.#followed.get(followedId(selected, namespace));
    if (followed?.informer.synced === false) followed.waiting.set(keyText(variant), variant);
  }

  #followAll(): void {
    for (const id of this.#followed.keys()) if (this.#kinds.kindOf(placeOf(id)) === undefined) this.#unfollow(id);
    for (const [id, names] of this.#variants) {
      const { namespace, ...kind } = placeOf(id);
      if (!this.#follow(kind, namespace)) continue;
      for (const variants of names.values()) for (const variant of variants.values()) this.#context?.enqueue(variant);
    }
  }

  /** Returns true if the kind was not followed in the namespace before. */
  #follow({ apiVersion, kind: name }: KindName, namespace: string): boolean {
    const kind = this.#kinds.kindOf({ apiVersion, kind: name });
    const id = followedId({ apiVersion, kind: name }, namespace);
    if (this.#context === undefined || kind === undefined || !isSelectable(kind) || this.#followed.has(id))
      return false;
    const informer = this.#context.informer(kind, { namespace });
    const end = informer.addHandler((event) => {
      if (!isContentChange(event)) return;
      const variants = this.#variants.get(id)?.get(event.object.metadata.name);
      for (const variant of variants?.values() ?? []) this.#context?.enqueue(variant);
    });
    const waiting = new Map<string, ObjectKey>();
    this.#followed.set(id, { informer, end, waiting });
    const wake = () => {
      for (const variant of waiting.values()) this.#context?.enqueue(variant);
      waiting.clear();
    };
    // It rejects when the informer is stopped.
    informer.whenSynced().then(wake, () => undefined);
    return true;
  }

  #unfollow(id: string): void {
    const followed = this.#followed.get(id);
    if (followed === undefined) return;
    this.#followed.delete(id);
    followed.end();
    this.#context?.release(followed.informer.kind, { namespace: placeOf(id).namespace });
  }
}

function idOf(namespace: string, { apiVersion, kind, name }: SelectedObject): string {
  return JSON.stringify([namespace, apiVersion, kind, name]);
}

function followedId({ apiVersion, kind }: KindName, namespace: string): string {
  return JSON.stringify([apiVersion, kind, namespace]);
}

function placeOf(id: string): KindName & { readonly namespace: string } {
  const [apiVersion = '', kind = '', namespace = ''] = JSON.parse(id) as string[];
  return { apiVersion, kind, namespace };
}

function selectedOf(id: string): SelectedObject & { readonly namespace: string } {
  const [namespace = '', apiVersion = '', kind = '', name = ''] = JSON.parse(id) as string[];
  return { namespace, apiVersion, kind, name };
}

/** Only the fields that are injected count. */
function isContentChange(event: InformerEvent<KubernetesObject>): boolean {
  if (event.type !== 'update') return true;
  const [before, after] = [event.old, event.object].map(
    ({ spec, data }: KubernetesObject & { readonly data?: unknown }) => ({ spec, data }),
  );
  return !sameValue(before, after);
}
