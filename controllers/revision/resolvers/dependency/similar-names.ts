import { LruCache } from '../../../../src/foundation/lru-cache.ts';
import { nearMisses } from '../../../../src/foundation/text/near-misses.ts';
import type { Clock } from '../../../../src/foundation/time/clock.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';

/** Packages of a namespace that a name is compared with. */
const MAX_COMPARED = 1000;
/** Names that are remembered with what they were compared to. */
const MAX_NAMES = 1000;
/** In milliseconds. */
const MAX_AGE_MS = 600_000;
const MAX_NAMED = 3;

/**
 * Packages that may have been meant by a name that none has. A draft that waits for its provider is reconciled often, and a namespace has thousands
 * of packages: they are compared once in a while for each name.
 */
export class SimilarNames {
  readonly #store: Pick<RevisionStore, 'list'>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #known = new LruCache<string, { readonly atMs: number; readonly names: readonly string[] }>({
    maxEntries: MAX_NAMES,
  });

  constructor({
    store,
    clock,
  }: { readonly store: Pick<RevisionStore, 'list'>; readonly clock: Pick<Clock, 'monotonic'> }) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Of the namespace of the consumer, without the consumer itself. */
  of(wanted: string, { namespace, key }: Pick<PackageRevision, 'namespace' | 'key'>): readonly string[] {
    const id = `${namespace}/${wanted}`;
    const now = this.#clock.monotonic();
    let known = this.#known.get(id);
    if (known === undefined || now - known.atMs >= MAX_AGE_MS) {
      // One more than are named, since the consumer can be among them.
      known = { atMs: now, names: nearMisses(wanted, this.#namesIn(namespace), MAX_NAMED + 1) };
      this.#known.set(id, known);
    }
    return known.names.filter((name) => name !== key.package).slice(0, MAX_NAMED);
  }

  #namesIn(namespace: string): ReadonlySet<string> {
    const names = new Set<string>();
    for (const row of this.#store.list()) {
      if (row.namespace === namespace) names.add(row.key.package);
      if (names.size >= MAX_COMPARED) break;
    }
    return names;
  }
}
