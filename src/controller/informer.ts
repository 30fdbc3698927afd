import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';
import { backoffDelay, sleep } from '../foundation/time/backoff.ts';
import type { Clock } from '../foundation/time/clock.ts';
import type { Client, SelectOptions } from '../resource/client/client.ts';
import type { KubernetesObject, ObjectKey, Stored } from '../resource/object/object.ts';
import { isOlder } from '../resource/object/resource-version.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { WatchEvent } from '../resource/storage/storage.ts';
import { isQuietWatch, STUCK_WATCH_MS } from '../resource/watch/quiet-watch.ts';
import { type IndexFunction, type InformerEvent, InformerStore } from './informer-store.ts';

export interface InformerOptions<T extends KubernetesObject> {
  readonly client: Client;
  readonly kind: Kind<T>;
  /** Default: all objects of the kind. */
  readonly selection?: SelectOptions;
  readonly clock: Clock;
  /** A number from 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
  /** Called with the error of each failed list, watch and handler; the informer retries. */
  readonly onError?: (error: unknown) => void;
  /** Called after every change of the store or of the informer's state. */
  readonly onChange?: () => void;
}

export type InformerHandler<T extends KubernetesObject> = (event: InformerEvent<T>) => void;

/** Failed watches in a row after which the informer lists again instead of resuming. */
const FAILURES_BEFORE_LIST = 3;
/** A watch that ends within this many milliseconds without an event counts as failed. */
const SHORT_WATCH_MS = 1000;

/**
 * Keeps a copy of the objects of one kind and notifies handlers of changes. It lists, then watches from that version; it
 * retries watches that end, fail, deliver nothing or expire, and failed lists, with backoff. Afterwards the store equals
 * the storage again, and handlers receive all differences, including deletions. Handlers see states, not every intermediate
 * change.
 */
export class Informer<T extends KubernetesObject = KubernetesObject> {
  readonly kind: Kind<T>;
  readonly #options: InformerOptions<T>;
  readonly #store = new InformerStore<T>();
  readonly #handlers = new Set<InformerHandler<T>>();
  readonly #stop = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  #isSynced = false;
  #running: Promise<void> | undefined;
  /** The version from which the watch resumes. */
  #version: string | undefined;
  /** The version of the last list that `refresh` put into the store, whose events the watch may still deliver. */
  #refreshed: string | undefined;
  /** As `#refreshed`, by namespace, for lists of one namespace. */
  readonly #refreshedIn = new Map<string, string>();
  /** Ends the present watch. */
  #watching: AbortController | undefined;
  #failures = 0;
  /** Watches since the last list or event that delivered nothing. */
  #quietWatches = 0;

  constructor(options: InformerOptions<T>) {
    this.kind = options.kind;
    this.#options = options;
    // A caller need not wait for the synchronisation; a stop before it is then no unhandled rejection.
    this.#synced.promise.catch(() => undefined);
  }

  /** True once the first list is in the store and all handlers have got it. */
  get synced(): boolean {
    return this.#isSynced;
  }

  /** Resolves when synced; rejects with Unavailable if the informer is stopped before. */
  whenSynced(): Promise<void> {
    return this.#synced.promise;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends the watch and resolves when it has ended. The store stays unchanged. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#synced.reject(new SluiceError('Unavailable', `the informer of ${this.kind.plural} was stopped`));
    await this.#running;
  }

  get(key: ObjectKey): Stored<T> | undefined {
    return this.#store.get(key);
  }

