import { specChanged } from '../../src/controller/predicates.ts';
import type { Source, SourceContext } from '../../src/controller/source.ts';
import { setsOf } from '../../src/package/store/policies/selected-packages.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { keyOf, keyText, type ObjectKey, type OwnerReference, type Stored } from '../../src/resource/object/object.ts';

/** The variants of one set with an open draft, and those that wait until there is room for theirs. */
interface SetDrafts {
  readonly open: Set<string>;
  readonly waiting: Map<string, ObjectKey>;
  /** As it was at the last request. */
  limit: number;
}

/**
 * Bounds the open drafts of the variants of a set by its `spec.maxDrafts`. The variants with open drafts are searched once for each set; from
 * then on each reconciliation reports those of its variant.
 */
export class DraftBudget {
  readonly #client: Client;
  readonly #hasOpenDraft: (variant: PackageVariant) => boolean;
  readonly #sets = new Map<string, Promise<SetDrafts>>();
  #context: SourceContext<ObjectKey> | undefined;

  constructor(client: Client, hasOpenDraft: (variant: PackageVariant) => boolean) {
    this.#client = client;
    this.#hasOpenDraft = hasOpenDraft;
  }

  /** Wakes the variants that wait when the limit of their set changes. */
  readonly source: Source<ObjectKey> = {
    start: (context) => {
      this.#context = context;
      const end = context.informer(packageVariantSetKind).addHandler((event) => {
        const { uid } = event.object.metadata;
        if (event.type === 'update' && specChanged(event)) void this.#wake(uid, Number.POSITIVE_INFINITY);
        if (event.type !== 'delete') return;
        void this.#wake(uid, Number.POSITIVE_INFINITY);
        this.#sets.delete(uid);
      });
      return () => {
        end();
        this.#context = undefined;
        this.#sets.clear();
      };
    },
  };

  /** Makes room for a draft of a variant. Returns the reason why it has to wait instead, if it has to. */
  async request(variant: Stored<PackageVariant>): Promise<string | undefined> {
    for (const set of setsOf(variant)) {
      const reason = await this.#requestOf(set, variant);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  async #requestOf({ name, uid }: OwnerReference, variant: Stored<PackageVariant>): Promise<string | undefined> {
    const { namespace } = variant.metadata;
    const set = await this.#client.find(packageVariantSetKind, { namespace, name });
    const limit = set?.metadata.uid === uid ? set.spec.maxDrafts : undefined;
    if (limit === undefined) return undefined;
    const drafts = await this.#draftsOf(uid, namespace);
    const { open, waiting } = drafts;
    drafts.limit = limit;
    const key = keyText(keyOf(variant));
    if (open.has(key) || open.size < limit) {
      open.add(key);
      waiting.delete(key);
      return undefined;
    }
    waiting.set(key, keyOf(variant));
    return `waits to open a draft: variants of PackageVariantSet ${name} have ${open.size} open drafts, its spec.maxDrafts permits ${limit}; publish or delete drafts, or raise it`;
  }

  /** To be called after each reconciliation: a draft that was published or deleted makes room for the next one, which reports in its turn. */
  async report(variant: Stored<PackageVariant>, isWaiting: boolean): Promise<void> {
    const key = keyText(keyOf(variant));
    for (const { uid } of setsOf(variant)) {
      const drafts = await this.#sets.get(uid);
      if (drafts === undefined) continue;
      if (!isWaiting) drafts.waiting.delete(key);
      if (this.#hasOpenDraft(variant)) drafts.open.add(key);
      else drafts.open.delete(key);
      if (drafts.open.size < drafts.limit) await this.#wake(uid, 1);
    }
  }

  /** Never rejects: where the search fails, none waits, since the requests that need it fail too and are tried again. */
  async #wake(uid: string, most: number): Promise<void> {
    const drafts = await this.#sets.get(uid)?.catch(() => undefined);
    for (const key of [...(drafts?.waiting.values() ?? [])].slice(0, most)) this.#context?.enqueue(key);
  }

  #draftsOf(uid: string, namespace: string | undefined): Promise<SetDrafts> {
    const known = this.#sets.get(uid);
    if (known !== undefined) return known;
    const reading = this.#read(uid, namespace);
    this.#sets.set(uid, reading);
    reading.catch(() => this.#sets.delete(uid));
    return reading;
  }

  async #read(uid: string, namespace: string | undefined): Promise<SetDrafts> {
    const { items } = await this.#client.list(packageVariantKind, namespace === undefined ? {} : { namespace });
    const own = items.filter((variant) => setsOf(variant).some((set) => set.uid === uid));
    const open = own.filter((variant) => this.#hasOpenDraft(variant)).map((variant) => keyText(keyOf(variant)));
    return { open: new Set(open), waiting: new Map(), limit: 0 };
  }
}
