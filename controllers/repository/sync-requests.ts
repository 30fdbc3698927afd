import { commentText } from '../../src/forge/comments/topic-comment.ts';
import type { Comment } from '../../src/forge/forge.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import { digest } from '../../src/foundation/text/canonical-json.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** See `PackageRepository.sync`. */
export type SyncScope = 'branches' | 'everything';

/** The requests since the last `take`. */
export interface SyncRequest {
  /** The refs to sync; undefined if no sync was requested. */
  readonly scope: SyncScope | undefined;
  /** A webhook reported one of them. */
  readonly isWebhook: boolean;
}

/** Requests to evaluate the checks of commits again that are kept of one repository. */
const MAX_RERUNS = 100;

/** A pull request that a webhook reported, as the message shows it. */
export interface ReportedPull {
  readonly number: number;
  /** A review, or a comment, was reported: the pull request may be the same as before. */
  readonly isReview: boolean;
  readonly isComment: boolean;
  /** RFC 3339. */
  readonly updatedAt?: string | undefined;
  readonly state?: string | undefined;
  /** Undefined for the head of a fork. */
  readonly head?: { readonly branch: string; readonly commit: string } | undefined;
}

/** A comment as the message about its creation has it, whose sender is its author. */
export interface WrittenComment {
  readonly id: string;
  /** Login. */
  readonly author: string;
  readonly body: string;
}

/** What is to be read of the pull requests of a repository, besides what has changed. */
export interface ReviewRequest {
  /** Commits whose checks are to be evaluated again. */
  readonly reruns: ReadonlySet<string>;
  /** A merge queue waits for checks. */
  readonly mergeQueue: boolean;
  /** The pull requests that webhooks have reported, by number. */
  readonly pulls: ReadonlyMap<number, ReportedPull>;
}

interface WaitingReview extends ReviewRequest {
  readonly reruns: Set<string>;
  mergeQueue: boolean;
  readonly pulls: Map<number, ReportedPull>;
}

/** Who reads pull requests: each gets all that was reported. */
const READERS = ['proposals', 'users'] as const;
type Reader = (typeof READERS)[number];

/** Reported pull requests of one repository that are kept; the slow poll finds others. */
const MAX_PULLS = 1000;

/** Comments that are remembered as they were written. */
const MAX_WRITTEN = 10_000;

/** Shortest interval between two wake-ups of one repository. */
const MIN_INTERVAL_MS = 250;

/**
 * Requests for syncs that come from no object but, for instance, from a webhook. They are hints and not kept on disk, since a
 * starting process syncs everything anyway. A request during a sync leads to another sync after it.
 */
export class SyncRequests {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, SyncRequest>();
  /** Repositories that were woken within the last interval, and whether a request arrived since. */
  readonly #recentlyWoken = new Map<string, boolean>();
  readonly #reviews = new Map<Reader, Map<string, WaitingReview>>(READERS.map((reader) => [reader, new Map()]));
  /** Digests of the authors and texts of comments, by repositories and ids. */
  readonly #written = new LruCache<string, string>({ maxEntries: MAX_WRITTEN });
  readonly #listeners = new Set<(repository: ObjectKey) => void>();
  readonly #checkListeners = new Set<(repository: ObjectKey, commit: string) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records the message of a webhook about a repository, and wakes its controllers: at once, or after the interval if it was woken recently. */
  add(repository: ObjectKey, scope: SyncScope | undefined): void {
    this.#add(repository, { scope, isWebhook: true });
  }

  /** Requests a sync as `add` does, which no webhook has caused: polls stay as frequent as they are. */
  addOwn(repository: ObjectKey, scope: SyncScope): void {
    this.#add(repository, { scope, isWebhook: false });
  }

