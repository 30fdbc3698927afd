import { SluiceError } from '../foundation/sluice-error.ts';
import { sleep } from '../foundation/time/backoff.ts';
import type { Clock } from '../foundation/time/clock.ts';
import type { Client, SelectOptions } from '../resource/client/client.ts';
import type { KubernetesObject, ObjectKey } from '../resource/object/object.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { KindIdentity } from '../resource/schema/kind-identity.ts';
import {
  Controller,
  type ControllerOptions,
  type ControllerState,
  type FailingItem,
  type ReconcileRecord,
} from './controller.ts';
import { Informer } from './informer.ts';

export interface ManagerOptions {
  /** The client that informers use. */
  readonly client: Client;
  readonly clock: Clock;
  /** A number from 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
  /** Called after every reconciliation. */
  readonly onReconcile?: (record: ReconcileRecord) => void;
  /** Called with failures outside of reconciliations: lists, watches, mappings. The manager retries them. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** A component that runs beside the controllers, such as a server or a poll loop. */
export interface Runnable {
  readonly name: string;
  start(signal: AbortSignal): void | Promise<void>;
  /** Resolves when it has stopped; called after the controllers have stopped. */
  stop?(): Promise<void>;
  /** True while it has work that may lead to more; the manager is not idle then. */
  busy?(): boolean;
}

/** An item that waits for a time that its controller requested. */
export interface WaitingReport {
  readonly controller: string;
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly due: number;
  readonly reason: string | undefined;
}

export interface IdleOptions {
  readonly signal?: AbortSignal;
  /** An item that has failed this often in a row is not waited for; see `failing`. Default: all are waited for. */
  readonly failureLimit?: number;
}

/** The parts of a controller that are independent of its request type. */
type ManagedController = Omit<Controller<unknown>, 'enqueue'>;

/** Milliseconds between checks of the manager without a change. */
const IDLE_CHECK_MS = 50;

/** Runs controllers on shared informers. */
export class Manager {
  readonly #options: ManagerOptions;
  readonly #controllers: ManagedController[] = [];
  readonly #runnables: Runnable[] = [];
  readonly #informers = new Map<string, Informer>();
  /** Informers that the caller starts and stops. */
  readonly #shared = new Set<Informer>();
  readonly #unshare: (() => void)[] = [];
  readonly #stop = new AbortController();
  #state: 'new' | 'running' | 'stopped' = 'new';
  #stopping: Promise<void> | undefined;
  #changes = 0;
  #changed = Promise.withResolvers<void>();

  constructor(options: ManagerOptions) {
    this.#options = options;
  }

