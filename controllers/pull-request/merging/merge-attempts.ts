import type { Mergeability, MergeMethod, MergeObstacle } from '../../../src/forge/forge-merging.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';

/** What is merged, and what is known of it: a change of any of these is a reason for another attempt. */
export interface MergeSubject {
  readonly number: number;
  readonly head: string;
  readonly method: MergeMethod;
  /** The head of the branch that it is merged into, where heads have to contain that. */
  readonly base?: string | undefined;
  /** Changes with reviews, comments and texts, RFC 3339. */
  readonly updatedAt: string;
  /** Changes with checks and the base, where the host states it. */
  readonly mergeability?: Mergeability | undefined;
  /** Why Sluice must not have it merged now, by the rules of policies. */
  readonly closedBy?: string | undefined;
}

/** Why it was not merged. */
export interface UnmergedReason {
  /** Undefined if not the host is the reason. */
  readonly obstacle: MergeObstacle | undefined;
  readonly text: string;
  /** Milliseconds until the next attempt, at first. Default: by the obstacle. */
  readonly firstMs?: number;
}

interface UnmergedPull extends UnmergedReason {
  readonly of: MergeSubject;
  readonly delayMs: number;
  /** When that was, in milliseconds of running time, as `until` and `unknownSinceMs`. */
  readonly at: number;
  readonly until: number;
  /** Since when the host has not found out whether this head can be merged. */
  readonly unknownSinceMs: number | undefined;
}

/** Between two attempts while nothing has changed: at first, doubled with each, and at most. Not all hosts show when a check has succeeded. */
const RETRY_MS = 20_000;
const MAX_RETRY_MS = 600_000;
const RETRY_OF: Readonly<Partial<Record<MergeObstacle, number>>> = { unknown: 5000, method: MAX_RETRY_MS };

/**
 * The merges that Sluice has tried and that were not made, by what they publish or deliver: each request counts as content of the host, which limits
 * those by the hour.
 */
export class MergeAttempts {
  readonly #clock: Clock;
  readonly #unmerged = new Map<string, UnmergedPull>();
  /** The pull request of each that this process has put into the merge queue of the host; undefined: none of it is there by Sluice. */
  readonly #queued = new Map<string, number | undefined>();

  /** The attempts that may be running, with their heads, and whether the host has reported something about these since they began. */
  readonly #begun = new Map<string, { readonly head: string; readonly isReported: boolean }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Why the merge is not to be requested now, in the words of the last attempt; undefined if it is. A method that was refused is final for this head:
   * `readMethods` returns those that the host permits now, if it states them.
   */
  async obstacleTo(
    key: string,
    subject: MergeSubject,
    readMethods: () => Promise<readonly MergeMethod[] | undefined>,
  ): Promise<string | undefined> {
    const text = await this.#obstacleTo(key, subject, readMethods);
    // An attempt that ended with an error has left its own.
    this.#begun.delete(key);
    if (text === undefined) this.#begun.set(key, { head: subject.head, isReported: false });
    return text;
  }

  async #obstacleTo(
    key: string,
    subject: MergeSubject,
    readMethods: () => Promise<readonly MergeMethod[] | undefined>,
  ): Promise<string | undefined> {
    const known = this.#unmerged.get(key);
    if (known === undefined || !isSameHead(known.of, subject)) return undefined;
    const isSame = isUnchanged(known.of, subject);
    if (isSame && this.#clock.monotonic() < known.until) return known.text;
    if (known.obstacle !== 'method') return undefined;
    const permitted = await readMethods();
    if (permitted === undefined ? !isSame : permitted.includes(subject.method)) return undefined;
    this.noteUnmerged(key, subject, known);
    return known.text;
  }

  /** It was not merged, for this reason. Returns the milliseconds until the next attempt, if nothing changes before. */
  noteUnmerged(key: string, of: MergeSubject, { obstacle, text, firstMs }: UnmergedReason): number {
    const before = this.#unmerged.get(key);
    const first = firstMs ?? (obstacle === undefined ? RETRY_MS : (RETRY_OF[obstacle] ?? RETRY_MS));
    const isReported = this.#begun.get(key)?.isReported === true;
    this.#begun.delete(key);
    const isSame = before !== undefined && isUnchanged(before.of, of) && !isReported;
    const delayMs = isSame ? Math.min(MAX_RETRY_MS, Math.max(first, before.delayMs * 2)) : first;
    const at = this.#clock.monotonic();
    const unknownSinceMs = obstacle === 'unknown' ? at - this.unknownMs(key, of) : undefined;
    const common = { of, obstacle, text, ...(firstMs === undefined ? {} : { firstMs }) };
    this.#unmerged.set(key, { ...common, unknownSinceMs, delayMs, at, until: at + delayMs });
    return delayMs;
  }

  /** For how long the host has not found out whether this head can be merged, in milliseconds. */
  unknownMs(key: string, subject: MergeSubject): number {
    const { of, unknownSinceMs } = this.#unmerged.get(key) ?? {};
    if (of === undefined || unknownSinceMs === undefined || !isSameHead(of, subject)) return 0;
    return this.#clock.monotonic() - unknownSinceMs;
  }

  /**
   * The host has reported something, at this head if given, which may be a check that it does not show: the next attempt need not wait for longer than
   * the first one. Returns whether it is due sooner than before.
   */
  noteMessage(key: string, head?: string): boolean {
    const begun = this.#begun.get(key);
    if (begun !== undefined && (head === undefined || head === begun.head))
      this.#begun.set(key, { ...begun, isReported: true });
    const known = this.#unmerged.get(key);
    if (known === undefined || known.obstacle === 'method') return false;
    if (head !== undefined && head !== known.of.head) return false;
    const until = Math.min(known.until, known.at + RETRY_MS);
    this.#unmerged.set(key, { ...known, until });
    return until < known.until;
  }

  /** Milliseconds until the next attempt, if nothing changes before; undefined if none waits for its time. */
  dueMs(key: string): number | undefined {
    const due = (this.#unmerged.get(key)?.until ?? 0) - this.#clock.monotonic();
    return due > 0 ? due : undefined;
  }

  /** Sluice has put a pull request into the merge queue of the host; undefined: none is there, or not by Sluice. */
  noteQueued(key: string, number: number | undefined): void {
    this.#queued.set(key, number);
  }

  /** False if Sluice has not put it there: where Sluice merges nothing, others may have. What an earlier process did is unknown. */
  mayHaveQueued(key: string, number: number): boolean {
    return !this.#queued.has(key) || this.#queued.get(key) === number;
  }

  /** Nothing is to be merged now. What waits in the queue is still known. */
  forgetUnmerged(key: string): void {
    this.#unmerged.delete(key);
    this.#begun.delete(key);
  }

  forget(key: string): void {
    this.#unmerged.delete(key);
    this.#begun.delete(key);
    this.#queued.delete(key);
  }
}

function isSameHead(one: MergeSubject, other: MergeSubject): boolean {
  const isSamePull = one.number === other.number && one.head === other.head && one.base === other.base;
  return isSamePull && one.method === other.method;
}

function isUnchanged(one: MergeSubject, other: MergeSubject): boolean {
  if (!isSameHead(one, other) || one.updatedAt !== other.updatedAt) return false;
  return one.mergeability === other.mergeability && one.closedBy === other.closedBy;
}