  /** Records what the next `takeReview` of each reader returns. Does not wake. */
  addReview(
    repository: ObjectKey,
    hint: { readonly rerun: string } | { readonly pull: ReportedPull } | 'merge-queue',
  ): void {
    const key = keyText(repository);
    for (const byKey of this.#reviews.values()) {
      const waiting = byKey.get(key) ?? { reruns: new Set<string>(), mergeQueue: false, pulls: new Map() };
      byKey.set(key, waiting);
      if (hint === 'merge-queue') waiting.mergeQueue = true;
      else if ('rerun' in hint) {
        if (waiting.reruns.size < MAX_RERUNS) waiting.reruns.add(hint.rerun);
      } else if (waiting.pulls.size < MAX_PULLS) {
        const { pull } = hint;
        const before = waiting.pulls.get(pull.number);
        const isReview = pull.isReview || before?.isReview === true;
        const isComment = pull.isComment || before?.isComment === true;
        waiting.pulls.set(pull.number, { ...pull, isReview, isComment });
      }
    }
  }

  /** Returns and removes what waits for the pull requests of a repository. */
  takeReview(repository: ObjectKey, reader: Reader): ReviewRequest | undefined {
    const key = keyText(repository);
    const byKey = this.#reviews.get(reader);
    const waiting = byKey?.get(key);
    byKey?.delete(key);
    return waiting;
  }

  /** A check of a commit has ended that Sluice has not set. Wakes only those who wait for it. */
  addCheck(repository: ObjectKey, commit: string): void {
    for (const listener of this.#checkListeners) listener(repository, commit);
  }

  /** Calls `listener` for each `addCheck`; the returned function ends the subscription. */
  onCheck(listener: (repository: ObjectKey, commit: string) => void): () => void {
    this.#checkListeners.add(listener);
    return () => this.#checkListeners.delete(listener);
  }

  /** Remembers how a comment was written, so that others cannot change it unnoticed. Does not wake. */
  addWritten(repository: ObjectKey, { id, author, body }: WrittenComment): void {
    this.#written.set(`${keyText(repository)} ${id}`, writtenDigest(author, body));
  }

  /** Whether a comment is as a message has shown it to be written; undefined without such a message. */
  isAsWritten(repository: ObjectKey, { id, author, body }: Comment): boolean | undefined {
    const written = this.#written.get(`${keyText(repository)} ${id}`);
    return written === undefined ? undefined : written === writtenDigest(author, body);
  }

  /** True if a request waits for a repository. */
  has(repository: ObjectKey): boolean {
    return this.#waiting.has(keyText(repository));
  }

  /** Wakes the controllers of a repository without a sync, as soon as `add` does: what it reports has changed. */
  wake(repository: ObjectKey): void {
    this.#wake(repository, keyText(repository));
  }

  /** Returns and removes the request that waits for a repository. */
  take(repository: ObjectKey): SyncRequest | undefined {
    const key = keyText(repository);
    const request = this.#waiting.get(key);
    this.#waiting.delete(key);
    return request;
  }

  /** Calls `enqueue` for each repository to wake; the returned function ends the subscription. */
  subscribe(enqueue: (repository: ObjectKey) => void): () => void {
    this.#listeners.add(enqueue);
    return () => this.#listeners.delete(enqueue);
  }

  #add(repository: ObjectKey, { scope, isWebhook }: SyncRequest): void {
    const key = keyText(repository);
    const before = this.#waiting.get(key);
    this.#waiting.set(key, {
      scope: before?.scope === 'everything' ? before.scope : (scope ?? before?.scope),
      isWebhook: isWebhook || before?.isWebhook === true,
    });
    this.#wake(repository, key);
  }

  #wake(repository: ObjectKey, key: string): void {
    if (this.#recentlyWoken.has(key)) {
      this.#recentlyWoken.set(key, true);
      return;
    }
    this.#recentlyWoken.set(key, false);
    this.#clock.schedule(MIN_INTERVAL_MS, () => {
      const again = this.#recentlyWoken.get(key);
      this.#recentlyWoken.delete(key);
      if (again === true) this.#wake(repository, key);
    });
    for (const enqueue of this.#listeners) enqueue(repository);
  }
}

function writtenDigest(author: string, body: string): string {
  return digest(JSON.stringify([author, commentText(body)]));
}
