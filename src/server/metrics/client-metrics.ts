import { Counter, Gauge, type Registry } from 'prom-client';

/** A request to a cluster; `code` is the status, or `<error>` if there was no response. */
export interface ClusterRequest {
  readonly code: string;
  readonly method: string;
  readonly host: string;
}

/** What Sluice does as a client of a cluster, under the names of client-go. */
export class ClientMetrics {
  readonly #requests: Counter;
  readonly #leads: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: 'rest_client_requests_total',
      help: 'Requests to the kube-apiserver by status code, method and host; each attempt counts.',
      labelNames: ['code', 'method', 'host'],
      registers,
    });
    this.#leads = new Gauge({
      name: 'leader_election_master_status',
      help: '1 if this replica leads, by the name of the Lease.',
      labelNames: ['name'],
      registers,
    });
  }

  requested({ code, method, host }: ClusterRequest): void {
    this.#requests.inc({ code, method, host });
  }

  leads(lease: string, isLeader: boolean): void {
    this.#leads.set({ name: lease }, isLeader ? 1 : 0);
  }
}
