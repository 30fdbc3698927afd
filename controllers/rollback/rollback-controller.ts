import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { toObject, watchKind } from '../../src/controller/source.ts';
import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import type { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { deliveredOf } from '../../src/delivery/delivered/list-delivered.ts';
import { type Rollback, settingsOf } from '../../src/delivery/delivery-target.ts';
import { joinPath, normalizeDirectory } from '../../src/delivery/path-rules.ts';
import { type DueRollback, decideRollbacks, type Observations } from '../../src/delivery/rollback/decide-rollbacks.ts';
import { impossibleRollbackText } from '../../src/delivery/rollback/impossible-rollback-text.ts';
import { isResumed, RESUME_ANNOTATION } from '../../src/delivery/rollback/resume.ts';
import { rollbackText, withResumedRevisions, withRollbacks } from '../../src/delivery/rollback/rollback-status.ts';
import { packageKey } from '../../src/delivery/selection/select-revisions.ts';
import { engineText } from '../../src/delivery/status/engine-values.ts';
import type { PackageName } from '../../src/delivery/status/target-deployment.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { openLocation } from '../../src/git/open/open-location.ts';
import type { RepositoryOptions } from '../../src/git/open/open-repository.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { hostedFolder } from '../../src/package/store/opening/open-package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { credentialsOf } from '../../src/package/upstream/credentials.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf, keyText, type Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { controllerMirror } from '../delivery/branch/target-mirror.ts';
import { deliveredSource } from '../delivery/delivered-source.ts';
import { writeTargetStatus } from '../delivery/target/write-target-status.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { recordOnRevisions } from '../revision-events.ts';
import { ImpossibleRollbacks } from './impossible-rollbacks.ts';
import { type FoundRollback, type RollbackSearch, searchRollbacks } from './search-rollbacks.ts';

const ROLLBACK_ACTOR = 'controller:rollback';
const MAX_REASON_CHARACTERS = 240;

type RowsOf = (name: PackageName) => readonly PackageRevision[];

export interface RollbackOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'repositories'>;
  readonly clock: Clock;
  /** The objects of delivered packages, from an informer. Default: they are listed for each decision. */
  readonly delivered?: DeliveredPackages;
  /** The same as that of the delivery controller, whose mirrors this one reads. */
  readonly dataFolder: string;
  readonly git?: RepositoryOptions;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
  /** Milliseconds of a clock that never jumps. Default: that of the process. */
  readonly monotonic?: () => number;
}

