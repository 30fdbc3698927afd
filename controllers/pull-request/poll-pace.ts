import type { Clock } from '../../src/foundation/time/clock.ts';

/** Between two polls of a repository with proposals: while there are changes, once there were none for some minutes, and with webhooks. */
const POLL_MS = 10_000;
const QUIET_POLL_MS = 30_000;
const REPORTED_POLL_MS = 300_000;
const QUIET_AFTER_MS = 300_000;
/** Until a change is read that may be an own one. */
const UNSEEN_POLL_MS = 2000;
/** Webhooks make Sluice poll a repository for at most a fifth of the time, however many arrive. */
const PAUSE_FACTOR = 4;
const MAX_PAUSE_MS = 3000;
/** A message and the poll that finds its change are at most this far apart. */
const SAME_CHANGE_MS = 60_000;
/** A change that no message reported proves that not all arrive. */
const MISSED_MS = 6 * 3_600_000;

interface Repository {
  /** Milliseconds since the epoch. */
  changedAt: number;
  pausedUntil: number;
  /** Of the last change: undefined once it is known whether a message reported it. */
  unreportedAt?: number | undefined;
  reportedAt?: number | undefined;
  missedAt?: number | undefined;
}

/**
 * How often the pull requests of repositories are polled. Where webhooks report changes, a slow poll finds missed messages; one change that
 * none reported makes the polls as frequent as without webhooks, for some hours.
 */
export class PollPace {
  readonly #clock: Clock;
  readonly #repositories = new Map<string, Repository>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until a poll may begin. */
  waitMs(repository: string): number {
    return Math.max(0, (this.#repositories.get(repository)?.pausedUntil ?? 0) - this.#clock.now());
  }

  /** Sluice has opened or found a pull request. */
  noteOpened(repository: string): void {
    this.#of(repository).changedAt = this.#clock.now();
  }

  /** A verified webhook has reported something of a pull request. */
  noteMessage(repository: string): void {
    const of = this.#of(repository);
    of.reportedAt = this.#clock.now();
    if (of.unreportedAt !== undefined && of.reportedAt - of.unreportedAt <= SAME_CHANGE_MS) of.unreportedAt = undefined;
  }

  /** A poll has ended that took this long. `isChanged`: it has found changes of others. */
  notePoll(repository: string, { tookMs, isChanged }: { readonly tookMs: number; readonly isChanged: boolean }): void {
    const of = this.#of(repository);
    const now = this.#clock.now();
    of.pausedUntil = now + Math.min(MAX_PAUSE_MS, tookMs * PAUSE_FACTOR);
    if (of.unreportedAt !== undefined && now - of.unreportedAt > SAME_CHANGE_MS) {
      of.missedAt = of.unreportedAt;
      of.unreportedAt = undefined;
    }
    if (!isChanged) return;
    of.changedAt = now;
    const isReported = of.reportedAt !== undefined && now - of.reportedAt <= SAME_CHANGE_MS;
    if (!isReported) of.unreportedAt ??= now;
  }

  /** Milliseconds until the next poll, without a message. */
  nextMs(repository: string, hasUnseen: boolean): number {
    if (hasUnseen) return UNSEEN_POLL_MS;
    const { changedAt, unreportedAt, reportedAt, missedAt } = this.#of(repository);
    const now = this.#clock.now();
    if (now - changedAt <= QUIET_AFTER_MS) return POLL_MS;
    const isMissing = unreportedAt !== undefined || (missedAt !== undefined && now - missedAt <= MISSED_MS);
    return reportedAt === undefined || isMissing ? QUIET_POLL_MS : REPORTED_POLL_MS;
  }

  /** It has no proposals any more. Whether its webhooks work stays known. */
  rest(repository: string): void {
    const known = this.#repositories.get(repository);
    if (known?.reportedAt === undefined) this.#repositories.delete(repository);
  }

  #of(repository: string): Repository {
    const known = this.#repositories.get(repository) ?? { changedAt: 0, pausedUntil: 0 };
    this.#repositories.set(repository, known);
    return known;
  }
}
