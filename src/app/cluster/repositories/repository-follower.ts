import { OpenRepository } from '../../../../controllers/repository/open-repository.ts';
import { REMOTE_INTERVALS } from '../../../../controllers/repository/sync-pace.ts';
import type { SyncRequests } from '../../../../controllers/repository/sync-requests.ts';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { sleep } from '../../../foundation/time/backoff.ts';
import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../../resource/object/object.ts';
import { keyOfId } from '../../session/registered-repositories.ts';
import type { Session } from '../../session/session.ts';

const TICK_MS = 1000;
const RETRY_MS = 10_000;
const SYNC_TIMEOUT_MS = 60_000;
/** A first fetch that is aborted starts over. */
const OPEN_TIMEOUT_MS = 660_000;
const SAVE_INTERVAL_MS = 30_000;

/** A repository that could not be opened. */
interface Failure {
  readonly message: string;
  readonly retryAt: number;
}

export interface RepositoryFollowerOptions {
  readonly session: Session;
  readonly requests: SyncRequests;
  readonly warn: (subject: string, message: string) => void;
  /** Called with the id of each repository that was opened or could not be. */
  readonly onRead?: (id: string) => void;
}

/**
 * Opens the registered repositories and keeps them up to date, as the repository controller does, in a process without that controller: it
 * writes no status and no events.
 */
export class RepositoryFollower {
  readonly #session: Session;
  readonly #requests: SyncRequests;
  readonly #warn: (subject: string, message: string) => void;
  readonly #onRead: (id: string) => void;
  readonly #open = new Map<string, OpenRepository>();
  readonly #failures = new Map<string, Failure>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  #loop: Promise<void> | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor({ session, requests, warn, onRead = () => undefined }: RepositoryFollowerOptions) {
    this.#session = session;
    this.#requests = requests;
    this.#warn = warn;
    this.#onRead = onRead;
  }

  start(): void {
    const { clock } = this.#session;
    const { signal } = this.#stop;
    this.#unsubscribe = this.#requests.subscribe((key) => this.#startOne(key));
    const loop = async () => {
      while (!signal.aborted) {
        this.#tick();
        await sleep(clock, TICK_MS, signal);
      }
    };
    this.#loop = loop();
  }

  /** Resolves when each registered repository was opened or has failed, or after this time. */
  async opened(timeoutMs: number): Promise<void> {
    const { clock, readers } = this.#session;
    const { signal } = this.#stop;
    const end = clock.monotonic() + timeoutMs;
    const isPending = ({ metadata: { namespace, name, deletionTimestamp } }: Stored<Repository>) => {
      if (deletionTimestamp !== undefined) return false;
      const id = keyText({ namespace, name });
      return !this.#open.has(id) && !this.#failures.has(id);
    };
    while (readers.repositories.list().some(isPending) && clock.monotonic() < end && !signal.aborted)
      await sleep(clock, 20, signal);
  }

  /** `3 repositories read, 1 failed`, for the log. */
  get progress(): string {
    const [read, failed] = [this.#open.size, this.#failures.size];
    return `${read} ${read === 1 ? 'repository' : 'repositories'} read${failed === 0 ? '' : `, ${failed} failed`}`;
  }

  /** Resolves when nothing runs any more. The repositories stay open. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#unsubscribe?.();
    await this.#loop;
    await Promise.all(this.#running.values());
  }

  #tick(): void {
    const objects = this.#session.readers.repositories.list();
    const registered = new Set(objects.map((object) => keyText(keyOf(object))));
    for (const id of [...this.#open.keys(), ...this.#failures.keys()])
      if (!registered.has(id)) this.#startOne(keyOfId(id));
    for (const object of objects) if (this.#hasWork(object)) this.#startOne(keyOf(object));
  }

  /** False for most repositories most of the time, so that hundreds of them cost no more than this check each second. */
  #hasWork(object: Stored<Repository>): boolean {
    const key = keyOf(object);
    const id = keyText(key);
    if (object.metadata.deletionTimestamp !== undefined) return this.#open.has(id) || this.#failures.has(id);
    const state = this.#open.get(id);
    if (state === undefined) return this.#isOpeningDue(id);
    if (!state.isFor(object)) return this.#isOpeningDue(id);
    return state.isDue(object) || this.#requests.has(key);
  }

  #isOpeningDue(id: string): boolean {
    return this.#session.clock.monotonic() >= (this.#failures.get(id)?.retryAt ?? 0);
  }

  #startOne(key: ObjectKey): void {
    const id = keyText(key);
    if (this.#running.has(id) || this.#stop.signal.aborted) return;
    const running = this.#follow(key, id)
      .catch((error: unknown) => this.#noteFailure(id, error))
      .finally(() => this.#running.delete(id));
    this.#running.set(id, running);
  }

  async #follow(key: ObjectKey, id: string): Promise<void> {
    const { clock, readers, repositories, store } = this.#session;
    const object = readers.repositories.get(key);
    let state = this.#open.get(id);
    const isGone = object === undefined || object.metadata.deletionTimestamp !== undefined;
    if (state !== undefined && (isGone || !state.isPlaceOf(object))) {
      this.#open.delete(id);
      await state.close();
      state = undefined;
    }
    if (isGone) {
      this.#failures.delete(id);
      this.#requests.take(key);
      return;
    }
    if (state === undefined || !state.isFor(object)) {
      if (!this.#isOpeningDue(id)) return;
      const replaces = state?.syncedAt;
      const isPatient = this.#failures.has(id);
      const { repository, syncedAt } = await this.#within(OPEN_TIMEOUT_MS, (signal) =>
        repositories.openAvailable(object, readers.repositories.list(), { signal, isPatient, replaces }),
      );
      const pace = { intervals: REMOTE_INTERVALS, random: Math.random };
      this.#open.set(id, new OpenRepository(object, repository, { store, clock, ...pace, syncedAt }));
      this.#failures.delete(id);
      this.#onRead(id);
      return;
    }
    const opened = state;
    const request = this.#requests.take(key);
    if (request !== undefined) opened.addRequest(request);
    if (!opened.isDue(object)) return;
    await this.#within(SYNC_TIMEOUT_MS, (signal) => opened.sync(object, signal));
    this.#failures.delete(id);
    await opened.saveCache(SAVE_INTERVAL_MS);
  }

  async #within<Result>(timeoutMs: number, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const limit = new AbortController();
    const cancel = this.#session.clock.schedule(timeoutMs, () => limit.abort());
    try {
      return await work(AbortSignal.any([this.#stop.signal, limit.signal]));
    } catch (error) {
      if (!limit.signal.aborted) throw error;
      throw new SluiceError('Timeout', `the remote did not respond within ${timeoutMs / 1000} s`, { cause: error });
    } finally {
      cancel();
    }
  }

  #noteFailure(id: string, error: unknown): void {
    if (this.#stop.signal.aborted) return;
    const message = messageOf(error);
    if (this.#failures.get(id)?.message !== message) this.#warn(id, `cannot read the repository: ${message}; retrying`);
    this.#failures.set(id, { message, retryAt: this.#session.clock.monotonic() + RETRY_MS });
    this.#onRead(id);
  }
}
