import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import type { IndexChange } from '../../src/package/index/state/index-delta.ts';
import type { Finding } from '../../src/package/kernel/classify.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { signingSecret } from '../../src/package/store/opening/signing.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { PUSH_OPTIONS_ANNOTATION, TRANSPORT_ANNOTATION } from '../../src/package/upstream/remote-settings.ts';
import { type Repository, TRUSTED_KEYS_ANNOTATION } from '../../src/resource/kinds/porch/repository.ts';
import { findingsOf, mainFinding, wasDeleted } from './findings.ts';
import type { RepositoryReport } from './repository-status.ts';
import { type PollIntervals, SyncPace } from './sync-pace.ts';
import type { SyncRequest, SyncScope } from './sync-requests.ts';
import { UnsettledChanges } from './unsettled-changes.ts';

/** Annotation of a Repository: any new value requests a sync. */
export const SYNC_ANNOTATION = 'sluice.dev/sync-requested-at';

export interface OpenRepositoryOptions {
  readonly store: RevisionStore;
  readonly clock: Clock;
  readonly intervals: PollIntervals;
  readonly random: () => number;
  /** See `findingsOf`. Default false. */
  readonly hasPeer?: boolean;
  /** Milliseconds since the epoch, if it was opened without its remote: it is synced as soon as possible. */
  readonly syncedAt?: number | undefined;
}

/** Milliseconds after which a sync lists all refs; see `branchesFirst` for those in between. */
const FULL_SYNC_INTERVAL_MS = 300_000;
/** Milliseconds to the next sync while changes cannot be judged. */
const RECHECK_INTERVAL_MS = 1000;

/** One repository in the store, with the schedule of its syncs. */
export class OpenRepository {
  readonly repository: PackageRepository;
  readonly #options: OpenRepositoryOptions;
  readonly #wanted: string;
  readonly #place: string;
  readonly #pace: SyncPace;
  /** Milliseconds since the epoch. */
  #syncedAt: number;
  /** The last sync, and the last one of all refs, in running time. */
  #readAt: number;
  #everythingAt: number;
  /** Milliseconds from the last sync to the next one. */
  #pause: number;
  /** In running time. */
  #savedAt: number;
  #request: string | undefined;
  #ranOnceAt: string | undefined;
  /** A sync that was requested and that has not run yet. */
  #requested: SyncScope | undefined;
  #webhookAt: number | undefined;
  /** The head of the main branch at the last sync. */
  #mainHead: Oid | undefined;
  readonly #unsettled: UnsettledChanges;

  /** For a repository that was added to the store just now. */
  constructor(object: Repository, repository: PackageRepository, options: OpenRepositoryOptions) {
    this.repository = repository;
    // The head that an earlier process saw, if the branch was rewritten since.
    this.#mainHead = repository.index.leftBehind ?? repository.index.mainHead;
    this.#options = options;
    const isDeleted = (revision: PackageRevision) =>
      options.hasPeer !== true || revision.recordOid === undefined || wasDeleted(revision, repository.trust);
    this.#unsettled = new UnsettledChanges(options.clock, isDeleted);
    this.#wanted = wantedOf(object);
    this.#place = placeOf(object);
    this.#pace = new SyncPace(options.intervals, options.random);
    this.#pause = this.#pace.first();
    const isRead = options.syncedAt === undefined;
    this.#savedAt = options.clock.monotonic();
    this.#readAt = isRead ? this.#savedAt : Number.NEGATIVE_INFINITY;
    this.#everythingAt = this.#readAt;
    this.#syncedAt = options.syncedAt ?? options.clock.now();
    if (!isRead) this.#requested = 'everything';
    this.#noteObject(object);
  }

  /** False if the object was changed so that the repository has to be opened again. */
  isFor(object: Repository): boolean {
    return this.#wanted === wantedOf(object);
  }

  /** False if it is another object, or names another repository, branch or folder, than when it was opened: then its packages are others. */
  isPlaceOf(object: Repository): boolean {
    return this.#place === placeOf(object);
  }

  /** Milliseconds since the epoch. */
  get syncedAt(): number {
    return this.#syncedAt;
  }

  isDue(object: Repository): boolean {
    return this.#isPollDue() || this.#isRequested(object);
  }

