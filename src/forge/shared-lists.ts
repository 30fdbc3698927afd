import { Mutex } from '../foundation/concurrency/mutex.ts';
import type { Clock } from '../foundation/time/clock.ts';
import type { Forge, PullRequest } from './forge.ts';
import { nextSince } from './next-since.ts';

/** Pull requests that one list reads, and that wait for a reader. */
const MAX_UPDATED = 1000;

export interface UpdatedPulls {
  /** Changed last first. */
  readonly pulls: readonly PullRequest[];
  /** When the last list of the host was requested that is in it, in milliseconds of running time. */
  readonly readMs: number;
  /** False if more may have changed than one list has: the later calls do not return it either. */
  readonly isComplete: boolean;
}

export interface WantedPulls {
  /** RFC 3339. */
  readonly since: string;
  /** A list that was requested less than so long ago suffices, whichever reader requested it; in milliseconds. */
  readonly maxAgeMs: number;
}

/** One of the readers of a repository. */
export interface ListReader {
  /**
   * The pull requests that changed, in any state: all since the last call, and those at or after `since` where the host is read; at most the 1,000
   * that changed last. Rejects as `Forge.listUpdated` does.
   */
  updated(forge: Pick<Forge, 'listUpdated'>, wanted: WantedPulls, signal: AbortSignal): Promise<UpdatedPulls>;
  close(): void;
}

interface Repository {
  /** One list at a time: a later one must not be followed by what an earlier one has. */
  readonly lists: Mutex;
  /** By reader, what it has not taken yet, by number; undefined where that is not known, so that it has to read the host. */
  readonly waiting: Map<ListReader, Map<number, PullRequest> | undefined>;
  readMs: number;
  /** The time of the last change in a list. */
  since: string | undefined;
}

/** Lists of the pull requests that changed, which the readers of one repository share: what one of them reads, the others get too. */
export class SharedLists {
  readonly #clock: Clock;
  readonly #repositories = new Map<string, Repository>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `id` names the repository, its host and the credentials. */
  reader(id: string): ListReader {
    const of = this.#repositories.get(id) ?? {
      lists: new Mutex(),
      waiting: new Map(),
      readMs: Number.NEGATIVE_INFINITY,
      since: undefined,
    };
    this.#repositories.set(id, of);
    const reader: ListReader = {
      updated: (forge, { since, maxAgeMs }, signal) =>
        of.lists.run(async () => {
          signal.throwIfAborted();
          const isRecent = of.waiting.get(reader) !== undefined && this.#clock.monotonic() - of.readMs < maxAgeMs;
          const list = (from: string) => forge.listUpdated(from, MAX_UPDATED, signal);
          const isComplete = isRecent || (await this.#read(of, reader, list, since));
          const pulls = [...(of.waiting.get(reader)?.values() ?? [])];
          of.waiting.set(reader, new Map());
          return { pulls: pulls.sort((a, b) => timeOf(b) - timeOf(a)), readMs: of.readMs, isComplete };
        }),
      close: () => {
        of.waiting.delete(reader);
        if (of.waiting.size === 0) this.#repositories.delete(id);
      },
    };
    of.waiting.set(reader, undefined);
    return reader;
  }

  /** Returns whether the list has all that changed. */
  async #read(
    of: Repository,
    reader: ListReader,
    list: (since: string) => Promise<readonly PullRequest[]>,
    since: string,
  ): Promise<boolean> {
    const readMs = this.#clock.monotonic();
    // A reader can know later changes than the lists have, which the others need all the same.
    const isBehind = of.since !== undefined && Date.parse(of.since) < Date.parse(since);
    const pulls = await list(isBehind ? (of.since ?? since) : since);
    of.readMs = readMs;
    of.since ??= since;
    of.since = nextSince(of.since, pulls, this.#clock.now());
    const isComplete = pulls.length < MAX_UPDATED;
    if (of.waiting.get(reader) === undefined) of.waiting.set(reader, new Map());
    for (const [other, waiting] of of.waiting) {
      for (const pull of pulls) waiting?.set(pull.number, pull);
      // Its own list shows it what is missing here. One that does not read any more must not keep all of them.
      if (other !== reader && (!isComplete || (waiting?.size ?? 0) > MAX_UPDATED)) of.waiting.set(other, undefined);
    }
    return isComplete;
  }
}

function timeOf({ updatedAt }: PullRequest): number {
  return Date.parse(updatedAt);
}
