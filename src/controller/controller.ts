import { yieldToEventLoop } from '../foundation/concurrency/in-slices.ts';
import { isSluiceError, messageOf, SluiceError } from '../foundation/sluice-error.ts';
import { backoffDelay, sleep } from '../foundation/time/backoff.ts';
import type { Clock } from '../foundation/time/clock.ts';
import { measurement } from '../foundation/time/measurement.ts';
import { type SpanAttributes, traced } from '../foundation/tracing/traced.ts';
import { keyText, type ObjectKey } from '../resource/object/object.ts';
import { type ReconcileResult, type Reconciler, TerminalError } from './reconciler.ts';
import type { Source, SourceContext } from './source.ts';
import { type WaitingItem, type WorkLimit, WorkQueue, type WorkQueueMetrics } from './work-queue.ts';

export interface ControllerOptions<Request = ObjectKey> {
  /** Unique in a manager; used in messages and metrics. */
  readonly name: string;
  readonly reconcile: Reconciler<Request>;
  readonly sources: readonly Source<Request>[];
  /** Returns a key that is equal for equal requests. Default: namespace and name; required for other requests. */
  readonly keyOf?: (request: Request) => string;
  /** Default 1. One request is never reconciled twice at the same time. */
  readonly maxConcurrentReconciles?: number;
  /**
   * How many workers the requests of one namespace may hold at the same time, and how many of these requests that failed last (their
   * hosts may not respond), so that no namespace keeps the workers from all others. Failing requests of all namespaces together hold at
   * most three quarters of the workers. For requests with a namespace. Default: no limit.
   */
  readonly namespaceShare?: { readonly most: number; readonly mostFailing: number };
  /** Further limits of a request: while others occupy one, those without it pass. Default: none. */
  readonly limitsOf?: (request: Request) => readonly WorkLimit[];
  /**
   * How many workers begin at once, and milliseconds between the beginnings of the others: items that are prioritized at the start of a
   * process then do not share the processors with all others. Default: all begin at once.
   */
  readonly workerStart?: { readonly atOnce: number; readonly intervalMs: number };
  /** Milliseconds for one reconciliation; then its signal aborts. Default 120,000. */
  readonly reconcileTimeoutMs?: number;
  /** Milliseconds after the first failure, doubling. Default 5. */
  readonly baseDelayMs?: number;
  /** Milliseconds of the shortest pause after a reconciliation that took too long: the next one may hold a worker as long. Default 0. */
  readonly timeoutDelayMs?: number;
  /** Milliseconds, default 1,000,000. */
  readonly maxDelayMs?: number;
}

/** A time in the past, requested again and again, must not become a loop without a pause. Milliseconds. */
const MIN_REQUEUE_MS = 50;

/** Milliseconds that aborted work has to end when the controller stops. */
const ABORT_TIMEOUT_MS = 3000;

/** Milliseconds after which aborted work counts as stuck. */
const STUCK_AFTER_MS = 60_000;

/** A rule of a Git host that refuses a push refuses it again until the rule changes. */
const REFUSED_DELAY_MS = 60_000;

/** Reconciliations of one worker after which the event loop gets a turn. */
const MAX_ROUNDS_WITHOUT_PAUSE = 16;

/** The outcome of one reconciliation. */
export interface ReconcileRecord {
  readonly controller: string;
  readonly key: string;
  readonly outcome: 'success' | 'requeue-after' | 'error' | 'terminal-error';
  readonly milliseconds: number;
  readonly error?: unknown;
}

/** Duration for which items were ready before a worker took them. */
export const queueWaits = measurement<{ readonly controller: string; readonly milliseconds: number }>(
  'sluice:queue-wait',
);

/** The state of a controller and its queue. */
export interface ControllerState extends WorkQueueMetrics {
  readonly maxConcurrentReconciles: number;
}

/** The services that a controller needs from its manager. */
export interface ControllerHost {
  readonly clock: Clock;
  readonly random: () => number;
  readonly informer: SourceContext<unknown>['informer'];
  readonly release: SourceContext<unknown>['release'];
  readonly onReconcile: (record: ReconcileRecord) => void;
  readonly onError: (error: unknown, where: string) => void;
  readonly onChange: () => void;
}

/** An item that keeps failing. */
export interface FailingItem {
  readonly controller: string;
  readonly key: string;
  readonly failures: number;
  readonly message: string;
}

const MAX_FAILING_PART = 0.75;

