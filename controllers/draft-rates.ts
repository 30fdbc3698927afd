import { RateLimit } from '../src/foundation/concurrency/rate-limit.ts';
import { LruCache } from '../src/foundation/lru-cache.ts';
import type { Clock } from '../src/foundation/time/clock.ts';
import { createdAt } from '../src/package/api/objects/revision-object.ts';
import type { PackageRevision } from '../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../src/package/store/revision-store.ts';

/** Begins the workspaces of the drafts that are opened because of providers. */
export const PROVIDERS_PREFIX = 'providers-';
/** Begins those of the drafts of variants. */
export const VARIANT_PREFIX = 'packagevariant-';

/**
 * Of one package, by all controllers that open drafts because other packages changed. Where what they open is approved automatically, a ring that no
 * search sees, such as by functions, would otherwise publish without end.
 */
export const MAX_DRAFTS_OF_PACKAGE_PER_MINUTE = 5;
/** Namespaces, packages and policies whose last drafts are remembered. */
const MAX_RATES = 10_000;
/** Milliseconds of which the drafts are read that were opened before a rate is used first: after a minute without any, it permits all. */
const READ_MS = 5 * 60_000;

/** A limit on the drafts in a minute, of a package or of others together. */
export interface DraftRate {
  readonly of: string;
  readonly most: number;
  /** When the drafts that count were opened, which still exist, also as publications; from a time on. In milliseconds since the epoch. */
  opened(since: number): readonly number[];
}

/**
 * The drafts that controllers have opened in the last minute. A process begins with those that it finds: a limit that began at each start would
 * permit more the more often it is started.
 */
export class DraftRates {
  readonly #clock: Clock;
  readonly #rates = new LruCache<string, RateLimit>({ maxEntries: MAX_RATES });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a draft from each rate, and returns undefined; or from none, and returns the first that permits none, with the milliseconds until it does. */
  take<Rate extends DraftRate>(rates: readonly Rate[]): { readonly rate: Rate; readonly pauseMs: number } | undefined {
    const taken: RateLimit[] = [];
    const now = this.#clock.monotonic();
    for (const rate of rates) {
      const limit = this.#rates.get(rate.of) ?? this.#read(rate, now);
      this.#rates.set(rate.of, limit);
      const pauseMs = limit.take(rate.most, now);
      if (pauseMs > 0) {
        for (const other of taken) other.giveBack();
        return { rate, pauseMs };
      }
      taken.push(limit);
    }
    return undefined;
  }

  /** Returns a draft that was taken, and could not be opened. */
  giveBack({ of }: DraftRate): void {
    this.#rates.get(of)?.giveBack();
  }

  #read({ most, opened }: DraftRate, now: number): RateLimit {
    const limit = new RateLimit(most, now - READ_MS);
    const time = this.#clock.now();
    // The wall clock may have been set back.
    const ages = opened(time - READ_MS).map((at) => Math.max(0, time - at));
    for (const age of ages.sort((a, b) => b - a)) limit.spend(most, now - age);
    return limit;
  }
}

/** When the drafts with these beginnings of their workspaces were created, from a time on. */
export function openedSince(
  since: number,
  revisions: readonly PackageRevision[],
  ...prefixes: readonly string[]
): { readonly revision: PackageRevision; readonly at: number }[] {
  return revisions
    .filter(({ key }) => prefixes.some((prefix) => key.workspace.startsWith(prefix)))
    .map((revision) => ({ revision, at: Date.parse(createdAt(revision)) }))
    .filter(({ at }) => at >= since);
}

/** The rate of one package. */
export function rateOfPackage(
  store: Pick<RevisionStore, 'list'>,
  { namespace, repository, path }: { readonly namespace: string; readonly repository: string; readonly path: string },
): DraftRate {
  const siblings = () => store.list({ repository: `${namespace}/${repository}`, package: path });
  return {
    of: packageId(namespace, repository, path),
    most: MAX_DRAFTS_OF_PACKAGE_PER_MINUTE,
    opened: (since) => openedSince(since, siblings(), PROVIDERS_PREFIX, VARIANT_PREFIX).map(({ at }) => at),
  };
}

export function packageId(namespace: string, repository: string, path: string): string {
  return `${namespace}/${repository}/${path}`;
}
