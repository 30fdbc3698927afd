import type { InformerEvent } from '../../src/controller/informer-store.ts';
import type { Source, SourceContext } from '../../src/controller/source.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type KubernetesObject, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import type { SelectedObject } from './injection.ts';
import { isSelectable } from './selectable-kind.ts';

export type KindSource = Pick<Registry, 'kindOf' | 'onChange'>;

/**
 * The objects that variants inject, whether they exist or not: reads them, and wakes the variants of an object when it changes. Kinds are
 * followed in the namespaces of the variants that select objects of them.
 */
export class SelectedObjects {
  readonly #client: Client;
  readonly #kinds: KindSource;
  /** Variants by what they select; see `idOf`. */
  readonly #variants = new Map<string, Map<string, ObjectKey>>();
  /** What each variant selects. */
  readonly #selected = new Map<string, Set<string>>();
  /** Watches by kind and namespace. */
  readonly #followed = new Map<string, () => void>();
  #context: SourceContext<ObjectKey> | undefined;

  constructor(client: Client, kinds: KindSource) {
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
        for (const end of this.#followed.values()) end();
        this.#followed.clear();
      };
    },
  };

  /** Reads for one reconciliation of a variant; `end` forgets what it did not select any more. */
  readingFor(variant: ObjectKey): {
    readonly read: (
      selected: SelectedObject,
    ) => Promise<{ readonly object?: KubernetesObject; readonly problem?: string }>;
    readonly end: () => void;
  } {
    const seen = new Set<string>();
    return {
      read: async (selected) => {
        const { namespace = '' } = variant;
        const id = idOf(namespace, selected);
        seen.add(id);
        // Before it is read, so that no later change is missed.
        this.#add(variant, id);
        const kind = this.#kinds.kindOf(selected);
        if (kind === undefined || !isSelectable(kind))
          return { problem: `no in-cluster resources of type ${selected.apiVersion}.${selected.kind}` };
        this.#follow(selected, namespace);
        const { items } = await this.#client.list(kind, { namespace, fieldSelector: `metadata.name=${selected.name}` });
        const [object] = items;
        return object === undefined ? {} : { object };
      },
      end: () => this.#keep(variant, seen),
    };
  }

  forget(variant: ObjectKey): void {
    this.#keep(variant, new Set());
  }

  #add(variant: ObjectKey, id: string): void {
    const key = keyText(variant);
    const variants = this.#variants.get(id) ?? new Map<string, ObjectKey>();
    this.#variants.set(id, variants.set(key, variant));
    this.#selected.set(key, (this.#selected.get(key) ?? new Set()).add(id));
  }

  #keep(variant: ObjectKey, kept: ReadonlySet<string>): void {
    const key = keyText(variant);
    for (const id of this.#selected.get(key) ?? []) {
      if (kept.has(id)) continue;
      const variants = this.#variants.get(id);
      variants?.delete(key);
      if (variants?.size === 0) this.#variants.delete(id);
    }
    if (kept.size === 0) this.#selected.delete(key);
    else this.#selected.set(key, new Set(kept));
  }

  #followAll(): void {
    for (const [id, variants] of this.#variants) {
      const { namespace, ...selected } = selectedOf(id);
      if (!this.#follow(selected, namespace)) continue;
      for (const variant of variants.values()) this.#context?.enqueue(variant);
    }
  }

  /** Returns true if the kind was not followed in the namespace before. */
  #follow({ apiVersion, kind: name }: Omit<SelectedObject, 'name'>, namespace: string): boolean {
    const kind = this.#kinds.kindOf({ apiVersion, kind: name });
    const id = JSON.stringify([apiVersion, name, namespace]);
    if (kind === undefined) {
      this.#followed.get(id)?.();
      this.#followed.delete(id);
    }
    if (this.#context === undefined || kind === undefined || !isSelectable(kind) || this.#followed.has(id))
      return false;
    const informer = this.#context.informer(kind, { namespace });
    this.#followed.set(
      id,
      informer.addHandler((event) => {
        if (!isContentChange(event)) return;
        const { name: own } = event.object.metadata;
        const variants = this.#variants.get(idOf(namespace, { apiVersion, kind: name, name: own }));
        for (const variant of variants?.values() ?? []) this.#context?.enqueue(variant);
      }),
    );
    return true;
  }
}

function idOf(namespace: string, { apiVersion, kind, name }: SelectedObject): string {
  return JSON.stringify([namespace, apiVersion, kind, name]);
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
