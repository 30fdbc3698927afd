import { Limiter } from '../../foundation/concurrency/limiter.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type WorkerOptions, WorkerProcess } from './worker-process.ts';

export interface PoolOptions extends WorkerOptions {
  /** Maximum number of busy workers, as long as none is slow. */
  readonly concurrency: number;
}

/** Milliseconds after which a worker counts as slow, so that a function that hangs does not block others. */
const SLOW_AFTER_MS = 2_000;
/** There are never more workers than this many times the concurrency. */
const MAX_SLOW_FACTOR = 4;
/** After this time idle workers are ended, except one, which stays warm. */
const IDLE_MS = 30_000;
/** A worker is replaced after this many uses, before leaks of its functions add up. */
const MAX_USES = 1_000;

interface Idle {
  readonly worker: WorkerProcess;
  readonly cancel: () => void;
}

/** Keeps workers, and lends each to one caller at a time, in the order of the calls. Starts none before the first call. */
export class WorkerPool {
  readonly #options: PoolOptions;
  readonly #limiter: Limiter;
  readonly #uses = new Map<WorkerProcess, number>();
  /** The one that was used last is last. */
  readonly #idle: Idle[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { concurrency, clock } = options;
    this.#limiter = new Limiter({
      ...{ maxRunning: concurrency, maxWithSlow: concurrency * MAX_SLOW_FACTOR, slowAfterMs: SLOW_AFTER_MS, clock },
    });
  }

  /**
   * Lends a worker that is ready. One that is killed meanwhile has ended when this settles, and is replaced. Rejects with what `action`
   * rejects with, with the signal's reason while it waits, and with Unavailable if workers cannot be started and after `close`.
   */
  async use<Result>(signal: AbortSignal, action: (worker: WorkerProcess) => Promise<Result>): Promise<Result> {
    const release = await this.#limiter.acquire(signal);
    const over = Promise.withResolvers<void>();
    this.#underWay.add(over.promise);
    try {
      const worker = this.#takeIdle() ?? this.#start();
      worker.keepAlive(true);
      try {
        await worker.ready;
        if (worker.isEnding)
          throw new SluiceError('Unavailable', `cannot run functions: a worker ${await worker.ended}`);
        const result = await action(worker);
        // The failure of a worker that `close` killed is not one of the package.
        if (this.#closed) throw closed();
        return result;
      } finally {
        if (worker.isEnding) await worker.ended;
        else this.#giveBack(worker);
      }
    } finally {
      this.#underWay.delete(over.promise);
      over.resolve();
      release();
    }
  }

  /** Ends all workers; calls in progress are rejected. Resolves when the workers have ended and no call is in progress. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#limiter.close(closed());
    for (const { cancel } of this.#idle.splice(0)) cancel();
    const workers = [...this.#uses.keys()];
    for (const worker of workers) {
      // Otherwise this process could end before they do.
      worker.keepAlive(true);
      worker.kill();
    }
    await Promise.all([...workers.map((worker) => worker.ended), ...this.#underWay]);
  }

  /** Process ids of all workers. */
  get pids(): number[] {
    return [...this.#uses.keys()].flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  #start(): WorkerProcess {
    if (this.#closed) throw closed();
    const worker = new WorkerProcess(this.#options);
    this.#uses.set(worker, 0);
    void worker.ended.then(() => {
      this.#uses.delete(worker);
      this.#forget(worker);
    });
    return worker;
  }

  #takeIdle(): WorkerProcess | undefined {
    const idle = this.#idle.pop();
    idle?.cancel();
    return idle?.worker;
  }

  #giveBack(worker: WorkerProcess): void {
    const uses = (this.#uses.get(worker) ?? 0) + 1;
    this.#uses.set(worker, uses);
    if (uses >= MAX_USES) {
      worker.kill();
      return;
    }
    worker.keepAlive(false);
    const cancel = this.#options.clock.schedule(IDLE_MS, () => this.#retire(worker));
    this.#idle.push({ worker, cancel });
  }

  #retire(worker: WorkerProcess): void {
    if (this.#uses.size === 1) return;
    this.#forget(worker);
    worker.kill();
  }

  #forget(worker: WorkerProcess): void {
    const at = this.#idle.findIndex((idle) => idle.worker === worker);
    if (at !== -1) this.#idle.splice(at, 1)[0]?.cancel();
  }
}

function closed(): SluiceError {
  return new SluiceError('Unavailable', 'cannot run functions: this process is ending');
}
