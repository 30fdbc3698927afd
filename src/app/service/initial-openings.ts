import type { ObjectReader } from '../../controller/object-reader.ts';
import { sleep } from '../../foundation/time/backoff.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../resource/object/object.ts';

export interface InitialOpeningsOptions {
  readonly clock: Clock;
  /** The registered repositories. */
  readonly repositories: Pick<ObjectReader<Repository>, 'get' | 'list'>;
  /** Milliseconds without an opening after which this process does not wait for the remaining repositories any more. */
  readonly timeoutMs: number;
  /** False for a repository that requests on several repositories do not wait for. Default: they wait for all. */
  readonly isExpected?: (repository: Stored<Repository>) => boolean;
}

const POLL_MS = 10;
/** Milliseconds for all openings together: few processors need long for many repositories. */
const MAX_WAIT_MS = 60_000;
const NEVER = new AbortController().signal;

/**
 * The first opening of each registered repository by this process. A repository counts as read once it was opened or could not be: what a
 * client reads before that could lack what an earlier process has acknowledged.
 */
export class InitialOpenings {
  readonly #options: InitialOpeningsOptions;
  readonly #read = new Set<string>();
  readonly #startedAt: number;
  readonly #listeners = new Set<(key: ObjectKey) => void>();
  #progressAt: number;
  #isOver = false;

  constructor(options: InitialOpeningsOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
    this.#progressAt = this.#startedAt;
  }

  /** Records that a repository, `<namespace>/<name>`, was opened or could not be. */
  note(id: string): void {
    if (this.#isOver || this.#read.has(id)) return;
    this.#read.add(id);
    this.#progressAt = this.#options.clock.now();
  }

  /** Calls the listener with each repository that a request waits for, so that it is opened first. */
  onWanted(listener: (key: ObjectKey) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves when a repository was read or is not registered, when the time is over, or when the signal aborts. */
  async whenRead(key: ObjectKey, signal?: AbortSignal): Promise<void> {
    if (!this.#isOver && !this.#isRead(key)) for (const listener of this.#listeners) listener(key);
    await this.#until(() => this.#isRead(key), signal);
  }

  /** As `whenRead`, for all registered repositories that are selected. Default: all. */
  async whenAllRead(selects: (key: ObjectKey) => boolean = () => true, signal?: AbortSignal): Promise<void> {
    const { repositories, isExpected = () => true } = this.#options;
    const isPending = (key: ObjectKey) => selects(key) && !this.#isRead(key);
    const isAwaited = (object: Stored<Repository>) => isPending(keyOf(object)) && isExpected(object);
    await this.#until(() => !repositories.list().some(isAwaited), signal);
  }

  /** Resolves as `whenAllRead`; requests wait for nothing from then on, also not for repositories that are registered later. */
  async finish(signal: AbortSignal): Promise<void> {
    await this.whenAllRead(undefined, signal);
    this.#isOver = true;
    this.#read.clear();
  }

  #isRead(key: ObjectKey): boolean {
    return this.#read.has(keyText(key)) || this.#options.repositories.get(key) === undefined;
  }

  async #until(isDone: () => boolean, signal: AbortSignal = NEVER): Promise<void> {
    const { clock, timeoutMs } = this.#options;
    while (!this.#isOver && !signal.aborted && !isDone()) {
      const now = clock.now();
      this.#isOver = now - this.#progressAt >= timeoutMs || now - this.#startedAt >= MAX_WAIT_MS;
      if (!this.#isOver) await sleep(clock, POLL_MS, signal);
    }
  }
}
