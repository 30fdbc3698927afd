import type { Mergeability, MergeMethod, MergeObstacle } from '../../../src/forge/forge-merging.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';

/** What is merged, and what the host shows of it: a change of any of these is a reason for another attempt. */
export interface MergeSubject {
  readonly number: number;
  readonly head: string;
  readonly method: MergeMethod;
  /** Changes with reviews, comments and texts, RFC 3339. */
  readonly updatedAt: string;
  /** Changes with checks and the base, where the host states it. */
  readonly mergeability: Mergeability | undefined;
}

interface RefusedMerge {
  readonly of: MergeSubject;
  readonly obstacle: MergeObstacle;
  readonly text: string;
  readonly delayMs: number;
  /** When it was refused, in milliseconds of running time, as `until`. */
  readonly at: number;
  readonly until: number;
}

/** Between two attempts while nothing has changed: at first, doubled with each, and at most. Not all hosts show when a check has succeeded. */
const RETRY_MS = 20_000;
const MAX_RETRY_MS = 600_000;

/** The merges that hosts have refused, by target: each request counts as content of the host, which limits those by the hour. */
export class MergeAttempts {
  readonly #clock: Clock;
  readonly #refused = new Map<string, RefusedMerge>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Why the merge is not to be requested now, in the words of the host; undefined if it is. A method that was refused is final for this head:
   * `readMethods` returns those that the host permits now, if it states them.
   */
  async obstacleTo(
    target: string,
    subject: MergeSubject,
    readMethods: () => Promise<readonly MergeMethod[] | undefined>,
  ): Promise<string | undefined> {
    const known = this.#refused.get(target);
    if (known === undefined || !isSameHead(known.of, subject)) return undefined;
    const isSame = isUnchanged(known.of, subject);
    if (isSame && this.#clock.monotonic() < known.until) return known.text;
    if (known.obstacle !== 'method') return undefined;
    const permitted = await readMethods();
    if (permitted === undefined ? !isSame : permitted.includes(subject.method)) return undefined;
    this.noteRefused(target, subject, known);
    return known.text;
  }

  /** The host has refused a merge, for this reason. */
  noteRefused(target: string, of: MergeSubject, { obstacle, text }: Pick<RefusedMerge, 'obstacle' | 'text'>): void {
    const before = this.#refused.get(target);
    const first = obstacle === 'method' ? MAX_RETRY_MS : RETRY_MS;
    const isSame = before !== undefined && isUnchanged(before.of, of);
    const delayMs = isSame ? Math.min(MAX_RETRY_MS, Math.max(first, before.delayMs * 2)) : first;
    const at = this.#clock.monotonic();
    this.#refused.set(target, { of, obstacle, text, delayMs, at, until: at + delayMs });
  }

  /** The host has reported something, which may be a check that it does not show: the next attempt need not wait for longer than the first one. */
  noteMessage(target: string): void {
    const known = this.#refused.get(target);
    if (known === undefined || known.obstacle === 'method') return;
    this.#refused.set(target, { ...known, until: Math.min(known.until, known.at + RETRY_MS) });
  }

  /** Milliseconds until the next attempt, if nothing changes before; undefined if none waits for its time. */
  dueMs(target: string): number | undefined {
    const due = (this.#refused.get(target)?.until ?? 0) - this.#clock.monotonic();
    return due > 0 ? due : undefined;
  }

  forget(target: string): void {
    this.#refused.delete(target);
  }
}

function isSameHead(one: MergeSubject, other: MergeSubject): boolean {
  return one.number === other.number && one.head === other.head && one.method === other.method;
}

function isUnchanged(one: MergeSubject, other: MergeSubject): boolean {
  return isSameHead(one, other) && one.updatedAt === other.updatedAt && one.mergeability === other.mergeability;
}
