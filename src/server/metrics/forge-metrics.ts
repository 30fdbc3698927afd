import { Counter, Gauge, type Registry } from 'prom-client';
import type { BudgetUsage } from '../../forge/budget-usage.ts';
import type { ForgeRequestRecord } from '../../forge/http/forge-budget.ts';

const LABELS = ['host', 'credentials', 'account'] as const;
type Labels = Readonly<Record<(typeof LABELS)[number], string>>;
/** Users can create any number of credentials. */
const MAX_ACCOUNTS = 100;
const OUTCOMES: readonly ForgeRequestRecord['outcome'][] = ['answered', 'not_modified', 'limited', 'delayed', 'failed'];

/**
 * Requests to hosts with pull requests, and what their limits leave. The label `credentials` is the object that has them, `account` the
 * installation of an App, or `user`.
 */
export class ForgeMetrics {
  readonly #requests: Counter;
  /** The one that was used longest ago is first. */
  readonly #accounts = new Map<string, { readonly labels: Labels; readonly usage: ForgeRequestRecord['usage'] }>();

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: 'sluice_forge_requests_total',
      help: 'Requests to hosts with pull requests by outcome; delayed ones were not sent, not_modified ones do not count on GitHub.',
      labelNames: [...LABELS, 'outcome'],
      registers,
    });
    const gauge = (
      name: string,
      help: string,
      label: 'resource' | 'window',
      read: (usage: BudgetUsage) => readonly (readonly [string, number | undefined])[],
    ) => {
      const accounts = this.#accounts;
      new Gauge({
        ...{ name, help, labelNames: [...LABELS, label], registers },
        collect() {
          this.reset();
          for (const { labels, usage } of accounts.values())
            for (const [of, value] of read(usage()))
              if (value !== undefined) this.set({ ...labels, [label]: of }, value);
        },
      });
    };
    gauge(
      'sluice_forge_rate_remaining',
      'Requests, of GraphQL points, that the host still permits until its limit is reset.',
      'resource',
      ({ resources }) => resources.map(({ resource, rate }) => [resource, rate?.remaining]),
    );
    gauge(
      'sluice_forge_rate_limit',
      'Requests, of GraphQL points, that the host permits in one period.',
      'resource',
      ({ resources }) => resources.map(({ resource, rate }) => [resource, rate?.limit]),
    );
    gauge(
      'sluice_forge_content_requests',
      'Requests that created content, in the last minute and hour; GitHub permits 80 and 500.',
      'window',
      ({ content }) => Object.entries(content),
    );
    gauge(
      'sluice_forge_paused_seconds',
      'Time until requests are sent again after the host reported a limit.',
      'resource',
      ({ resources }) => resources.map(({ resource, pausedMs }) => [resource, pausedMs / 1000]),
    );
  }

  requested({ host, name, account, outcome, usage }: ForgeRequestRecord): void {
    const labels = { host, credentials: name, account };
    const id = JSON.stringify(labels);
    this.#accounts.delete(id);
    this.#accounts.set(id, { labels, usage });
    this.#requests.inc({ ...labels, outcome });
    const [oldest] = this.#accounts;
    if (this.#accounts.size <= MAX_ACCOUNTS || oldest === undefined) return;
    this.#accounts.delete(oldest[0]);
    for (const one of OUTCOMES) this.#requests.remove({ ...oldest[1].labels, outcome: one });
  }
}
