import type { Clock } from '../../src/foundation/clock.ts';
import type { IndexChange } from '../../src/package/index/revision-index.ts';
import type { Finding } from '../../src/package/kernel/classify.ts';
import type { PackageRepository } from '../../src/package/package-repository.ts';
import type { RevisionStore } from '../../src/package/revision-store.ts';
import type { Repository } from '../../src/resource/kinds/repository.ts';
import { signingSecret } from '../signing.ts';
import { findingsOf } from './findings.ts';
import type { RepositoryReport } from './repository-status.ts';

/** Annotation of a Repository: any new value asks for a sync now. */
export const SYNC_ANNOTATION = 'sluice.dev/sync-requested-at';

export interface OpenRepositoryOptions {
  readonly store: RevisionStore;
  readonly clock: Clock;
  /** Milliseconds between two syncs, before jitter. */
  readonly interval: number;
  readonly random: () => number;
}

/** Every so many syncs that nobody asked for look at all refs; see `branchesFirst` for those in between. */
const EVERYTHING_EVERY = 10;

/** One repository in the store, and when it is looked at next. */
export class OpenRepository {
  readonly repository: PackageRepository;
  readonly #options: OpenRepositoryOptions;
  readonly #wanted: string;
  #syncedAt = 0;
  #nextSync = 0;
  #savedAt = 0;
  #maintainedAt = 0;
  #request: string | undefined;
  #ranOnceAt: string | undefined;
  #polls = 1;

  private constructor(object: Repository, repository: PackageRepository, options: OpenRepositoryOptions) {
    this.repository = repository;
    this.#options = options;
    this.#wanted = wantedOf(object);
    this.#savedAt = options.clock.now();
    this.#maintainedAt = options.clock.now();
    this.#synced(object);
  }

  /** Opens a repository with `open`, which passes on what changes, and adds it to the store. */
  static async open(
    object: Repository,
    options: OpenRepositoryOptions,
    open: (onChange: (changes: readonly IndexChange[]) => void) => Promise<PackageRepository>,
  ): Promise<OpenRepository> {
    let self: OpenRepository | undefined;
    const repository = await open((changes) => {
      if (self !== undefined) options.store.announce(changes);
    });
    try {
      // The store announces all revisions at once; before, nobody hears of them.
      options.store.add(repository);
    } catch (error) {
      await repository.close();
      throw error;
    }
    self = new OpenRepository(object, repository, options);
    return self;
  }

  /** False if the object asks for another repository, branch, folder or kind of use than what is open. */
  isFor(object: Repository): boolean {
    return this.#wanted === wantedOf(object);
  }

  isDue(object: Repository): boolean {
    const now = this.#options.clock.now();
    return now >= this.#nextSync || now >= this.#runOnceAt(object) || requestOf(object) !== this.#request;
  }

  /** Milliseconds until the next look. */
  nextLook(object: Repository): number {
    return Math.min(this.#nextSync, this.#runOnceAt(object)) - this.#options.clock.now();
  }

  /** Takes in what others did, and returns what of it is news. */
  async sync(object: Repository, signal: AbortSignal): Promise<Finding[]> {
    const isAskedFor = this.#options.clock.now() >= this.#runOnceAt(object) || requestOf(object) !== this.#request;
    const everything = isAskedFor || this.#polls % EVERYTHING_EVERY === 0;
    const changes = await this.repository.sync(signal, everything ? 'everything' : 'branches');
    this.#polls += 1;
    this.#synced(object);
    return changes.length === 0 ? [] : findingsOf(this.repository, changes);
  }

  /** Writes the index cache, if it has changed and the last write is long enough ago. */
  async saveCache(interval: number): Promise<void> {
    const now = this.#options.clock.now();
    if (now - this.#savedAt < interval) return;
    this.#savedAt = now;
    await this.repository.saveCache();
  }

  /** Packs what has piled up, if the last time is long enough ago. True if it did. */
  async maintain(interval: number): Promise<boolean> {
    const now = this.#options.clock.now();
    if (now - this.#maintainedAt < interval || !this.repository.git.capabilities.maintain) return false;
    this.#maintainedAt = now;
    await this.repository.git.maintain();
    return true;
  }

  facts(): NonNullable<RepositoryReport['facts']> {
    const { index } = this.repository;
    return {
      packageCount: index.packageCount,
      gitCommitHash: index.mainHead,
      syncedAt: this.#syncedAt,
      nextSyncAt: this.#nextSync,
      ranOnceAt: this.#ranOnceAt,
    };
  }

  close(): Promise<void> {
    return this.#options.store.remove(this.repository.repository);
  }

  #synced(object: Repository): void {
    const { clock, interval, random } = this.#options;
    const now = clock.now();
    if (now >= this.#runOnceAt(object)) this.#ranOnceAt = object.spec.sync?.runOnceAt;
    this.#request = requestOf(object);
    this.#syncedAt = now;
    this.#nextSync = now + interval * (0.9 + 0.2 * random());
  }

  /** When the one further sync that the object asks for is due; never if it has run or is no time. */
  #runOnceAt({ spec }: Repository): number {
    const wanted = spec.sync?.runOnceAt;
    const time = wanted === undefined || wanted === this.#ranOnceAt ? Number.NaN : Date.parse(wanted);
    return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
  }
}

function wantedOf(object: Repository): string {
  const { metadata, spec } = object;
  return JSON.stringify([metadata.uid, spec.type, spec.deployment ?? false, spec.git, signingSecret(object)]);
}

function requestOf({ metadata }: Repository): string | undefined {
  return metadata.annotations?.[SYNC_ANNOTATION];
}
