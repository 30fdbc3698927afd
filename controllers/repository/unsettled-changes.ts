import type { Clock } from '../../src/foundation/time/clock.ts';
import type { IndexChange } from '../../src/package/index/state/index-delta.ts';
import { behindMark, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';

interface Unsettled {
  readonly before: PackageRevision | undefined;
  after: PackageRevision | undefined;
  /** The mark that the revision is behind, as the sync before showed it. */
  behind: number | undefined;
  isSettled: boolean;
  /** In running time. */
  readonly seenAt: number;
}

/** Milliseconds after which a process that deleted a draft has noted that in the ledger, which it does after it has written to Git. */
const MAX_NOTE_MS = 5000;

/**
 * Changes of revisions until they can be judged. The trust ledger can know of a later write of another process than the refs which a sync has
 * fetched: then a record looks older than the last one, although nothing is wrong. Each write is in Git before it is in the ledger, so that a
 * fetch that began after the ledger was read has it: what is behind the same mark after one more sync was really set back. And where another process
 * deletes drafts, the ledger shows some time after Git that it was no push.
 */
export class UnsettledChanges {
  readonly #changes = new Map<string, Unsettled>();
  readonly #clock: Clock;
  readonly #isDeleted: (revision: PackageRevision) => boolean;

  /** `isDeleted` is false for a draft that is gone, while another process may have deleted it and not have noted that yet. */
  constructor(clock: Clock, isDeleted: (revision: PackageRevision) => boolean) {
    this.#clock = clock;
    this.#isDeleted = isDeleted;
  }

  /** Adds the changes of one sync, and of all earlier ones what became of their revisions; `find` returns a revision as it is now. */
  add(changes: readonly IndexChange[], find: (name: string) => PackageRevision | undefined): void {
    for (const [name, change] of this.#changes) change.after = find(name);
    for (const { before, after } of changes) {
      const name = (after ?? before)?.name ?? '';
      const earlier = this.#changes.get(name);
      const seenAt = this.#clock.monotonic();
      if (earlier === undefined)
        this.#changes.set(name, { before, after, behind: undefined, isSettled: false, seenAt });
      else earlier.after = after;
    }
    for (const change of this.#changes.values()) {
      const behind = change.after === undefined ? undefined : behindMark(change.after);
      change.isSettled = behind === undefined || behind === change.behind;
      change.behind = behind;
    }
  }

  /** True if one more sync is needed to judge all of them. */
  get awaitSync(): boolean {
    return [...this.#changes.values()].some(({ isSettled }) => !isSettled);
  }

  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** Removes and returns those that can be judged. Of several changes of a revision they are one. */
  takeSettled(): IndexChange[] {
    const settled: IndexChange[] = [];
    for (const [name, { before, after, isSettled, seenAt }] of this.#changes) {
      const isNoted = after !== undefined || before === undefined || this.#isDeleted(before);
      if (!isSettled || !(isNoted || this.#clock.monotonic() - seenAt >= MAX_NOTE_MS)) continue;
      this.#changes.delete(name);
      if (before !== after) settled.push({ before, after });
    }
    return settled;
  }
}
