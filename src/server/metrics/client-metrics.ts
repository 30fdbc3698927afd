import { Counter, type Registry } from 'prom-client';

/** A request to a cluster; `code` is the status, or `<error>` if there was no response. */
export interface ClusterRequest {
  readonly code: string;
  readonly method: string;
  readonly host: string;
}

/** What Sluice does as a client of a cluster, under the names of client-go. */
export class ClientMetrics {
  readonly #requests: Counter;

  constructor(registry: Registry) {
    this.#requests = new Counter({
      name: 'rest_client_requests_total',
      help: 'Requests to the kube-apiserver by status code, method and host; each attempt counts.',
      labelNames: ['code', 'method', 'host'],
      registers: [registry],
    });
  }

  requested({ code, method, host }: ClusterRequest): void {
    this.#requests.inc({ code, method, host });
  }
}