function workLimits<Request>(
  request: Request,
  failures: number,
  { namespaceShare, limitsOf, maxConcurrentReconciles = 1 }: ControllerOptions<Request>,
): readonly WorkLimit[] {
  const own = limitsOf?.(request) ?? [];
  if (namespaceShare === undefined) return own;
  const { namespace = '' } = request as Partial<ObjectKey>;
  const share = { name: `namespace ${namespace}`, most: namespaceShare.most };
  if (failures === 0) return [...own, share];
  return [
    ...own,
    { name: 'failing', most: Math.max(1, Math.floor(maxConcurrentReconciles * MAX_FAILING_PART)) },
    { name: `failing in ${namespace}`, most: namespaceShare.mostFailing },
    share,
  ];
}

/** A queue, the sources that fill it, and workers that reconcile its items. */
export class Controller<Request = ObjectKey> {
  readonly name: string;
  readonly #options: ControllerOptions<Request>;
  readonly #host: ControllerHost;
  readonly #keyOf: (request: Request) => string;
  readonly #queue: WorkQueue<Request>;
  readonly #stop = new AbortController();
  readonly #failing = new Map<string, FailingItem>();
  /** The current reconciliations and their start times. */
  readonly #running = new Map<AbortController, { readonly key: string; readonly since: number }>();
  #tracked = 0;
  #unsubscribe: (() => void)[] = [];
  #workers: Promise<void>[] = [];

