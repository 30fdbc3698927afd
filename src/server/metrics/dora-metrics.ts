import { Counter, Histogram, type Registry } from 'prom-client';

/** What became known of the changes of a target. */
export interface DoraResults {
  readonly deployments: number;
  readonly failures: readonly string[];
  readonly leadTimesMs: readonly number[];
  readonly timesToRestoreMs: readonly number[];
}

const LABELS = ['namespace', 'target'] as const;
type TargetLabels = Readonly<Record<(typeof LABELS)[number], string>>;

const HOUR = 3600;
const DAY = 24 * HOUR;
const LEAD_TIME_BUCKETS = [300, 1800, HOUR, 4 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY];
const RESTORE_BUCKETS = [60, 300, 900, 1800, HOUR, 2 * HOUR, 4 * HOUR, 12 * HOUR, DAY, 7 * DAY];

/** The key figures of delivery, by target and not by package: they count up with what becomes known while this process runs. */
export class DoraMetrics {
  readonly #deployments: Counter;
  readonly #failed: Counter;
  readonly #leadTime: Histogram;
  readonly #restore: Histogram;
  /** The reasons of a failure that a target has counted, so that they can be removed with it. */
  readonly #reasons = new Set<string>();

  constructor(registry: Registry) {
    const common = { labelNames: LABELS, registers: [registry] };
    this.#deployments = new Counter({
      ...common,
      name: 'sluice_dora_deployments_total',
      help: 'First deliveries of revisions to a target.',
    });
    this.#failed = new Counter({
      registers: [registry],
      labelNames: [...LABELS, 'reason'],
      name: 'sluice_dora_failed_changes_total',
      help: 'Deployments that failed, by reason: Unhealthy, RolledBack, Reverted, Downgraded.',
    });
    this.#leadTime = new Histogram({
      ...common,
      name: 'sluice_dora_lead_time_seconds',
      help: 'Time from the creation of a draft until its revision is healthy in a target.',
      buckets: LEAD_TIME_BUCKETS,
    });
    this.#restore = new Histogram({
      ...common,
      name: 'sluice_dora_time_to_restore_seconds',
      help: 'Time from the failure of a deployment until the package is healthy in the target again.',
      buckets: RESTORE_BUCKETS,
    });
  }

  /** Without results the target is deleted. */
  record(labels: TargetLabels, results: DoraResults | undefined): void {
    if (results === undefined) {
      this.#forget(labels);
      return;
    }
    if (results.deployments > 0) this.#deployments.inc(labels, results.deployments);
    for (const reason of results.failures) {
      this.#reasons.add(reason);
      this.#failed.inc({ ...labels, reason });
    }
    for (const time of results.leadTimesMs) this.#leadTime.observe(labels, time / 1000);
    for (const time of results.timesToRestoreMs) this.#restore.observe(labels, time / 1000);
  }

  #forget(labels: TargetLabels): void {
    for (const metric of [this.#deployments, this.#leadTime, this.#restore]) metric.remove(labels);
    for (const reason of this.#reasons) this.#failed.remove({ ...labels, reason });
  }
}
