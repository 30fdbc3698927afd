import { isDeepStrictEqual } from 'node:util';
import type { Forge, PullRequest } from '../../src/forge/forge.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';

/** Open pull requests that are read at the start. */
const MAX_OPEN = 5000;
/** Those that changed last, in any state, that are read at the start: what ended while no process ran. */
const MAX_RECENT = 100;
/** Those that one poll reads. */
const MAX_UPDATED = 1000;
/** Earlier pull requests of one branch whose reviews are read. */
const MAX_EARLIER = 5;
const MAX_BRANCHES = 10_000;
/** Prefix of the branches of proposals. */
const PROPOSED = 'proposed/';
const EPOCH = '1970-01-01T00:00:00Z';

interface Entry {
  readonly pull: PullRequest;
  /** The change may be one of several in the same second, which its time does not tell apart: read once more. */
  readonly isFresh: boolean;
}

/**
 * The pull requests of one repository to one branch, as they were last read. It holds the open ones, and the last one of each branch that it
 * was asked for. Everything is read once at the start; later only what changed. State is read again before every effect, so that what is
 * here decides only what to look at.
 */
export class PullRequests {
  readonly forge: Forge;
  readonly base: string;
  readonly #openMerging: () => Forge;
  #merging: Forge | undefined;
  #loading: Promise<void> | undefined;
  /** By head branch. */
  readonly #entries = new Map<string, Entry>();
  readonly #wanted = new Set<string>();
  /** By head branch, oldest first. */
  readonly #earlier = new LruCache<string, readonly number[]>({ maxEntries: MAX_BRANCHES });
  /** The time of the last change, by the clock of the host. */
  #since = EPOCH;

  /** `openMerging` opens the same repository with the rights to merge. */
  constructor(forge: Forge, base: string, openMerging: () => Forge = () => forge) {
    this.forge = forge;
    this.base = base;
    this.#openMerging = openMerging;
  }

  /** The repository with the rights to merge, which are used for nothing else. */
  get merging(): Forge {
    this.#merging ??= this.#openMerging();
    return this.#merging;
  }

  async close(): Promise<void> {
    await this.forge.close();
    await this.#merging?.close();
  }

  /**
   * The open pull request of a branch, else the last one, as it was last read; undefined if there is none. The same object as before means that
   * nothing has changed, its reviews included.
   */
  async ofBranch(branch: string, signal: AbortSignal): Promise<PullRequest | undefined> {
    await this.#load(signal);
    this.#wanted.add(branch);
    return this.#entries.get(branch)?.pull;
  }

  /** Reads what changed since the last call. Returns the head branches of the pull requests that have to be looked at. */
  async poll(signal: AbortSignal): Promise<readonly string[]> {
    await this.#load(signal);
    const updated = await this.forge.listUpdated(this.#since, MAX_UPDATED, signal);
    const branches = new Set<string>();
    for (const [branch, entry] of this.#entries) {
      if (!entry.isFresh) continue;
      // A copy, so that callers who compare look again.
      this.#entries.set(branch, { pull: { ...entry.pull }, isFresh: false });
      branches.add(branch);
    }
    for (const pull of [...updated].reverse()) if (this.note(pull)) branches.add(pull.head.branch);
    return [...branches];
  }

  /** Takes over what the host returned of a pull request. Returns whether it differs from what was known. */
  note(pull: PullRequest): boolean {
    const { branch, isSameRepository } = pull.head;
    if (pull.updatedAt > this.#since) this.#since = pull.updatedAt;
    const known = this.#entries.get(branch)?.pull;
    if (!isSameRepository) return false;
    if (pull.base.branch !== this.base) {
      // A user has changed what it is merged into: it is none of this branch any more.
      if (known?.number !== pull.number) return false;
      this.forget(branch);
      return true;
    }
    if (known !== undefined && known.number !== pull.number)
      this.#noteEarlier(branch, Math.min(known.number, pull.number));
    if (known === undefined && pull.state !== 'open' && !this.#wanted.has(branch)) return false;
    if (known !== undefined && isLater(known, pull)) return false;
    if (isDeepStrictEqual(known, pull)) return false;
    this.#entries.set(branch, { pull, isFresh: true });
    return true;
  }

  /** Numbers of former pull requests of a branch: what reviewers requested there still stands. */
  earlierOf(branch: string): readonly number[] {
    return this.#earlier.get(branch) ?? [];
  }

  /** Drops what is kept of a branch, except that it had a pull request: its proposal has ended, or the host has it no more. */
  forget(branch: string): void {
    const known = this.#entries.get(branch)?.pull;
    if (known !== undefined) this.#noteEarlier(branch, known.number);
    this.#wanted.delete(branch);
    this.#entries.delete(branch);
  }

  #noteEarlier(branch: string, number: number): void {
    const known = this.earlierOf(branch);
    if (!known.includes(number)) this.#earlier.set(branch, [...known, number].slice(-MAX_EARLIER));
  }

  async #load(signal: AbortSignal): Promise<void> {
    this.#loading ??= this.#readAll(signal).catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    await this.#loading;
  }

  async #readAll(signal: AbortSignal): Promise<void> {
    const recent = await this.forge.listUpdated(EPOCH, MAX_RECENT, signal);
    const open = await this.forge.listOpen(this.base, MAX_OPEN, signal);
    for (const { head } of recent) if (head.branch.startsWith(PROPOSED)) this.#wanted.add(head.branch);
    for (const pull of [...recent].reverse()) this.note(pull);
    for (const pull of open) this.note(pull);
    this.#wanted.clear();
  }
}

/** True if of two pull requests of one branch the first one counts: an open one, else the later one. */
function isLater(known: PullRequest, other: PullRequest): boolean {
  if (known.number === other.number) return false;
  if ((known.state === 'open') !== (other.state === 'open')) return known.state === 'open';
  return known.number > other.number;
}