/** Makes targets go back to the previous revision of a package that stays unhealthy after its delivery. */
export function rollbackController(options: RollbackOptions): ControllerOptions {
  const { store, clock, dataFolder, monotonic = () => performance.now() } = options;
  const client = options.client.as({ name: ROLLBACK_ACTOR }, 'controller');
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: ROLLBACK_ACTOR });
  const events = new EventDeduplicator(recorder);
  const observed = new Map<string, Observations>();
  const impossible = new ImpossibleRollbacks();

  return {
    name: 'rollback',
    sources: [
      watchKind(deliveryTargetKind, {
        predicate: (event) =>
          specOrMetadataChanged(event) ||
          (event.type === 'update' && !sameValue(factsOf(event.object), factsOf(event.old))),
        map: toObject,
      }),
      deliveredSource({ clock, map: (target) => [target] }),
    ],
    maxConcurrentReconciles: 4,
    namespaceShare: { most: 2, mostFailing: 1 },
    reconcileTimeoutMs: 60_000,
    baseDelayMs: 1_000,
    maxDelayMs: 300_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      const target = await client.find(deliveryTargetKind, key);
      if (target === undefined || target.metadata.deletionTimestamp !== undefined) {
        observed.delete(keyText(key));
        impossible.keep(key, new Set());
        events.forget(key);
        return undefined;
      }
      const resumed = target.metadata.annotations?.[RESUME_ANNOTATION];
      const ended = target.status?.rollbacks?.filter((one) => isResumed(resumed, one)) ?? [];
      // The new status wakes this controller again.
      if (ended.length > 0) return resume(target, ended);
      const packages = await deliveredOf(client, options.delivered, target);
      const rowsOf = publishedRows(target);
      const { observations, due, nextMs } = decideRollbacks(target, packages, observed.get(keyText(key)) ?? new Map(), {
        monotonicMs: monotonic(),
        highestOf: (name) => highestOf(rowsOf(name)),
      });
      if (observations.size === 0) observed.delete(keyText(key));
      else observed.set(keyText(key), observations);
      impossible.keep(key, observations);
      const isKept = ({ delivered }: DueRollback) => isResumed(resumed, { ...delivered, from: delivered.revision });
      const failed = due.filter((one) => !isKept(one));
      if (failed.length > 0) await rollBack(target, failed, rowsOf, signal);
      return nextMs === undefined
        ? undefined
        : { requeueAfter: Math.max(nextMs, 100), reason: 'the time after which an unhealthy package is rolled back' };
    },
  };

  /** The published revisions of packages in the repositories that are open now. */
  function publishedRows({ metadata }: Stored<DeliveryTarget>): RowsOf {
    const repositories = new Map(
      store.repositories().flatMap((one) => (one.namespace === metadata.namespace ? [[one.repository, one]] : [])),
    );
    return (name) =>
      (repositories.get(name.repository)?.index.ofPackage(name.package) ?? []).filter(
        (row) => isPublished(row) && row.revision > 0,
      );
  }

  async function rollBack(
    target: Stored<DeliveryTarget>,
    due: readonly DueRollback[],
    rowsOf: RowsOf,
    signal: AbortSignal,
  ): Promise<void> {
    const { lastCommit } = target.status ?? {};
    if (lastCommit === undefined) return;
    const { directory } = target.spec.git;
    const isOutOfBandAllowed = target.spec.allowOutOfBand === true;
    const searches = due.map((one): RollbackSearch => {
      const folder = joinPath(normalizeDirectory(directory), one.delivered.package);
      return { due: one, folder, facts: { lastCommit, isOutOfBandAllowed, rows: rowsOf(one.delivered) } };
    });
    const fresh = searches.filter((one) => !impossible.has(keyOf(target), one.due, one.facts));
    if (fresh.length === 0) return;
    const added = noteResults(target, await search(target, fresh, lastCommit, signal));
    if (added.length === 0) return;
    const written = await writeTargetStatus(client, target, ({ status }) =>
      // A delivery in the meantime is another one.
      status === undefined || status.lastCommit !== lastCommit ? undefined : withRollbacks(status, added, clock.now()),
    );
    if (written === undefined) return;
    const repositories = store.repositories().filter(({ namespace }) => namespace === target.metadata.namespace);
    for (const rollback of added) {
      events.record(target, 'Warning', 'RolledBack', rollbackText(rollback), packageKey(rollback));
      const message = `DeliveryTarget ${target.metadata.name}: ${rollbackText(rollback)}`;
      const failed = { ...rollback, revision: rollback.from };
      recordOnRevisions(recorder, repositories, [failed], { type: 'Warning', reason: 'RolledBack', message });
    }
  }

  async function search(
    target: Stored<DeliveryTarget>,
    searches: readonly RollbackSearch[],
    lastCommit: Oid,
    signal: AbortSignal,
  ): Promise<FoundRollback[]> {
    const { git: place } = target.spec;
    const credentials = credentialsOf(client, target, place.secretRef);
    const { git } = await openLocation({
      ...{ url: place.repo, mirrorPath: controllerMirror(dataFolder, target), hostedFolder: hostedFolder(dataFolder) },
      ...(credentials === undefined ? {} : { credentials }),
      ...(options.git === undefined ? {} : { repository: options.git }),
    });
    try {
      return await searchRollbacks(git, lastCommit, settingsOf(target).name, searches, signal);
    } finally {
      await git.close();
    }
  }

  /** Returns the rollbacks that are possible. The others are in one event for each cause. */
  function noteResults(target: Stored<DeliveryTarget>, found: readonly FoundRollback[]): Rollback[] {
    const time = new Date(clock.now()).toISOString();
    const rollbacks: Rollback[] = [];
    const without = new Map<string, DeliveredPackage[]>();
    for (const { due, facts, result } of found) {
      const { repository, package: path, revision, commit } = due.delivered;
      if ('because' in result) {
        const same = without.get(result.because) ?? [];
        same.push(due.delivered);
        without.set(result.because, same);
        impossible.add(keyOf(target), due, facts);
        continue;
      }
      const { reason, message } = due.state.healthy;
      const text = engineText(message === '' ? reason : `${reason}: ${message}`, MAX_REASON_CHARACTERS);
      const failed = commit === '' ? {} : { commit };
      rollbacks.push({ repository, package: path, from: revision, to: result.to, time, reason: text, ...failed });
    }
    for (const [because, packages] of without) {
      const message = impossibleRollbackText(packages, because);
      events.record(target, 'Warning', 'RollbackImpossible', message, because);
    }
    return rollbacks;
  }

  /** Ends rollbacks that a user has named. */
  async function resume(target: Stored<DeliveryTarget>, ended: readonly Rollback[]): Promise<undefined> {
    const written = await writeTargetStatus(client, target, ({ status }) =>
      status === undefined ? undefined : withResumedRevisions(status, ended, clock.now()),
    );
    if (written === undefined) return;
    for (const one of ended) {
      events.forgetTopic(keyOf(target), packageKey(one));
      const message = `the rollback of ${packageKey(one)} from v${one.from} to v${one.to} is ended by hand; the target delivers its last revision again`;
      events.record(target, 'Normal', 'Resumed', message, `resume ${packageKey(one)}`);
    }
  }
}

function highestOf(rows: readonly PackageRevision[]): number | undefined {
  return rows.length === 0 ? undefined : Math.max(...rows.map(({ revision }) => revision));
}

/** What a decision depends on in a status. */
function factsOf({ status }: DeliveryTarget): unknown {
  return [status?.lastCommit, status?.packages, status?.packagesDigest, status?.deployment, status?.rollbacks];
}
