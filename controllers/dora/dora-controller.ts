import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { toObject, watchKind } from '../../src/controller/source.ts';
import type { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { deliveredOf } from '../../src/delivery/delivered/list-delivered.ts';
import { settingsOf } from '../../src/delivery/delivery-target.ts';
import { type Change, emptyHistory, type TargetHistory, timeOf } from '../../src/delivery/dora/change.ts';
import { type NewResults, newResults } from '../../src/delivery/dora/new-results.ts';
import { recordDeliveries } from '../../src/delivery/dora/record-deliveries.ts';
import { recordFacts } from '../../src/delivery/dora/record-facts.ts';
import { recordHealth } from '../../src/delivery/dora/record-health.ts';
import { normalizeDirectory } from '../../src/delivery/path-rules.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { measurement } from '../../src/foundation/time/measurement.ts';
import { openLocation } from '../../src/git/open/open-location.ts';
import type { RepositoryOptions } from '../../src/git/open/open-repository.ts';
import { hostedFolder } from '../../src/package/store/opening/open-package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { credentialsOf } from '../../src/package/upstream/credentials.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { controllerMirror } from '../delivery/branch/target-mirror.ts';
import { deliveredSource } from '../delivery/delivered-source.ts';
import { writeTargetStatus } from '../delivery/target/write-target-status.ts';
import { knownRevisions } from './known-revisions.ts';
import { type ReadDeliveries, readDeliveries } from './read-deliveries.ts';

const DORA_ACTOR = 'controller:dora';

export interface DoraOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'repositories'>;
  readonly clock: Clock;
  /** The same as that of the delivery controller, whose mirrors this one reads. */
  readonly dataFolder: string;
  readonly git?: RepositoryOptions;
  /** The objects of delivered packages, from an informer. Default: they are listed for each reconciliation. */
  readonly delivered?: DeliveredPackages;
}

interface MeasuredTarget {
  readonly namespace: string;
  readonly target: string;
  /** Undefined once the target is deleted. */
  readonly results: NewResults | undefined;
}

/** What became known of a target, after it was written. */
export const doraResults = measurement<MeasuredTarget>('sluice:dora');

/** Milliseconds until a commit is read again that the mirror does not have. */
const MISSING_COMMIT_MS = 60_000;

/** Records the changes of targets, from their branches and from what engines report, in `status.history`. */
export function doraController(options: DoraOptions): ControllerOptions {
  const { store, clock, dataFolder } = options;
  const client = options.client.as({ name: DORA_ACTOR }, 'controller');

  return {
    name: 'dora',
    sources: [
      watchKind(deliveryTargetKind, {
        predicate: (event) =>
          event.type !== 'update' ||
          event.object.metadata.generation !== event.old.metadata.generation ||
          !sameValue(factsOf(event.object), factsOf(event.old)),
        map: toObject,
      }),
      deliveredSource({ clock, map: (target) => [target] }),
    ],
    maxConcurrentReconciles: 4,
    reconcileTimeoutMs: 60_000,
    baseDelayMs: 1_000,
    maxDelayMs: 300_000,
    async reconcile(key): Promise<ReconcileResult | undefined> {
      const target = await client.find(deliveryTargetKind, key);
      const { namespace = DEFAULT_NAMESPACE, name } = key;
      if (target === undefined || target.metadata.deletionTimestamp !== undefined) {
        doraResults.publish({ namespace, target: name, results: undefined });
        return undefined;
      }
      const { lastCommit, history } = target.status ?? {};
      if (lastCommit === undefined) return undefined;
      const packages = await deliveredOf(client, options.delivered, target);
      const before = history ?? emptyHistory(Date.parse(target.metadata.creationTimestamp), clock.now());
      const read = before.commit === lastCommit ? NOTHING : await deliveriesOf(target, lastCommit, before);
      if (read === undefined)
        return { requeueAfter: MISSING_COMMIT_MS, reason: 'the commit of the last delivery, which the mirror lacks' };
      let next = before;
      let added: readonly Change[] = [];
      const written = await writeTargetStatus(client, target, ({ status }) => {
        // After another delivery, or a write by another leader, the event of that write starts a reconciliation.
        if (status?.lastCommit !== lastCommit || !sameValue(status.history, history)) return undefined;
        const known = knownRevisions(store, namespace);
        const events = read.events.filter(
          (event) => event.revision === undefined || known.mayExist(event, event.revision),
        );
        const recorded = recordDeliveries(before, events, clock.now());
        added = recorded.added;
        const delivered = { ...recorded.history, commit: lastCommit, ...completenessOf(recorded.history, read) };
        const described = recordFacts(delivered, known.factsOf);
        next = recordHealth(described, status, packages, clock.now());
        return sameValue(next, history) ? undefined : { ...status, history: next };
      });
      if (written !== undefined)
        doraResults.publish({ namespace, target: name, results: newResults(history, next, added) });
      return undefined;
    },
  };

  async function deliveriesOf(
    target: Stored<DeliveryTarget>,
    lastCommit: string,
    history: TargetHistory,
  ): Promise<ReadDeliveries | undefined> {
    const { git: place } = target.spec;
    const credentials = credentialsOf(client, target, place.secretRef);
    const { git } = await openLocation({
      ...{ url: place.repo, mirrorPath: controllerMirror(dataFolder, target), hostedFolder: hostedFolder(dataFolder) },
      ...(credentials === undefined ? {} : { credentials }),
      ...(options.git === undefined ? {} : { repository: options.git }),
    });
    try {
      const directory = normalizeDirectory(place.directory);
      return await readDeliveries(git, lastCommit, { target: settingsOf(target).name, directory }, history);
    } finally {
      await git.close();
    }
  }
}

const NOTHING: ReadDeliveries = { events: [], end: 'known' };

/** From when on the history has every change, after a walk that may not have read all of them. */
function completenessOf(history: TargetHistory, { events, end }: ReadDeliveries): Pick<TargetHistory, 'completeFrom'> {
  const from = Date.parse(history.completeFrom);
  const oldest = events[0]?.time ?? from;
  if (end === 'limit') return { completeFrom: timeOf(Math.max(from, oldest)) };
  // Deliveries of an earlier target with the same name.
  const isFirst = history.commit === '' && history.changes[0]?.deliveredAt === timeOf(oldest);
  return { completeFrom: isFirst ? timeOf(Math.min(from, oldest)) : history.completeFrom };
}

/** What changes of a target depend on in its status. */
function factsOf({ status }: DeliveryTarget): unknown {
  return [status?.lastCommit, status?.packages, status?.packagesDigest, status?.deployment, status?.rollbacks];
}
