import { setTimeout as sleep } from 'node:timers/promises';
import { type Installation, NAMESPACE, type Replica } from '../../cluster/support/sluice-serve.ts';
import type { BenchClient } from '../api-client.ts';
import { MERGE_PATCH } from './cluster-rows.ts';

const SERVICE = `/api/v1/namespaces/${NAMESPACE}/services/sluice`;
const API_SERVICE = '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.porch.kpt.dev';
/** Milliseconds between two probes of all replicas. */
export const PROBE_MS = 100;

/**
 * Leads the aggregator to the replica that leads, as its label and the controller of EndpointSlices do in a cluster with pods: a Service
 * of a control plane without nodes has no endpoints of its own.
 */
export class ReadinessRoute {
  readonly #client: BenchClient;
  readonly #installation: Installation;
  #leader: Replica | undefined;
  /** When a probe found that it leads, by `performance.now()`. */
  leaderSince = 0;
  #isStopped = false;
  readonly #loop: Promise<void>;

  constructor(client: BenchClient, installation: Installation) {
    this.#client = client;
    this.#installation = installation;
    this.#loop = this.#probe();
  }

  /** The replica to which requests go. */
  get leader(): Replica {
    if (this.#leader === undefined) throw new Error('no replica was ready yet');
    return this.#leader;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loop;
  }

  async #probe(): Promise<void> {
    for (; !this.#isStopped; await sleep(PROBE_MS)) {
      const { replicas } = this.#installation;
      const probes = await Promise.all(replicas.map((replica) => replica.isLeading()));
      const ready = replicas.find((_, index) => probes[index]);
      if (ready === undefined || ready === this.#leader) continue;
      this.leaderSince = performance.now();
      await this.#pointTo(ready);
    }
  }

  async #pointTo(replica: Replica): Promise<void> {
    const { port } = replica;
    await this.#client.send('PATCH', SERVICE, { spec: { ports: [{ port }] } }, MERGE_PATCH);
    await this.#client.send('PATCH', API_SERVICE, { spec: { service: { port } } }, MERGE_PATCH);
    this.#leader = replica;
  }
}
