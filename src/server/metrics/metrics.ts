import { collectDefaultMetrics, Registry } from 'prom-client';
import type { ControllerState } from '../../controller/controller.ts';
import type { NamespaceQuota } from '../../resource/storage/memory/namespace-quota.ts';
import { textResponse } from '../http/answer.ts';
import type { PathHandler } from '../request/path-handler.ts';
import { ClientMetrics } from './client-metrics.ts';
import { ControllerMetrics } from './controller-metrics.ts';
import { type DeploymentCount, observeDeployments } from './deployment-metrics.ts';
import { DoraMetrics } from './dora-metrics.ts';
import { ForgeMetrics } from './forge-metrics.ts';
import { type FreezeCount, observeFreezes } from './freeze-metrics.ts';
import { observeLeadership, observeSigning } from './leadership-metrics.ts';
import { observeUnread, PackageMetrics, type RevisionCount } from './package-metrics.ts';
import { observeQuota } from './quota-metrics.ts';
import { RequestMetrics, type ServerLoad } from './request-metrics.ts';
import { WebhookMetrics } from './webhook-metrics.ts';

/** The sources that the metrics read when they are collected. */
export interface MetricsSources {
  load(): ServerLoad;
  queues(): ReadonlyMap<string, ControllerState>;
  revisions(): Iterable<RevisionCount>;
  /** Packages of delivery targets by what their engines report. */
  readonly deployments?: (() => Iterable<DeploymentCount>) | undefined;
  /** Freezes in force. */
  readonly freezes?: (() => Iterable<FreezeCount>) | undefined;
  /** Absent where Sluice stores no objects. */
  readonly quota?: () => Pick<NamespaceQuota, 'usage' | 'exceeded'>;
  /** Whether this process leads, by the name of the Lease; absent where no leader is elected. */
  readonly leadership?: (() => ReadonlyMap<string, boolean>) | undefined;
  /** Whether this process can sign statements; absent where the key cannot change while it runs. */
  readonly canSign?: (() => boolean) | undefined;
  /** Ids of the repositories that lists of packages fail for; absent where lists do not fail. */
  readonly unread?: (() => Iterable<string>) | undefined;
}

/** The content of `/metrics`, in the text format of Prometheus. */
export class Metrics {
  readonly requests: RequestMetrics;
  readonly controllers: ControllerMetrics;
  readonly packages: PackageMetrics;
  readonly client: ClientMetrics;
  readonly webhooks: WebhookMetrics;
  readonly dora: DoraMetrics;
  readonly forges: ForgeMetrics;
  readonly #registry = new Registry();

  constructor(sources: MetricsSources) {
    const registry = this.#registry;
    collectDefaultMetrics({ register: registry });
    this.requests = new RequestMetrics(registry, () => sources.load());
    if (sources.quota !== undefined) observeQuota(registry, sources.quota);
    if (sources.deployments !== undefined) observeDeployments(registry, sources.deployments);
    if (sources.freezes !== undefined) observeFreezes(registry, sources.freezes);
    if (sources.leadership !== undefined) observeLeadership(registry, sources.leadership);
    if (sources.canSign !== undefined) observeSigning(registry, sources.canSign);
    if (sources.unread !== undefined) observeUnread(registry, sources.unread);
    this.controllers = new ControllerMetrics(registry, () => sources.queues());
    this.packages = new PackageMetrics(registry, () => sources.revisions());
    this.client = new ClientMetrics(registry);
    this.webhooks = new WebhookMetrics(registry);
    this.dora = new DoraMetrics(registry);
    this.forges = new ForgeMetrics(registry);
  }

  readonly paths: PathHandler = async ({ path }) => {
    if (path !== '/metrics') return undefined;
    return textResponse(200, this.#registry.contentType, await this.#registry.metrics());
  };
}
