import { doraResults } from '../../../controllers/dora/dora-controller.ts';
import { notificationAttempts } from '../../../controllers/notification/notification-controller.ts';
import { hostMerges } from '../../../controllers/pull-request/merged/host-merges.ts';
import { syncTriggers } from '../../../controllers/sync-trigger/sync-trigger-controller.ts';
import { queueWaits } from '../../controller/controller.ts';
import type { Manager } from '../../controller/manager.ts';
import { statusCounts } from '../../delivery/status/target-deployment.ts';
import { forgeRequests } from '../../forge/http/forge-budget.ts';
import { gitDisk, gitOperations } from '../../git/process/git-operations.ts';
import { clusterRequests } from '../../kubernetes/connection/connection.ts';
import type { IndexChange } from '../../package/index/state/index-delta.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import { transitions } from '../../package/store/transitions.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import type { NamespaceQuota } from '../../resource/storage/memory/namespace-quota.ts';
import { ADMISSION_PATH, admissionReviews } from '../../server/admission/admission-webhook.ts';
import type { DeploymentCount } from '../../server/metrics/deployment-metrics.ts';
import type { FreezeCount } from '../../server/metrics/freeze-metrics.ts';
import { Metrics } from '../../server/metrics/metrics.ts';
import type { RevisionCount } from '../../server/metrics/package-metrics.ts';
import type { ServerLoad } from '../../server/metrics/request-metrics.ts';

export interface MeasuredParts {
  readonly manager: Manager;
  readonly store: RevisionStore;
  readonly targets: () => readonly DeliveryTarget[];
  /** Those in force. */
  readonly freezes: () => Iterable<FreezeCount>;
  /** Absent where the cluster limits what namespaces store. */
  readonly quota?: NamespaceQuota | undefined;
  load(): ServerLoad;
  /** In a cluster only. */
  readonly leadership?: (() => ReadonlyMap<string, boolean>) | undefined;
  /** Likewise. */
  readonly canSign?: (() => boolean) | undefined;
  /** In a cluster only. */
  readonly unread?: (() => Iterable<string>) | undefined;
}

/** The metrics of a running service; `stop` ends what they listen to. */
export function measure(parts: MeasuredParts): { readonly metrics: Metrics; stop(): void } {
  const { manager, store, targets, freezes, quota, load, leadership, canSign, unread } = parts;
  const metrics = new Metrics({
    ...{ load, leadership, canSign, unread, freezes },
    queues: () => manager.metrics(),
    revisions: () => revisionCounts(store),
    deployments: () => deploymentCounts(targets()),
    ...(quota === undefined ? {} : { quota: () => quota }),
  });
  const subscriptions = [
    gitOperations.subscribe(({ operation, milliseconds }) => {
      metrics.packages.gitOperation(operation, milliseconds / 1000);
    }),
    gitDisk.subscribe(({ repository, bytes }) => metrics.packages.gitDisk(repository, bytes)),
    queueWaits.subscribe(({ controller, milliseconds }) => metrics.controllers.taken(controller, milliseconds / 1000)),
    notificationAttempts.subscribe(({ receiver, outcome, count }) =>
      metrics.packages.notified(receiver, outcome, count),
    ),
    doraResults.subscribe(({ namespace, target, results }) => metrics.dora.record({ namespace, target }, results)),
    forgeRequests.subscribe((request) => metrics.forges.requested(request)),
    syncTriggers.subscribe(({ type, outcome }) => metrics.packages.syncTriggered(type, outcome)),
    ...clientSubscriptions(metrics),
    hostMerges.subscribe(({ origin, result }) => metrics.packages.merged(origin, result)),
    transitions.subscribe(({ action, result }) => metrics.packages.transition(action, result)),
    store.subscribe((changes) => {
      for (const change of changes) {
        const waited = gateWait(change);
        if (waited !== undefined) metrics.packages.gateWaited(waited);
      }
    }),
  ];
  return {
    metrics,
    stop: () => {
      for (const end of subscriptions) end();
    },
  };
}

/** What there is in a cluster only. */
function clientSubscriptions({ client, webhooks }: Metrics): (() => void)[] {
  return [
    clusterRequests.subscribe((request) => client.requested(request)),
    admissionReviews.subscribe(({ code, milliseconds }) => {
      if (code === undefined) webhooks.began(ADMISSION_PATH);
      else webhooks.ended(ADMISSION_PATH, code, milliseconds / 1000);
    }),
  ];
}

function deploymentCounts(targets: readonly DeliveryTarget[]): DeploymentCount[] {
  return targets
    .filter(({ spec }) => spec.engine !== undefined)
    .flatMap((target) => {
      const { name, namespace = DEFAULT_NAMESPACE } = target.metadata;
      return (['Synced', 'Healthy'] as const).flatMap((condition) =>
        Object.entries(statusCounts(target, condition === 'Synced' ? 'synced' : 'healthy')).map(([status, count]) => ({
          ...{ namespace, target: name, condition, status, count },
        })),
      );
    });
}

function revisionCounts(store: RevisionStore): RevisionCount[] {
  return store.repositories().flatMap(({ repository, index }) => {
    const counts = new Map<string, number>();
    for (const { lifecycle } of index.all()) counts.set(lifecycle, (counts.get(lifecycle) ?? 0) + 1);
    return [...counts].map(([lifecycle, count]) => ({ repository, lifecycle, count }));
  });
}

/** Seconds from a proposal until its last verdict, reported when the revision is published; 0 if all gates were open before. */
function gateWait({ before, after }: IndexChange): number | undefined {
  if (before?.lifecycle !== 'Proposed' || after?.lifecycle !== 'Published') return undefined;
  const proposed = before.record?.steps.findLast(({ action }) => action === 'propose')?.at;
  if (proposed === undefined) return undefined;
  const given = (before.record?.verdicts ?? []).map(({ at }) => Date.parse(at));
  return Math.max(0, Math.max(0, ...given) - Date.parse(proposed)) / 1000;
}
