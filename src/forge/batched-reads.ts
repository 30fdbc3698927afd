/** Requests under way at the same time. */
const MAX_RUNNING = 3;

/**
 * Reads that arrive at the same time, or while requests are under way, share requests of at most `size` keys. Each result was read after the call
 * for it. `readMany` returns a result or an error for each key; where it rejects, all of them reject.
 */
export class BatchedReads<Key, Result> {
  readonly #size: number;
  readonly #readMany: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Result | Error>>;
  readonly #waiting = new Map<Key, PromiseWithResolvers<Result>>();
  #running = 0;

  constructor(size: number, readMany: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Result | Error>>) {
    this.#size = size;
    this.#readMany = readMany;
  }

  /** Rejects when `signal` aborts; the others that share the request go on. */
  async read(key: Key, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    const known = this.#waiting.get(key);
    const own = known ?? Promise.withResolvers<Result>();
    if (known === undefined) {
      this.#waiting.set(key, own);
      // All that are requested in this turn of the event loop are in.
      setImmediate(() => void this.#send());
    }
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await Promise.race([own.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', abort);
      // Its caller may have ended.
      own.promise.catch(() => undefined);
    }
  }

  async #send(): Promise<void> {
    if (this.#running >= MAX_RUNNING || this.#waiting.size === 0) return;
    const batch = new Map([...this.#waiting].slice(0, this.#size));
    for (const key of batch.keys()) this.#waiting.delete(key);
    this.#running += 1;
    try {
      const results = await this.#readMany([...batch.keys()]);
      for (const [key, { resolve, reject }] of batch) {
        const result = results.get(key);
        if (result === undefined) reject(new Error('it has no result'));
        else if (result instanceof Error) reject(result);
        else resolve(result);
      }
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    } finally {
      this.#running -= 1;
      void this.#send();
    }
  }
}
