import type { Clock } from '../foundation/time/clock.ts';

/** Between two polls of a repository with proposals: while there are changes, once there were none for some minutes, and with webhooks. */
const POLL_MS = 10_000;
const QUIET_POLL_MS = 30_000;
const REPORTED_POLL_MS = 300_000;
const QUIET_AFTER_MS = 300_000;
/** Until a change is read that may be an own one. */
const UNSEEN_POLL_MS = 2000;
/** Webhooks make Sluice read lists of a repository for at most a fifth of the time, and what they name for half of it, however many arrive. */
const PAUSE_FACTOR = 4;
const READ_PAUSE_FACTOR = 1;
const MAX_PAUSE_MS = 3000;
/** A message and the poll that finds its change are at most this far apart. */
const SAME_CHANGE_MS = 60_000;
/** A change that no message reported proves that not all arrive. */
const MISSED_MS = 6 * 3_600_000;

interface Repository {
  /** These are in milliseconds of running time. */
  changedAt: number;
  readPausedUntil: number;
  /** Of the last change: undefined once it is known whether a message reported it. */
  unreportedAt?: number | undefined;
  reportedAt?: number | undefined;
  missedAt?: number | undefined;
}

/** A repository can have proposals on several hosts, or for several credentials, each with a list of its own. */
interface List {
  /** When it was requested last, in milliseconds of running time. */
  readonly polledAt: number;
  readonly pausedUntil: number;
}

/**
 * How often the pull requests of repositories are polled. Where webhooks report changes, a slow poll finds missed messages; one change that
 * none reported makes the polls as frequent as without webhooks, for some hours.
 */
export class PollPace {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #repositories = new Map<string, Repository>();
  /** By what reads the list. */
  readonly #lists = new WeakMap<object, List>();

  /** `pollMs` is the milliseconds between two polls while there are changes. */
  constructor(clock: Clock, pollMs = POLL_MS) {
    this.#clock = clock;
    this.#pollMs = pollMs;
  }

  /** Milliseconds until a list may be read. */
  waitMs(list: object): number {
    return Math.max(0, (this.#lists.get(list)?.pausedUntil ?? 0) - this.#clock.monotonic());
  }

  /** Milliseconds until what a message names may be read. */
  readWaitMs(repository: string): number {
    return Math.max(0, (this.#repositories.get(repository)?.readPausedUntil ?? 0) - this.#clock.monotonic());
  }

  /** Whether messages report the changes of pull requests, as far as is known. */
  isReported(repository: string): boolean {
    const known = this.#repositories.get(repository);
    return known?.reportedAt !== undefined && !this.#isMissing(known);
  }

  /** What messages named was read, which took this long. */
  noteRead(repository: string, tookMs: number): void {
    const of = this.#of(repository);
    of.changedAt = this.#clock.monotonic();
    of.readPausedUntil = this.#clock.monotonic() + Math.min(MAX_PAUSE_MS, tookMs * READ_PAUSE_FACTOR);
  }

  /** Sluice has opened or found a pull request. */
  noteOpened(repository: string): void {
    this.#of(repository).changedAt = this.#clock.monotonic();
  }

  /** A verified webhook has reported something of a pull request. */
  noteMessage(repository: string): void {
    const of = this.#of(repository);
    of.reportedAt = this.#clock.monotonic();
    if (of.unreportedAt !== undefined && of.reportedAt - of.unreportedAt <= SAME_CHANGE_MS) of.unreportedAt = undefined;
  }

  /** A list was read, which took this long. `isChanged`: it has changes of others, and was requested at `readMs`. */
  notePoll(
    repository: string,
    list: object,
    { tookMs, isChanged, readMs }: { readonly tookMs: number; readonly isChanged: boolean; readonly readMs?: number },
  ): void {
    const of = this.#of(repository);
    const now = this.#clock.monotonic();
    this.#lists.set(list, {
      polledAt: readMs ?? now,
      pausedUntil: now + Math.min(MAX_PAUSE_MS, tookMs * PAUSE_FACTOR),
    });
    of.readPausedUntil = now + Math.min(MAX_PAUSE_MS, tookMs * READ_PAUSE_FACTOR);
    if (of.unreportedAt !== undefined && now - of.unreportedAt > SAME_CHANGE_MS) {
      of.missedAt = of.unreportedAt;
      of.unreportedAt = undefined;
    }
    if (!isChanged) return;
    of.changedAt = now;
    const isReported = of.reportedAt !== undefined && now - of.reportedAt <= SAME_CHANGE_MS;
    if (!isReported) of.unreportedAt ??= now;
  }

  /** Milliseconds between two lists, without a message. `hasUnseen`: a change waits for it. */
  nextMs(repository: string, hasUnseen: boolean): number {
    const of = this.#of(repository);
    const isRecent = this.#clock.monotonic() - of.changedAt <= QUIET_AFTER_MS;
    // Another change at the same time is reported too.
    if (this.isReported(repository)) return isRecent ? QUIET_POLL_MS : REPORTED_POLL_MS;
    if (hasUnseen) return UNSEEN_POLL_MS;
    return isRecent ? this.#pollMs : QUIET_POLL_MS;
  }

  /** Milliseconds until a list is due. */
  dueMs(repository: string, list: object, hasUnseen: boolean): number {
    const polledAt = this.#lists.get(list)?.polledAt;
    return polledAt === undefined
      ? 0
      : Math.max(0, polledAt + this.nextMs(repository, hasUnseen) - this.#clock.monotonic());
  }

  /** It has no proposals any more. Whether its webhooks work stays known. */
  rest(repository: string): void {
    if (this.#repositories.get(repository)?.reportedAt === undefined) this.#repositories.delete(repository);
  }

  /** Nothing of it is read any more. */
  forget(repository: string): void {
    this.#repositories.delete(repository);
  }

  #isMissing({ unreportedAt, missedAt }: Repository): boolean {
    return unreportedAt !== undefined || (missedAt !== undefined && this.#clock.monotonic() - missedAt <= MISSED_MS);
  }

  #of(repository: string): Repository {
    const known = this.#repositories.get(repository) ?? { changedAt: Number.NEGATIVE_INFINITY, readPausedUntil: 0 };
    this.#repositories.set(repository, known);
    return known;
  }
}
