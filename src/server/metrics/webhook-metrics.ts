import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** The metrics of admission webhooks, under the names of controller-runtime. The label `webhook` is the path. */
export class WebhookMetrics {
  readonly #total: Counter;
  readonly #latency: Histogram;
  readonly #inFlight: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#total = new Counter({
      name: 'controller_runtime_webhook_requests_total',
      help: 'Admission reviews by status code; 200 for every review that was decided.',
      labelNames: ['webhook', 'code'],
      registers,
    });
    this.#latency = new Histogram({
      name: 'controller_runtime_webhook_latency_seconds',
      help: 'Time of an admission review.',
      labelNames: ['webhook'],
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    });
    this.#inFlight = new Gauge({
      name: 'controller_runtime_webhook_requests_in_flight',
      help: 'Admission reviews in progress.',
      labelNames: ['webhook'],
      registers,
    });
  }

  began(webhook: string): void {
    this.#inFlight.inc({ webhook });
  }

  ended(webhook: string, code: number, seconds: number): void {
    this.#inFlight.dec({ webhook });
    this.#total.inc({ webhook, code: String(code) });
    this.#latency.observe({ webhook }, seconds);
  }
}