  /** The shared informer of a kind and selection, started with the manager (or now, if that runs). */
  informer<T extends KubernetesObject>(kind: Kind<T>, selection: SelectOptions = {}): Informer<T> {
    const id = informerId(kind, selection);
    let informer = this.#informers.get(id);
    if (informer === undefined) {
      const { client, clock, random } = this.#options;
      informer = new Informer({
        client,
        kind,
        selection,
        clock,
        ...(random === undefined ? {} : { random }),
        onError: (error) => this.#options.onError?.(error, `informer of ${kind.plural}`),
        onChange: () => this.#noteChange(),
      }) as unknown as Informer;
      this.#informers.set(id, informer);
      if (this.#state === 'running') informer.start();
    }
    // The map is keyed by the identity of the kind, so this is the informer for T.
    return informer as unknown as Informer<T>;
  }

  /** Uses an informer of all objects of a kind, which the caller starts and stops; before `start` only. */
  share<T extends KubernetesObject>(informer: Informer<T>): void {
    this.#expectNew(`the informer of ${informer.kind.plural}`);
    const shared = informer as unknown as Informer;
    this.#informers.set(informerId(informer.kind, {}), shared);
    this.#shared.add(shared);
    this.#unshare.push(informer.addHandler(() => this.#noteChange()));
  }

  /**
   * Ends all informers of a kind that is registered no longer, which would try to read it for ever. With a selection, the one of that, unless it has
   * handlers.
   */
  release(kind: KindIdentity, selection?: SelectOptions): void {
    const ids = selection === undefined ? `${kind.apiVersion} ${kind.kind} ` : informerId(kind, selection);
    for (const [id, informer] of this.#informers) {
      if (!id.startsWith(ids) || this.#shared.has(informer)) continue;
      if (selection !== undefined && informer.hasHandlers) continue;
      this.#informers.delete(id);
      void informer.stop();
    }
    this.#noteChange();
  }

  /** Adds a controller; before `start` only. */
  addController<Request = ObjectKey>(options: ControllerOptions<Request>): Controller<Request> {
    this.#expectNew(`controller ${options.name}`);
    if (this.#controllers.some((controller) => controller.name === options.name))
      throw new SluiceError('AlreadyExists', `there are two controllers named ${options.name}`);
    const { clock, random = Math.random } = this.#options;
    const controller = new Controller<Request>(options, {
      clock,
      random,
      informer: (kind, selection) => this.informer(kind, selection),
      release: (kind, selection) => this.release(kind, selection),
      onReconcile: (record) => this.#options.onReconcile?.(record),
      onError: (error, where) => this.#options.onError?.(error, where),
      onChange: () => this.#noteChange(),
    });
    this.#controllers.push(controller);
    return controller;
  }

  /** Adds a component that runs beside the controllers; before `start` only. */
  add(runnable: Runnable): void {
    this.#expectNew(runnable.name);
    this.#runnables.push(runnable);
  }

  /**
   * Starts runnables, then informers, and, once every informer is synced, the controllers. A controller never works on
   * a partial state. Rejects with Unavailable if stopped meanwhile.
   */
  async start(): Promise<void> {
    this.#expectNew('start');
    this.#state = 'running';
    for (const runnable of this.#runnables) await runnable.start(this.#stop.signal);
    for (const controller of this.#controllers) controller.startSources();
    for (const informer of this.#informers.values()) informer.start();
    await Promise.all([...this.#informers.values()].map((informer) => informer.whenSynced()));
    if (this.#stop.signal.aborted) throw new SluiceError('Unavailable', 'the manager was stopped');
    for (const controller of this.#controllers) controller.startWorkers();
  }

  /**
   * Stops in reverse order: controllers stop accepting work and finish running reconciliations (whose signals abort
   * after `grace` milliseconds, default 10,000), then informers, then runnables. Resolves when all have stopped.
   */
  stop(grace = 10_000): Promise<void> {
    this.#stopping ??= this.#stopAll(grace);
    return this.#stopping;
  }

  /**
   * Resolves when no request is queued, running or retrying in any controller, no runnable is busy, and every
   * informer's store equals its storage, so that no event is pending. Requests that wait for a time do not count: see
   * `waiting`. Rejects with the signal's reason, or Unavailable if the manager stops.
   */
  async idle(options: IdleOptions = {}): Promise<void> {
    const signal = options.signal ?? this.#stop.signal;
    const limit = options.failureLimit ?? Number.POSITIVE_INFINITY;
    for (;;) {
      options.signal?.throwIfAborted();
      if (this.#state !== 'running') throw new SluiceError('Unavailable', 'the manager does not run');
      const changes = this.#changes;
      const changed = this.#changed.promise;
      if (this.#isQuiet(limit) && (await this.#informersAreCurrent(signal)) && this.#changes === changes) return;
      if (this.#changes === changes) {
        const enough = new AbortController();
        await Promise.race([
          changed,
          sleep(this.#options.clock, IDLE_CHECK_MS, AbortSignal.any([signal, enough.signal])),
        ]);
        enough.abort();
      }
    }
  }

  /** Requests that wait for a time that a controller requested, the earliest first. */
  waiting(): WaitingReport[] {
    return this.#controllers
      .flatMap((controller) =>
        controller
          .waiting()
          .filter(({ cause }) => cause === 'time')
          .map(({ key, due, reason }) => ({ controller: controller.name, key, due, reason })),
      )
      .sort((left, right) => left.due - right.due);
  }

  /** Items whose last reconciliation failed. */
  failing(): FailingItem[] {
    return this.#controllers.flatMap((controller) => controller.failing());
  }

  /** Work that was aborted and has not ended, as `controller key`. */
  stuck(): string[] {
    return this.#controllers.flatMap((controller) => controller.stuck().map((key) => `${controller.name} ${key}`));
  }

  /** The numbers of each controller's queue, by the controller's name. */
  metrics(): ReadonlyMap<string, ControllerState> {
    return new Map(this.#controllers.map((controller) => [controller.name, controller.metrics()]));
  }

  async #stopAll(grace: number): Promise<void> {
    this.#state = 'stopped';
    await Promise.all(this.#controllers.map((controller) => controller.stop(grace)));
    for (const unshare of this.#unshare) unshare();
    const own = [...this.#informers.values()].filter((informer) => !this.#shared.has(informer));
    await Promise.all(own.map((informer) => informer.stop()));
    this.#stop.abort();
    for (const runnable of this.#runnables.toReversed()) await runnable.stop?.();
    this.#noteChange();
  }

  #isQuiet(failureLimit: number): boolean {
    return (
      this.#controllers.every((controller) => controller.isQuiet(failureLimit)) &&
      this.#runnables.every((runnable) => runnable.busy?.() !== true)
    );
  }

  async #informersAreCurrent(signal: AbortSignal): Promise<boolean> {
    for (const informer of this.#informers.values()) {
      try {
        if (!(await informer.isCurrent(signal))) return false;
      } catch (error) {
        this.#options.onError?.(error, `informer of ${informer.kind.plural}`);
        return false;
      }
    }
    return true;
  }

  #noteChange(): void {
    this.#changes += 1;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  #expectNew(what: string): void {
    if (this.#state !== 'new') throw new SluiceError('Internal', `${what}: the manager was started before`);
  }
}

function informerId(kind: KindIdentity, selection: SelectOptions): string {
  return `${kind.apiVersion} ${kind.kind} ${JSON.stringify(selection)}`;
}