  /** Records a request, with the refs that it is about. Polls rely on webhooks alone. */
  addRequest({ scope, isWebhook }: SyncRequest): void {
    if (isWebhook) {
      this.#webhookAt = this.#options.clock.now();
      this.#pace.noteWebhook();
    }
    if (this.#requested !== 'everything') this.#requested = scope ?? this.#requested;
  }

  /** Milliseconds until the next sync. */
  nextSync(object: Repository): number {
    const { clock } = this.#options;
    return Math.min(this.#readAt + this.#pause - clock.monotonic(), this.#runOnceAt(object) - clock.now());
  }

  /** Reads changes by other processes, and returns the findings about them. */
  async sync(object: Repository, signal: AbortSignal): Promise<Finding[]> {
    const isByObject = this.#isRequestedByObject(object);
    const isPoll = !this.#isRequested(object);
    const { clock } = this.#options;
    const isLongAgo = clock.monotonic() - this.#everythingAt >= FULL_SYNC_INTERVAL_MS;
    const everything = isByObject || isLongAgo || this.#requested === 'everything';
    const changes = await this.#read(signal, everything ? 'everything' : 'branches');
    this.#syncedAt = clock.now();
    this.#readAt = clock.monotonic();
    if (everything) this.#everythingAt = this.#readAt;
    this.#requested = undefined;
    this.#pause = this.#pace.next(changes.length > 0, isPoll);
    this.#noteObject(object);
    // What a process wrote whose marks came before these refs is in Git by now.
    if (this.#unsettled.awaitSync) await this.#read(signal, 'everything');
    const settled = this.#unsettled.takeSettled();
    if (!this.#unsettled.isEmpty) this.#pause = Math.min(this.#pause, RECHECK_INTERVAL_MS);
    const main = await this.#checkMain();
    const findings = settled.length === 0 ? [] : await findingsOf(this.repository, settled, this.#options.hasPeer);
    return main === undefined ? findings : [main, ...findings];
  }

  async #read(signal: AbortSignal, scope: SyncScope): Promise<readonly IndexChange[]> {
    const { repository } = this;
    const changes = await repository.sync(signal, scope);
    this.#unsettled.add(changes, (name) => repository.index.get(name));
    return changes;
  }

  /** Compares the main branch with its state at the last sync; changes by this process count too. */
  async #checkMain(): Promise<Finding | undefined> {
    const before = this.#mainHead;
    const { mainHead } = this.repository.index;
    if (mainHead === undefined || mainHead === before) return undefined;
    const finding = await mainFinding(this.repository, before);
    this.#mainHead = mainHead;
    return finding;
  }

  /** Writes the index cache, if it has changed and the last write is long enough ago. */
  async saveCache(interval: number): Promise<void> {
    const now = this.#options.clock.monotonic();
    if (now - this.#savedAt < interval) return;
    this.#savedAt = now;
    await this.repository.saveCache();
  }

  facts(): NonNullable<RepositoryReport['facts']> {
    const { index, trust } = this.repository;
    const unmarked = trust.reports.problem;
    return {
      packageCount: index.packageCount,
      gitCommitHash: index.mainHead,
      syncedAt: this.#syncedAt,
      nextSyncAt: this.#syncedAt + this.#pause,
      ranOnceAt: this.#ranOnceAt,
      webhookAt: this.#webhookAt,
      remoteNote: this.repository.git.remoteNote,
      refusedPushes: this.repository.refusals.refusedPushes(),
      signingProblem: trust.signingProblem(),
      trustProblems: trust.problems(),
      statementProblems: unmarked === undefined ? index.flaws : [...index.flaws, unmarked],
    };
  }

  close(): Promise<void> {
    return this.#options.store.remove(this.repository.id);
  }

  #isPollDue(): boolean {
    return this.#options.clock.monotonic() - this.#readAt >= this.#pause;
  }

  #isRequested(object: Repository): boolean {
    return this.#requested !== undefined || this.#isRequestedByObject(object);
  }

  #isRequestedByObject(object: Repository): boolean {
    return this.#options.clock.now() >= this.#runOnceAt(object) || requestOf(object) !== this.#request;
  }

  /** Marks the requests of the object up to now as served. */
  #noteObject(object: Repository): void {
    if (this.#options.clock.now() >= this.#runOnceAt(object)) this.#ranOnceAt = object.spec.sync?.runOnceAt;
    this.#request = requestOf(object);
  }

  /** Returns the time of the sync of `runOnceAt`; Infinity if it has run or the value is not a time. */
  #runOnceAt({ spec }: Repository): number {
    const wanted = spec.sync?.runOnceAt;
    const time = wanted === undefined || wanted === this.#ranOnceAt ? Number.NaN : Date.parse(wanted);
    return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
  }
}

function placeOf({ metadata, spec }: Repository): string {
  return JSON.stringify([metadata.uid, spec.type, spec.git?.repo, spec.git?.branch, spec.git?.directory]);
}

function wantedOf(object: Repository): string {
  const { metadata, spec } = object;
  const names = [TRANSPORT_ANNOTATION, PUSH_OPTIONS_ANNOTATION, TRUSTED_KEYS_ANNOTATION];
  const annotations = names.map((name) => metadata.annotations?.[name]);
  return JSON.stringify([
    metadata.uid,
    spec.type,
    spec.deployment ?? false,
    spec.git,
    signingSecret(object),
    ...annotations,
  ]);
}

function requestOf({ metadata }: Repository): string | undefined {
  return metadata.annotations?.[SYNC_ANNOTATION];
}
