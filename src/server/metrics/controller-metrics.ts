import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ControllerState, ReconcileRecord } from '../../controller/controller.ts';

const RESULTS: Readonly<Record<ReconcileRecord['outcome'], string>> = {
  success: 'success',
  'requeue-after': 'requeue_after',
  error: 'error',
  'terminal-error': 'error',
};

/** The metrics of controllers, under the names of controller-runtime and client-go. */
export class ControllerMetrics {
  readonly #total: Counter;
  readonly #errors: Counter;
  readonly #terminalErrors: Counter;
  readonly #time: Histogram;
  readonly #work: Histogram;
  readonly #queued: Histogram;

  /** `queues` returns the state of the queue of each controller, by its name. */
  constructor(registry: Registry, queues: () => ReadonlyMap<string, ControllerState>) {
    const registers = [registry];
    const labelNames = ['controller'];
    this.#total = new Counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Reconciliations by controller and result.',
      labelNames: [...labelNames, 'result'],
      registers,
    });
    this.#errors = new Counter({
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Reconciliations that failed.',
      ...{ labelNames, registers },
    });
    this.#terminalErrors = new Counter({
      name: 'controller_runtime_terminal_reconcile_errors_total',
      help: 'Reconciliations that failed for good.',
      ...{ labelNames, registers },
    });
    const buckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
    this.#time = new Histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Time of one reconciliation.',
      ...{ labelNames, registers, buckets },
    });
    this.#work = new Histogram({
      name: 'workqueue_work_duration_seconds',
      help: 'Time that the reconciliation of an item took.',
      ...{ labelNames: ['name', 'controller'], registers, buckets },
    });
    this.#queued = new Histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'Time that an item waited in the queue until its reconciliation began.',
      ...{ labelNames: ['name', 'controller'], registers, buckets },
    });
    const shown = (name: string, help: string, labels: string[], value: (state: ControllerState) => number) =>
      new Gauge({
        ...{ name, help, registers, labelNames: labels },
        collect() {
          for (const [controller, state] of queues())
            this.set(labels.includes('name') ? { name: controller, controller } : { controller }, value(state));
        },
      });
    const ofQueue = ['name', 'controller'];
    shown('workqueue_depth', 'Items that are ready.', ofQueue, (state) => state.depth);
    shown(
      'workqueue_unfinished_work_seconds',
      'Time for which items have been processed that are not done, of all of them together.',
      ofQueue,
      (state) => state.unfinishedMs / 1000,
    );
    shown(
      'workqueue_longest_running_processor_seconds',
      'Time for which the oldest item that is not done has been processed.',
      ofQueue,
      (state) => state.longestMs / 1000,
    );
    shown(
      'sluice_controller_failing_items',
      'Items whose last reconciliation failed, also while they wait for the next attempt.',
      labelNames,
      (state) => state.failing,
    );
    shown('controller_runtime_active_workers', 'Reconciliations in progress.', labelNames, (state) => state.processing);
    shown(
      'controller_runtime_max_concurrent_reconciles',
      'Reconciliations that may be in progress at once.',
      labelNames,
      (state) => state.maxConcurrentReconciles,
    );
    const counted = (name: string, help: string, total: (queue: ControllerState) => number) =>
      new Counter({
        ...{ name, help, registers },
        labelNames: ['name', 'controller'],
        // The queues count from their start.
        collect() {
          this.reset();
          for (const [queue, state] of queues()) this.inc({ name: queue, controller: queue }, total(state));
        },
      });
    counted('workqueue_adds_total', 'Items that were added.', (queue) => queue.adds);
    counted('workqueue_retries_total', 'Items that were tried again.', (queue) => queue.retries);
  }

  /** An item was taken that had been ready for so many seconds. */
  taken(controller: string, seconds: number): void {
    this.#queued.observe({ name: controller, controller }, seconds);
  }

  record({ controller, outcome, milliseconds }: ReconcileRecord): void {
    const labels = { controller };
    this.#total.inc({ ...labels, result: RESULTS[outcome] });
    if (outcome === 'error' || outcome === 'terminal-error') this.#errors.inc(labels);
    if (outcome === 'terminal-error') this.#terminalErrors.inc(labels);
    this.#time.observe(labels, milliseconds / 1000);
    this.#work.observe({ name: controller, controller }, milliseconds / 1000);
  }
}
