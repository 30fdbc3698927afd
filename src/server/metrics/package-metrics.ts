import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface RevisionCount {
  readonly repository: string;
  readonly lifecycle: string;
  readonly count: number;
}

/** Adds the metric of repositories that lists of packages fail for, by their ids. */
export function observeUnread(registry: Registry, unread: () => Iterable<string>): void {
  new Gauge({
    name: 'sluice_repository_unread',
    help: 'Repositories, as <namespace>/<name>, that were read before and cannot be read now: lists of packages with them fail.',
    labelNames: ['repository'],
    registers: [registry],
    collect() {
      this.reset();
      for (const repository of unread()) this.set({ repository }, 1);
    },
  });
}

/** The metrics of packages. */
export class PackageMetrics {
  readonly #gates: Histogram;
  readonly #transitions: Counter;
  readonly #merges: Counter;
  readonly #git: Histogram;
  readonly #disk: Gauge;
  readonly #notifications: Counter;
  readonly #triggers: Counter;

  constructor(registry: Registry, revisions: () => Iterable<RevisionCount>) {
    const registers = [registry];
    new Gauge({
      name: 'sluice_package_revisions',
      help: 'Package revisions by repository and lifecycle.',
      labelNames: ['repository', 'lifecycle'],
      registers,
      collect() {
        this.reset();
        for (const { count, ...labels } of revisions()) this.set(labels, count);
      },
    });
    this.#gates = new Histogram({
      name: 'sluice_gate_waiting_seconds',
      help: 'Time from the proposal of a package revision until its last gate was open.',
      buckets: [1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400, 604_800],
      registers,
    });
    this.#transitions = new Counter({
      name: 'sluice_transitions_total',
      help: 'Lifecycle transitions by action and result.',
      labelNames: ['action', 'result'],
      registers,
    });
    this.#merges = new Counter({
      name: 'sluice_host_merges_total',
      help: 'Packages that merges of pull requests on the Git host brought to the main branch, by origin: proposal, user (who opened the pull request); and by result: published, out_of_band (gates, rules or approvals were bypassed), not_published.',
      labelNames: ['origin', 'result'],
      registers,
    });
    this.#notifications = new Counter({
      name: 'sluice_notifications_total',
      help: 'Messages of Notifications by receiver and outcome: sent, failed (retried), given_up, dropped.',
      labelNames: ['receiver', 'outcome'],
      registers,
    });
    this.#triggers = new Counter({
      name: 'sluice_sync_triggers_total',
      help: 'Attempts to start a sync of an engine after a push, by type and outcome: sent, failed (retried), given_up.',
      labelNames: ['type', 'outcome'],
      registers,
    });
    this.#disk = new Gauge({
      name: 'sluice_git_disk_bytes',
      help: 'Disk space of the objects of a repository or mirror, at the last measurement.',
      labelNames: ['repository'],
      registers,
    });
    this.#git = new Histogram({
      name: 'sluice_git_operation_seconds',
      help: 'Time of operations on Git remotes, and of transactions on local refs.',
      labelNames: ['operation'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    });
  }

  /** `receiver` is a format of a webhook, or `CommitStatus`. */
  notified(receiver: string, outcome: string, count: number): void {
    this.#notifications.inc({ receiver, outcome }, count);
  }

  syncTriggered(type: string, outcome: string): void {
    this.#triggers.inc({ type, outcome });
  }

  /** Undefined for a repository that is not open any more. */
  gitDisk(repository: string, bytes: number | undefined): void {
    if (bytes === undefined) this.#disk.remove({ repository });
    else this.#disk.set({ repository }, bytes);
  }

  gateWaited(seconds: number): void {
    this.#gates.observe(seconds);
  }

  /** `action` and `result` are words of the kernel, so there are few of them. */
  transition(action: string, result: 'allowed' | 'refused'): void {
    this.#transitions.inc({ action, result });
  }

  merged(origin: 'proposal' | 'user', result: 'published' | 'out_of_band' | 'not_published'): void {
    this.#merges.inc({ origin, result });
  }

  /** `operation` is `fetch`, `list`, `push` or `transaction`. */
  gitOperation(operation: string, seconds: number): void {
    this.#git.observe({ operation }, seconds);
  }
}
