import { setTimeout as pause } from 'node:timers/promises';
import { type ErrorCode, isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import {
  POLICIES_CONDITION,
  type PoliciesReport,
  READ_ERROR_CONDITION,
  type Repository,
  repositoryKind,
} from '../../resource/kinds/porch/repository.ts';
import { type NewCondition, setCondition } from '../../resource/object/condition.ts';
import { deepFreeze, keyOf, keyText, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type {
  DeleteOptions,
  ListOptions,
  ListResult,
  Storage,
  WatchEvent,
  WatchOptions,
} from '../../resource/storage/storage.ts';

export interface OnDemandRepositoriesOptions {
  readonly store: RevisionStore;
  readonly clock: Clock;
  /** Milliseconds until a watch reports that a repository does not respond. */
  readonly remoteTimeoutMs: number;
  /** Opens a repository by its id; see `RegisteredRepositories.open`. */
  open(id: string, signal: AbortSignal): Promise<void>;
  /** Reads the policies that an opened Repository names; undefined if it names none. */
  policies(object: Stored<Repository>): Promise<PoliciesReport | undefined>;
}

type Status = NonNullable<Repository['status']>;

/**
 * Repository objects in a process without a repository controller: the API of a data folder without a running server. A status is what
 * this process has found, and is kept in memory. A watch reads the repositories that it selects, as the controller of a server does all
 * the time; so does an update of `spec.sync.runOnceAt`, which requests to read a repository again and is not stored either.
 */
export class OnDemandRepositories implements Storage<Repository> {
  readonly kind = repositoryKind;
  readonly subResources: readonly string[];
  readonly #inner: Storage<Repository>;
  readonly #options: OnDemandRepositoriesOptions;
  readonly #statuses = new Map<string, Status>();
  /** The time of the last request to read a repository again. */
  readonly #requests = new Map<string, string>();

  constructor(inner: Storage<Repository>, options: OnDemandRepositoriesOptions) {
    this.subResources = inner.subResources;
    this.#inner = inner;
    this.#options = options;
  }

  async get(context: RequestContext, key: ObjectKey): Promise<Stored<Repository>> {
    return this.#withStatus(await this.#inner.get(context, key));
  }

  async list(context: RequestContext, options?: ListOptions): Promise<ListResult<Repository>> {
    const page = await this.#inner.list(context, options);
    return { ...page, items: page.items.map((object) => this.#withStatus(object)) };
  }

  /** One event for each selected repository when it was read, and one before if that takes long. Ends after the last. */
  async *watch(context: RequestContext, options: WatchOptions): AsyncGenerator<WatchEvent<Repository>> {
    const { items } = await this.#inner.list(context, options);
    const event = (object: Stored<Repository>) => ({ type: 'MODIFIED', object: this.#withStatus(object) }) as const;
    const timer = new AbortController();
    const late = pause(this.#options.remoteTimeoutMs, 'late' as const, { signal: timer.signal }).catch(
      () => 'late' as const,
    );
    const stop = new AbortController();
    const signal = AbortSignal.any([options.signal, stop.signal]);
    const reads = new Map(items.map((object) => [object, this.#read(object, signal).then(() => object)]));
    try {
      for (let isLate = false; reads.size > 0; ) {
        const next = await Promise.race([...reads.values(), ...(isLate ? [] : [late])]);
        if (options.signal.aborted) return;
        if (next !== 'late') {
          reads.delete(next);
          yield event(next);
          continue;
        }
        isLate = true;
        for (const object of reads.keys()) {
          this.#report(object, 'Reconciling', slowMessage(object.metadata.name, this.#options.remoteTimeoutMs));
          yield event(object);
        }
      }
    } finally {
      timer.abort();
      stop.abort();
      await Promise.all(reads.values());
    }
  }

  create(context: RequestContext, object: Repository): Promise<Stored<Repository>> {
    return this.#inner.create(context, object);
  }

  async update(context: RequestContext, object: Repository): Promise<Stored<Repository>> {
    const stored = await this.#inner.get(context, keyOf(object));
    const id = keyText(keyOf(stored));
    const { runOnceAt: wanted, ...sync } = object.spec.sync ?? {};
    const known = stored.spec.sync?.runOnceAt;
    this.#statuses.delete(id);
    if (wanted !== undefined && wanted !== known) this.#requests.set(id, wanted);
    const kept = { ...sync, ...(known === undefined ? {} : { runOnceAt: known }) };
    const { sync: _sync, ...rest } = object.spec;
    const spec = Object.keys(kept).length === 0 && stored.spec.sync === undefined ? rest : { ...rest, sync: kept };
    // A process that only reads cannot write objects.
    if (sameValue(spec, stored.spec) && sameValue(object.metadata, stored.metadata)) return this.#withStatus(stored);
    return this.#withStatus(await this.#inner.update(context, { ...object, spec }));
  }

  async updateSubResource(context: RequestContext, name: string, object: Repository): Promise<Stored<Repository>> {
    return this.#inner.updateSubResource(context, name, object);
  }

  delete(context: RequestContext, key: ObjectKey, options?: DeleteOptions): Promise<Stored<Repository>> {
    this.#statuses.delete(keyText(key));
    return this.#inner.delete(context, key, options);
  }

  async #read(object: Stored<Repository>, signal: AbortSignal): Promise<void> {
    const { store, open, policies } = this.#options;
    const id = keyText(keyOf(object));
    const request = this.#requests.get(id);
    try {
      const isOpen = store.findRepository(id) !== undefined;
      await open(id, signal);
      // What is opened is read.
      if (isOpen && request !== undefined) await store.repository(id).sync(signal);
      const { index } = store.repository(id);
      const { inForce, ...known } = (await policies(object)) ?? {};
      const facts: Status = {
        packageCount: index.packageCount,
        ...(index.mainHead === undefined ? {} : { gitCommitHash: index.mainHead }),
        ...(request === undefined ? {} : { observedRunOnceAt: request }),
        ...(inForce === undefined ? {} : { policies: structuredClone(inForce) as Status['policies'] }),
      };
      const condition = 'status' in known ? { type: POLICIES_CONDITION, ...known } : undefined;
      this.#report(object, 'Ready', 'Repository Ready', facts, condition);
    } catch (error) {
      const message = messageOf(error);
      this.#report(
        object,
        'Error',
        message,
        {},
        { type: READ_ERROR_CONDITION, status: 'True', reason: codeOf(error), message },
      );
    }
    this.#requests.delete(id);
  }

  #report(
    object: Stored<Repository>,
    reason: 'Ready' | 'Error' | 'Reconciling',
    message: string,
    facts: Status = {},
    further?: NewCondition,
  ): void {
    const now = this.#options.clock.now();
    const ready = setCondition(
      undefined,
      { type: 'Ready', status: reason === 'Ready' ? 'True' : 'False', reason, message },
      now,
    );
    const conditions = further === undefined ? ready : setCondition(ready, further, now);
    this.#statuses.set(keyText(keyOf(object)), deepFreeze({ conditions, ...facts }));
  }

  #withStatus({ status: _stored, ...object }: Stored<Repository>): Stored<Repository> {
    const status = this.#statuses.get(keyText(keyOf(object)));
    return deepFreeze(status === undefined ? object : { ...object, status });
  }
}

/** The code of an error for a client: it decides the exit code of a command. Errors of the system are no defects. */
function codeOf(error: unknown): ErrorCode {
  if (isSluiceError(error)) return error.code;
  return error instanceof Error && 'syscall' in error ? 'Unavailable' : 'Internal';
}

/** The message about a repository that does not respond in time. */
export function slowMessage(name: string, timeoutMs: number): string {
  return `it did not respond within ${timeoutMs / 1000} s; "sluice repo sync ${name}" waits longer`;
}