  constructor(options: ControllerOptions<Request>, host: ControllerHost) {
    this.name = options.name;
    this.#options = options;
    this.#host = host;
    // Requests other than object keys have a keyOf of their own.
    this.#keyOf = options.keyOf ?? ((request) => keyText(request as ObjectKey));
    this.#queue = new WorkQueue({
      clock: host.clock,
      keyOf: this.#keyOf,
      onChange: host.onChange,
      limitsOf: (request, failures) => workLimits(request, failures, options),
      onDequeue: (milliseconds) => queueWaits.publish({ controller: this.name, milliseconds }),
      ...(options.baseDelayMs === undefined ? {} : { baseDelayMs: options.baseDelayMs }),
      ...(options.maxDelayMs === undefined ? {} : { maxDelayMs: options.maxDelayMs }),
    });
  }

  /** Begins to collect requests. */
  startSources(): void {
    const context: SourceContext<Request> = {
      informer: this.#host.informer,
      release: this.#host.release,
      enqueue: (request) => this.#queue.add(request),
      prioritize: (request) => this.#queue.prioritize(request),
      track: (work) => void this.#track(work),
    };
    this.#unsubscribe = this.#options.sources.map((source) => source.start(context));
  }

  /** Begins to work on requests. */
  startWorkers(): void {
    const { maxConcurrentReconciles: count = 1, workerStart } = this.#options;
    const { atOnce, intervalMs } = workerStart ?? { atOnce: count, intervalMs: 0 };
    this.#workers = Array.from({ length: count }, (_, index) =>
      this.#work(Math.max(0, index - atOnce + 1) * intervalMs),
    );
  }

  /** Requests a reconciliation as an event does. */
  enqueue(request: Request): void {
    this.#queue.add(request);
  }

  /**
   * Stops accepting work and waits for running reconciliations; after `grace` milliseconds their signals abort.
   * Resolves when none runs. A reconciliation that ignores the abort for 5 seconds is reported to `onError` and
   * abandoned.
   */
  async stop(grace: number): Promise<void> {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    this.#stop.abort();
    this.#queue.close();
    const { clock, onError } = this.#host;
    const ended = new AbortController();
    const workers = Promise.all(this.#workers).then(() => ended.abort());
    await Promise.race([workers, sleep(clock, grace, ended.signal)]);
    if (ended.signal.aborted) return;
    for (const running of this.#running.keys())
      running.abort(new SluiceError('Unavailable', 'the controller is stopping'));
    await Promise.race([workers, sleep(clock, ABORT_TIMEOUT_MS, ended.signal)]);
    if (ended.signal.aborted) return;
    onError(new SluiceError('Timeout', `${this.#running.size} reconciliations do not heed their abort`), this.name);
  }

  /**
   * True if no request is queued, running, retrying or being mapped. Items that have failed `failureLimit` times in a
   * row are ignored.
   */
  isQuiet(failureLimit: number): boolean {
    return this.#tracked === 0 && this.#queue.isQuiet(failureLimit);
  }

  waiting(): WaitingItem<Request>[] {
    return this.#queue.waiting();
  }

  failing(): FailingItem[] {
    return [...this.#failing.values()];
  }

  /** Keys of aborted reconciliations that have not ended: their workers are lost. */
  stuck(): string[] {
    const { reconcileTimeoutMs = 120_000 } = this.#options;
    const latest = this.#host.clock.monotonic() - reconcileTimeoutMs - STUCK_AFTER_MS;
    return [...this.#running.values()].filter(({ since }) => since < latest).map(({ key }) => key);
  }

  metrics(): ControllerState {
    // The queue forgets an item whose error is final.
    const failing = this.#failing.size;
    return { ...this.#queue.metrics(), failing, maxConcurrentReconciles: this.#options.maxConcurrentReconciles ?? 1 };
  }

  async #work(delayMs: number): Promise<void> {
    if (delayMs > 0) await sleep(this.#host.clock, delayMs, this.#stop.signal);
    for (let taken = 1; ; taken += 1) {
      const request = await this.#queue.take();
      if (request === undefined) return;
      // Work without I/O would block timers, signals and requests.
      if (taken % MAX_ROUNDS_WITHOUT_PAUSE === 0) await yieldToEventLoop();
      try {
        await this.#reconcileOne(request);
      } finally {
        this.#queue.done(request);
      }
    }
  }

  async #reconcileOne(request: Request): Promise<void> {
    const { clock } = this.#host;
    const { reconcileTimeoutMs = 120_000 } = this.#options;
    const key = this.#keyOf(request);
    const running = new AbortController();
    this.#running.set(running, { key, since: clock.monotonic() });
    const cancel = clock.schedule(reconcileTimeoutMs, () =>
      running.abort(new SluiceError('Timeout', `${this.name} took longer than ${reconcileTimeoutMs} ms for ${key}`)),
    );
    const started = clock.monotonic();
    const record = (outcome: ReconcileRecord['outcome'], error?: unknown) => {
      const milliseconds = clock.monotonic() - started;
      const base = { controller: this.name, key, outcome, milliseconds };
      this.#host.onReconcile(error === undefined ? base : { ...base, error });
    };
    try {
      const failures = this.#queue.failures(request);
      const result = await traced(`reconcile ${this.name}`, this.#traced(key), () =>
        this.#options.reconcile(request, { signal: running.signal, failures }),
      );
      this.#succeeded(request, key, result ?? {});
      record(result?.requeueAfter === undefined ? 'success' : 'requeue-after');
    } catch (error) {
      // The error of aborted work explains little; the reason of the abort is the cause.
      const cause = running.signal.aborted ? running.signal.reason : error;
      const terminal = cause instanceof TerminalError;
      this.#failed(request, key, cause, terminal);
      record(terminal ? 'terminal-error' : 'error', cause);
    } finally {
      cancel();
      this.#running.delete(running);
    }
  }

  /** Keys other than those of the objects of the controller can contain the names of any objects, also of Secrets. */
  #traced(key: string): SpanAttributes {
    const controller = { 'sluice.controller': this.name };
    return this.#options.keyOf === undefined ? { ...controller, 'sluice.key': key } : controller;
  }

  #succeeded(request: Request, key: string, { requeueAfter, reason }: ReconcileResult): void {
    if (requeueAfter !== undefined && Number.isNaN(requeueAfter))
      throw new SluiceError('Internal', `${this.name} requested ${key} again after NaN milliseconds`);
    this.#failing.delete(key);
    this.#queue.forget(request);
    if (requeueAfter !== undefined) this.#queue.addAfter(request, Math.max(MIN_REQUEUE_MS, requeueAfter), reason);
  }

  #failed(request: Request, key: string, error: unknown, terminal: boolean): void {
    const message = messageOf(error);
    if (terminal) this.#queue.forget(request);
    else this.#queue.addRateLimited(request, message, this.#leastDelay(error));
    const failures = terminal ? 1 : this.#queue.failures(request);
    this.#failing.set(key, { controller: this.name, key, failures, message });
  }

  #leastDelay(error: unknown): number {
    if (isSluiceError(error, 'PushRefused')) return REFUSED_DELAY_MS;
    return isSluiceError(error, 'Timeout') ? (this.#options.timeoutDelayMs ?? 0) : 0;
  }

  async #track(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    const { clock, random, onError, onChange } = this.#host;
    this.#tracked += 1;
    try {
      for (let failures = 1; !signal.aborted; failures += 1) {
        try {
          await work(signal);
          return;
        } catch (error) {
          if (signal.aborted) return;
          onError(error, `${this.name}: mapping an event to requests`);
          await sleep(clock, backoffDelay(failures, { base: 50, max: 30_000, random }), signal);
        }
      }
    } finally {
      this.#tracked -= 1;
      onChange();
    }
  }
}
