import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { RequestRecord } from '../request/request-record.ts';

interface LaneCounts {
  readonly mutating: number;
  readonly reading: number;
  readonly priority: number;
}

/** Requests and watches in progress. */
export interface ServerLoad extends LaneCounts {
  /** Requests that wait for a slot. */
  readonly waiting: LaneCounts;
  /** Bytes of the bodies of open requests. */
  readonly bodyBytes: number;
  readonly watches: number;
}

const NO_REQUESTS: LaneCounts = { mutating: 0, reading: 0, priority: 0 };

export const NO_LOAD: ServerLoad = { ...NO_REQUESTS, waiting: NO_REQUESTS, bodyBytes: 0, watches: 0 };

const RESOURCE_LABELS = ['verb', 'group', 'version', 'resource'] as const;
const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

/** The metrics of requests, under the names of kube-apiserver. Requests that are not served share one set of labels. */
export class RequestMetrics {
  readonly #total: Counter;
  readonly #duration: Histogram;
  readonly #rejected: Counter;

  constructor(registry: Registry, load: () => ServerLoad) {
    const registers = [registry];
    this.#total = new Counter({
      name: 'apiserver_request_total',
      help: 'Requests by verb, resource and status code.',
      labelNames: [...RESOURCE_LABELS, 'code'],
      registers,
    });
    this.#duration = new Histogram({
      name: 'apiserver_request_duration_seconds',
      help: 'Time until the response was ready, without watches.',
      labelNames: RESOURCE_LABELS,
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    });
    this.#rejected = new Counter({
      name: 'apiserver_dropped_requests_total',
      help: 'Requests that were rejected because too many were in progress.',
      labelNames: ['request_kind'],
      registers,
    });
    new Gauge({
      name: 'apiserver_current_inflight_requests',
      help: 'Requests in progress.',
      labelNames: ['request_kind'],
      registers,
      collect() {
        setLanes(this, load());
      },
    });
    new Gauge({
      name: 'apiserver_current_inqueue_requests',
      help: 'Requests that wait for a slot.',
      labelNames: ['request_kind'],
      registers,
      collect() {
        setLanes(this, load().waiting);
      },
    });
    new Gauge({
      name: 'sluice_request_body_bytes',
      help: 'Bytes of the bodies of open requests.',
      registers,
      collect() {
        this.set(load().bodyBytes);
      },
    });
    new Gauge({
      name: 'apiserver_longrunning_requests',
      help: 'Open watches.',
      labelNames: ['verb'],
      registers,
      collect() {
        this.set({ verb: 'WATCH' }, load().watches);
      },
    });
  }

  record({ verb, group, version, resource, served, isResource, code, milliseconds }: RequestRecord): void {
    const known = served !== 'unknown';
    // An unknown method could be any word, and each would be a separate series.
    const labels = {
      verb: isResource && known ? verb.toUpperCase() : READS.has(verb) ? 'GET' : 'OTHER',
      group: known ? group : '',
      version: known ? version : '',
      resource: known ? resource : '',
    };
    this.#total.inc({ ...labels, code: String(code) });
    if (verb !== 'watch') this.#duration.observe(labels, milliseconds / 1000);
    if (code === 429) this.#rejected.inc({ request_kind: READS.has(verb) ? 'readOnly' : 'mutating' });
  }
}

function setLanes(gauge: Gauge, { mutating, reading, priority }: LaneCounts): void {
  gauge.set({ request_kind: 'mutating' }, mutating);
  gauge.set({ request_kind: 'readOnly' }, reading);
  gauge.set({ request_kind: 'priority' }, priority);
}