  /** All objects in the store, in no particular order. */
  list(): Stored<T>[] {
    return [...this.#store.values()];
  }

  /** The objects under one value of an index that `addIndex` made. */
  byIndex(name: string, value: string): Stored<T>[] {
    return this.#store.byIndex(name, value);
  }

  /** The objects of a namespace, in no particular order. */
  inNamespace(namespace: string): Stored<T>[] {
    return this.#store.inNamespace(namespace);
  }

  addIndex(name: string, of: IndexFunction<T>): void {
    this.#store.addIndex(name, of);
  }

  get hasHandlers(): boolean {
    return this.#handlers.size > 0;
  }

  /** Adds a handler, which gets every object in the store first. Returns a function that removes it. */
  addHandler(handler: InformerHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.#store.values()) this.#call(handler, { type: 'add', object });
    return () => {
      this.#handlers.delete(handler);
    };
  }

  /** Lists once and returns whether the store equals the storage, so that no event is on its way. Errors as of list. */
  async isCurrent(signal?: AbortSignal): Promise<boolean> {
    if (!this.#isSynced) return false;
    const { client, kind, selection } = this.#options;
    const { items } = await client.list(kind, { ...selection, ...(signal === undefined ? {} : { signal }) });
    return this.#store.equals(items);
  }

  /**
   * Lists once and puts the result into the store: when it resolves, the store contains every write that the storage acknowledged before
   * the call, however far behind the watch is. Errors as of list; the store is unchanged then. With a namespace, this concerns its objects
   * alone, and the list has no others; the informer must not select a namespace then.
   */
  async refresh(signal?: AbortSignal, namespace?: string): Promise<void> {
    const { client, kind, selection } = this.#options;
    const before = this.#reachedIn(namespace);
    const { items, resourceVersion } = await client.list(kind, {
      ...selection,
      ...(namespace === undefined ? {} : { namespace }),
      ...(signal === undefined ? {} : { signal }),
    });
    const wentBack = before !== undefined && isOlder(resourceVersion, before);
    // During the list, the watch or another list may have received newer objects.
    const reached = this.#reachedIn(namespace);
    if (!wentBack && reached !== undefined && isOlder(resourceVersion, reached)) return;
    // The storage was replaced, for instance from a backup: versions of before mean nothing, and its watch has to begin again.
    if (wentBack) this.#forgetVersions();
    if (namespace === undefined) {
      this.#replace(items, this.#newerThan(resourceVersion));
      this.#refreshed = resourceVersion;
    } else {
      this.#refreshedIn.set(namespace, resourceVersion);
      this.#notify(this.#store.replaceIn(namespace, items));
      this.#options.onChange?.();
    }
    if (wentBack) this.#watching?.abort();
  }

  /** The version of the storage that the objects of a namespace, or all, show at least; undefined before the first list. */
  #reachedIn(namespace: string | undefined): string | undefined {
    const refreshed = namespace === undefined ? undefined : this.#refreshedIn.get(namespace);
    return latest(latest(this.#version, this.#refreshed), refreshed);
  }

  /** Removes what a list of all objects has overtaken, and returns the namespaces of which the store has a newer list. */
  #newerThan(resourceVersion: string): ReadonlySet<string> {
    for (const [namespace, version] of this.#refreshedIn)
      if (!isOlder(resourceVersion, version)) this.#refreshedIn.delete(namespace);
    return new Set(this.#refreshedIn.keys());
  }

  #forgetVersions(): void {
    this.#version = undefined;
    this.#refreshed = undefined;
    this.#refreshedIn.clear();
  }

  /** Puts a list of all objects into the store, except into namespaces of which the store has a newer list. */
  #replace(items: readonly Stored<T>[], newer: ReadonlySet<string>): void {
    if (!this.#store.equals(items)) this.#notify(this.#store.replace(items, newer));
    this.#isSynced = true;
    this.#synced.resolve();
    this.#options.onChange?.();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        this.#version ??= await this.#list(signal);
        // A storage need not heed the abort of a list; a watch from here would not see it any more.
        if (signal.aborted) return;
        await this.#watch(this.#version, signal);
        continue;
      } catch (error) {
        if (signal.aborted) return;
        if (isQuietWatch(error)) {
          this.#noteQuiet();
          continue;
        }
        this.#failures += 1;
        if (isSluiceError(error, 'Expired') || this.#failures % FAILURES_BEFORE_LIST === 0) this.#version = undefined;
        this.#options.onError?.(error);
      }
      const { clock, random = Math.random } = this.#options;
      await sleep(clock, backoffDelay(this.#failures, { base: 100, max: 30_000, random }), signal);
    }
  }

  /** Nothing has to be reported: if the server has a problem, the next request fails. One that was restored from a backup is quiet for ever. */
  #noteQuiet(): void {
    this.#quietWatches += 1;
    if (this.#quietWatches % FAILURES_BEFORE_LIST === 0) this.#version = undefined;
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { client, kind, selection } = this.#options;
    const refreshed = this.#refreshed;
    const refreshedIn = new Map(this.#refreshedIn);
    const { items, resourceVersion } = await client.list(kind, { ...selection, signal });
    if (signal.aborted) return resourceVersion;
    // A refresh may have read a newer list meanwhile; the watch from here delivers its changes again.
    const isBehind =
      this.#refreshed !== undefined && this.#refreshed !== refreshed && isOlder(resourceVersion, this.#refreshed);
    if (!isBehind) {
      this.#refreshed = undefined;
      // A refresh from before this list says nothing about a storage that was replaced since.
      for (const [namespace, version] of refreshedIn)
        if (this.#refreshedIn.get(namespace) === version) this.#refreshedIn.delete(namespace);
      this.#replace(items, this.#newerThan(resourceVersion));
    }
    return resourceVersion;
  }

  /** Follows one watch to its end. Returns after a good one, throws after a bad one. */
  async #watch(from: string, signal: AbortSignal): Promise<void> {
    const { client, kind, selection, clock } = this.#options;
    const started = clock.monotonic();
    const end = new AbortController();
    this.#watching = end;
    const forward = () => end.abort();
    signal.addEventListener('abort', forward);
    const lasted = () => clock.monotonic() - started >= SHORT_WATCH_MS;
    try {
      const watch = client.watch(kind, { ...selection, resourceVersion: from, signal: end.signal });
      const iterator = watch[Symbol.asyncIterator]();
      for (;;) {
        const result = await this.#next(iterator, end);
        if (signal.aborted) return;
        if (result === undefined || end.signal.aborted)
          throw new SluiceError(
            'Timeout',
            `the watch of ${kind.plural} delivered neither an event nor a bookmark in time`,
          );
        if (result.done) break;
        this.#apply(result.value);
        this.#quietWatches = 0;
        if (this.#version !== from || lasted()) this.#failures = 0;
      }
    } finally {
      signal.removeEventListener('abort', forward);
      end.abort();
    }
    if (this.#version === from && !lasted())
      throw new SluiceError('Unavailable', `the watch of ${kind.plural} ended at once`);
  }

  /** Returns the next event; undefined if the watch delivers nothing for too long or is aborted. */
  #next(
    iterator: AsyncIterator<WatchEvent<T>>,
    end: AbortController,
  ): Promise<IteratorResult<WatchEvent<T>> | undefined> {
    const { clock } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<WatchEvent<T>> | undefined>();
    const cancel = clock.schedule(STUCK_WATCH_MS, () => end.abort());
    // Also after an abort that the storage does not heed the loop must continue.
    const giveUp = () => resolve(undefined);
    end.signal.addEventListener('abort', giveUp);
    iterator.next().then(resolve, reject);
    return promise.finally(() => {
      cancel();
      end.signal.removeEventListener('abort', giveUp);
    });
  }

  #apply(event: WatchEvent<T>): void {
    if (event.type === 'BOOKMARK') {
      this.#version = event.resourceVersion;
      this.#newerThan(event.resourceVersion);
      return;
    }
    const { resourceVersion, namespace = '' } = event.object.metadata;
    this.#version = resourceVersion;
    // The store already contains a later list, in which this object may be changed or deleted.
    const refreshed = latest(this.#refreshed, this.#refreshedIn.get(namespace));
    if (refreshed !== undefined && !isOlder(refreshed, resourceVersion)) return;
    this.#notify(event.type === 'DELETED' ? this.#store.remove(event.object) : this.#store.put(event.object));
    this.#options.onChange?.();
  }

  #notify(events: readonly InformerEvent<T>[]): void {
    for (const event of events) for (const handler of this.#handlers) this.#call(handler, event);
  }

  #call(handler: InformerHandler<T>, event: InformerEvent<T>): void {
    try {
      handler(event);
    } catch (error) {
      this.#options.onError?.(error);
    }
  }
}

function latest(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return isOlder(one, other) ? other : one;
}
