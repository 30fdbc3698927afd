import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import { nextSince } from '../../../src/forge/next-since.ts';
import type { ListReader } from '../../../src/forge/shared-lists.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';

const EPOCH = '1970-01-01T00:00:00Z';
/** Hosts record times in seconds: a change may be one of several until this after it was read. */
const SAME_SECOND_MS = 1000;

export interface ChangesOptions {
  /** What has changed is looked at once more so much later. Default: after its second. */
  readonly secondLookMs?: number;
  /** A list that another reader requested less than so long ago suffices, unless something has just changed. Default: none. */
  readonly maxAgeMs?: number;
  /** Numbers of those that the caller knows as open. */
  readonly open: Iterable<number>;
}

export interface Changes {
  /** Changed last first. */
  readonly pulls: readonly PullRequest[];
  /** Numbers of those to look at once more: their last change may have been one of several in the same second. */
  readonly again: readonly number[];
  /** When the host was read for it, in milliseconds of running time. */
  readonly readMs: number;
}

/**
 * Which pull requests of a repository have changed: what is open and what changed last at first, later what changed since. What was read is kept
 * until a call has read all that it needs, so that a failure loses nothing. What a call has returned, the caller has to keep until it is taken over.
 */
export class ChangedPulls {
  readonly #forge: Pick<Forge, 'listOpen' | 'listUpdated' | 'get'>;
  readonly #base: string;
  readonly #maxOpen: number;
  readonly #lists: ListReader;
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  /** The time of the last change in a list, by the clock of the host: what was read singly says nothing of the others. */
  #since: string | undefined;
  /** The changes that may be one of several, by number: their times, and when they were read, in milliseconds of running time. */
  readonly #fresh = new Map<number, { readonly updatedAt: string; readonly sinceMs: number }>();
  /** What was read and not returned yet, by number, and since when. */
  readonly #unseen = new Map<number, PullRequest>();
  #unseenMs: number | undefined;
  /** More had changed than a list has. */
  #isCut = false;

  /** `lists` is closed by the caller. */
  constructor(
    forge: Pick<Forge, 'listOpen' | 'listUpdated' | 'get'>,
    { base, maxOpen }: { readonly base: string; readonly maxOpen: number },
    lists: ListReader,
    clock: Pick<Clock, 'monotonic' | 'now'>,
  ) {
    this.#forge = forge;
    this.#base = base;
    this.#maxOpen = maxOpen;
    this.#lists = lists;
    this.#clock = clock;
  }

  /** Whether `begin` has succeeded. */
  get hasBegun(): boolean {
    return this.#since !== undefined;
  }

  /** Numbers of those whose last change may be one of several in the same second. */
  get fresh(): Iterable<number> {
    return this.#fresh.keys();
  }

  /** Reads the open ones, and `maxRecent` of those in any state that changed last, at or after `from`. */
  async begin(
    { from = EPOCH, maxRecent }: { readonly from?: string; readonly maxRecent: number },
    signal: AbortSignal,
  ): Promise<{ readonly recent: readonly PullRequest[]; readonly open: readonly PullRequest[] }> {
    const recent = await this.#forge.listUpdated(from, maxRecent, signal);
    const open = await this.#forge.listOpen(this.#base, this.#maxOpen, signal);
    // Not those that are open: others may have ended meanwhile, which are in the list of what changed since.
    this.#since = nextSince(from, recent, this.#clock.now());
    return { recent, open };
  }

  /** The caller has got to know a change: it is looked at once more. */
  note({ number, updatedAt }: PullRequest): void {
    this.#fresh.set(number, { updatedAt, sinceMs: this.#clock.monotonic() });
  }

  /** Reads what changed since the last call, or since `begin`. */
  async read(
    { secondLookMs = SAME_SECOND_MS, maxAgeMs = 0, open }: ChangesOptions,
    signal: AbortSignal,
  ): Promise<Changes> {
    const beganMs = this.#clock.monotonic();
    const known = this.#since ?? EPOCH;
    // What may have changed again in the same second has to be in the list.
    let since = known;
    for (const { updatedAt } of this.#fresh.values()) if (Date.parse(updatedAt) < Date.parse(since)) since = updatedAt;
    const wanted = { since, maxAgeMs: this.#fresh.size === 0 ? maxAgeMs : 0 };
    const { pulls, readMs, isComplete } = await this.#lists.updated(this.#forge, wanted, signal);
    this.#since = nextSince(known, pulls, this.#clock.now());
    this.#unseenMs ??= readMs;
    for (const pull of pulls) this.#unseen.set(pull.number, pull);
    if (!isComplete) this.#isCut = true;
    if (this.#isCut) await this.#readCut(open, signal);
    const again = [...this.#fresh].filter(([, { sinceMs }]) => beganMs - sinceMs >= secondLookMs);
    for (const [number] of again) this.#fresh.delete(number);
    const unseen = [...this.#unseen.values()].sort((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt));
    const changes = { pulls: unseen, again: again.map(([number]) => number), readMs: this.#unseenMs };
    this.#unseen.clear();
    this.#unseenMs = undefined;
    return changes;
  }

  /** Reads what may have changed without being in a list: those that are open, and singly those of the known ones that have ended. */
  async #readCut(known: Iterable<number>, signal: AbortSignal): Promise<void> {
    const open = await this.#forge.listOpen(this.#base, this.#maxOpen, signal);
    for (const pull of open) this.#unseen.set(pull.number, pull);
    const isOpen = new Set(open.map(({ number }) => number));
    const hasEnded = (number: number) => (this.#unseen.get(number)?.state ?? 'open') !== 'open';
    const ended = [...known].filter((number) => !isOpen.has(number) && !hasEnded(number));
    await Promise.all(
      ended.map(async (number) => {
        try {
          this.#unseen.set(number, await this.#forge.get(number, signal));
        } catch (error) {
          // Deleted, or too long for any list: neither ends by being read again.
          if (!isSluiceError(error, 'NotFound') && !isSluiceError(error, 'LimitExceeded')) throw error;
        }
      }),
    );
    this.#isCut = false;
  }
}
