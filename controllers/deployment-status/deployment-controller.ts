import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { triggerSource, watchKind } from '../../src/controller/source.ts';
import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import type { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { deliveredOf } from '../../src/delivery/delivered/list-delivered.ts';
import { normalizeDirectory } from '../../src/delivery/path-rules.ts';
import type { ConfirmedHealth } from '../../src/delivery/status/deployment-state.ts';
import type {
  DeploymentSources,
  DeploymentStatus,
  EngineReports,
} from '../../src/delivery/status/deployment-status.ts';
import { type EngineReport, state } from '../../src/delivery/status/engine-report.ts';
import { engineText } from '../../src/delivery/status/engine-values.ts';
import {
  type EvaluatedPackage,
  type TargetDeployment,
  targetDeployment,
} from '../../src/delivery/status/target-deployment.ts';
import { messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import { sleep } from '../../src/foundation/time/backoff.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import type { RepositoryOptions } from '../../src/git/open/open-repository.ts';
import { hostedFolder } from '../../src/package/store/opening/open-package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { credentialsOf } from '../../src/package/upstream/credentials.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { describeEngine } from '../../src/resource/kinds/sluice/delivery/engine-settings.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { controllerMirror } from '../delivery/branch/target-mirror.ts';
import { deliveredSource } from '../delivery/delivered-source.ts';
import { writeTargetStatus } from '../delivery/target/write-target-status.ts';
import {
  BranchTrees,
  folderLookup,
  ignoreLookup,
  isKnown,
  type KnownTrees,
  knownTrees,
  treeLookup,
  type UnreadKustomization,
} from './branch-trees.ts';
import { recordHealthChanges, recordTransitions } from './deployment-events.ts';
import { allPackages, evaluatePackages, lookUpFolders, reportedPackages, wantedTrees } from './evaluate-target.ts';

export const DEPLOYMENT_STATUS_ACTOR = 'controller:deployment-status';

export interface DeploymentStatusOptions {
  readonly client: Client;
  /** Of the package revisions that get events. */
  readonly store: Pick<RevisionStore, 'repositories'>;
  readonly clock: Clock;
  /** The same as that of the delivery controller, whose mirrors this one reads. */
  readonly dataFolder: string;
  readonly sources: DeploymentSources;
  /** The objects of delivered packages, from an informer. Default: they are listed for each evaluation. */
  readonly delivered?: DeliveredPackages;
  readonly git?: RepositoryOptions;
  /** Milliseconds within which reports about a target are evaluated together. Default 250. */
  readonly window?: number;
  /** Milliseconds after which a target is evaluated without a change. Default 60,000. */
  readonly resync?: number;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** Commits of the branch that sources by commit are read for. */
const MAX_COMMITS = 50;
const MAX_OBJECTS = 20;
/** Kustomizations that list each other, from the path of an engine's object to a package. */
const MAX_KUSTOMIZATION_LEVELS = 20;

/** What is kept of a target between reconciliations; it may be dropped at any time. */
interface FollowedTarget {
  /** The settings that the source was opened with. */
  readonly settings: string;
  /** Of the Secret with the kubeconfig. */
  readonly version: string;
  readonly status: DeploymentStatus;
  readonly known: KnownTrees;
  readonly confirmed: Map<string, ConfirmedHealth>;
  /** The commit of the delivery that was evaluated last. */
  lastCommit?: string | undefined;
}

/** Reads back what engines report about the targets of delivery, and writes it into their status. */
export function deploymentStatusController(options: DeploymentStatusOptions): ControllerOptions {
  const { clock, store, dataFolder, sources, window = 250, resync = 60_000 } = options;
  const client = options.client.as({ name: DEPLOYMENT_STATUS_ACTOR }, 'controller');
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: DEPLOYMENT_STATUS_ACTOR });
  const followed = new Map<string, FollowedTarget>();
  let wake: (key: ObjectKey) => void = () => undefined;
  /** A reconciliation that still runs must not open a connection that nothing closes: it would keep the process from ending. */
  let isStopping = false;

  return {
    name: 'deployment-status',
    sources: [
      watchKind(deliveryTargetKind, {
        predicate: (event) =>
          event.type !== 'update' ||
          event.object.metadata.generation !== event.old.metadata.generation ||
          !sameValue(deliveryOf(event.object), deliveryOf(event.old)),
        map: ({ object }) => [keyOf(object)],
      }),
      deliveredSource({ clock, quietMs: window, map: (target) => [target] }),
      triggerSource((enqueue) => {
        wake = enqueue;
        isStopping = false;
        return () => {
          isStopping = true;
          wake = () => undefined;
          for (const key of [...followed.keys()]) void forget(key);
        };
      }),
    ],
    maxConcurrentReconciles: 16,
    namespaceShare: { most: 8, mostFailing: 2 },
    reconcileTimeoutMs: 60_000,
    baseDelayMs: 1_000,
    maxDelayMs: 300_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      if (window > 0) await sleep(clock, window, signal);
      signal.throwIfAborted();
      const target = await client.find(deliveryTargetKind, key);
      if (target === undefined || target.metadata.deletionTimestamp !== undefined) return forget(keyText(key));
      const { engine } = target.spec;
      if (engine === undefined) {
        await forget(keyText(key));
        await write(target, [], () => undefined);
        return undefined;
      }
      const packages = await deliveredOf(client, options.delivered, target);
      const { evaluated, tree, reports, retryAfterMs, version } = await evaluate(target, packages, signal);
      await write(target, packages, (before) =>
        targetDeployment(evaluated, {
          ...{
            delivered: deliveredState(target),
            engine: { settings: describeEngine(engine, target.spec.git), version },
            commit: target.status?.lastCommit,
            tree,
            objects: objectsOf(reports),
            before,
            now: clock.now(),
          },
        }),
      );
      const requeueAfter = Math.max(Math.min(retryAfterMs ?? resync, resync), 100);
      return { requeueAfter, reason: 'the next read of what the engine reports' };
    },
  };

  async function forget(key: string): Promise<undefined> {
    const entry = followed.get(key);
    followed.delete(key);
    await entry?.status.close();
  }

  async function evaluate(
    target: Stored<DeliveryTarget>,
    packages: readonly DeliveredPackage[],
    signal: AbortSignal,
  ): Promise<{
    readonly evaluated: readonly EvaluatedPackage[];
    /** Of the target's directory in the delivery; undefined if it was not read. */
    readonly tree?: Oid | undefined;
    readonly reports: readonly EngineReport[];
    readonly retryAfterMs?: number | undefined;
    /** See `DeploymentSources.versionOf`. */
    readonly version: string;
  }> {
    let branch: Promise<BranchTrees> | undefined;
    try {
      const { status, known, confirmed, version } = await follow(target, signal);
      const directory = normalizeDirectory(target.spec.git.directory);
      const openBranch = () => {
        branch ??= openTrees(target, directory, known);
        return branch;
      };
      const read: EngineReports = await status.reports({
        commits: async () => (await openBranch()).newestCommits(MAX_COMMITS, signal),
        signal,
      });
      const { reports, retryAfterMs, absent } = read;
      const lastCommit = target.status?.lastCommit;
      if (lastCommit === undefined) {
        const none = state('Unknown', 'NotReported', 'Sluice has not delivered to the target yet');
        return { evaluated: allPackages(packages, none), reports, retryAfterMs, version };
      }
      if (absent !== undefined)
        return {
          ...{ evaluated: allPackages(packages, state('Unknown', 'NotReported', absent)) },
          ...{ reports, retryAfterMs, version },
        };
      const reported = reportedPackages(target, packages, reports);
      const before = target.status?.deployment;
      const wanted = wantedTrees(reported, lastCommit, before);
      if (!isKnown(known, directory, wanted, clock.now())) await (await openBranch()).read(wanted, clock.now(), signal);
      const treeAt = treeLookup(known, directory);
      const unread = new Map<string, UnreadKustomization>();
      const ignores = new Set<string>();
      const lookups = {
        treeAt,
        includes: folderLookup(known, unread),
        leftOut: ignoreLookup(known, treeAt, ignores),
      };
      // Each round reads one level of kustomizations that list others.
      for (let level = 0; level < MAX_KUSTOMIZATION_LEVELS; level += 1) {
        lookUpFolders(reported, lookups);
        if (unread.size + ignores.size === 0) break;
        const opened = await openBranch();
        await opened.readKustomizations([...unread.values()]);
        await opened.readIgnores([...ignores]);
        unread.clear();
        ignores.clear();
      }
      const evaluated = evaluatePackages(reported, {
        ...{ ...lookups, lastCommit, before, now: clock.now(), confirmed },
      });
      return { evaluated, tree: known.directories.get(lastCommit) ?? undefined, reports, retryAfterMs, version };
    } catch (error) {
      if (signal.aborted || isStopping) throw error;
      const message = engineText(messageOf(error));
      // A wrong setting too: reports cannot be read, and the Warning event of this reason shows it.
      const unreachable = state('Unknown', 'Unreachable', message);
      return { evaluated: allPackages(packages, unreachable), reports: [], version: '' };
    } finally {
      const opened = await branch?.catch(() => undefined);
      await opened?.close();
    }
  }

  /** Follows the reports of a target, again if its settings have changed. */
  async function follow(target: Stored<DeliveryTarget>, signal: AbortSignal): Promise<FollowedTarget> {
    const key = keyText(keyOf(target));
    const { engine, git } = target.spec;
    const version = await sources.versionOf(target, signal);
    const settings = JSON.stringify([target.metadata.uid, engine, git, version]);
    const present = followed.get(key);
    if (present?.settings === settings) return present;
    await forget(key);
    const onChange = () => wake(keyOf(target));
    const status = await sources.open(target, onChange, signal);
    if (isStopping) {
      await status.close();
      throw new SluiceError('Unavailable', 'the controller is stopping');
    }
    const entry = { settings, version, status, known: knownTrees(), confirmed: new Map<string, ConfirmedHealth>() };
    followed.set(key, entry);
    return entry;
  }

  function openTrees(target: Stored<DeliveryTarget>, directory: string, known: KnownTrees): Promise<BranchTrees> {
    const { git } = target.spec;
    const credentials = credentialsOf(client, target, git.secretRef);
    return BranchTrees.open(
      {
        ...{ url: git.repo, branch: git.branch, mirrorPath: controllerMirror(dataFolder, target) },
        hostedFolder: hostedFolder(dataFolder),
        ...(credentials === undefined ? {} : { credentials }),
        ...(options.git === undefined ? {} : { git: options.git }),
      },
      directory,
      known,
    );
  }

  /** Writes the part of the status, and records events about what became different. */
  async function write(
    target: Stored<DeliveryTarget>,
    packages: readonly DeliveredPackage[],
    next: (before: TargetDeployment | undefined) => TargetDeployment | undefined,
  ): Promise<void> {
    let deployment: TargetDeployment | undefined;
    const written = await writeTargetStatus(client, target, ({ status }) => {
      deployment = next(status?.deployment);
      if (sameValue(deployment, status?.deployment)) return undefined;
      const { deployment: _, ...rest } = status ?? {};
      return { ...rest, ...(deployment === undefined ? {} : { deployment }) };
    });
    const entry = followed.get(keyText(keyOf(target)));
    const isSameDelivery = entry?.lastCommit === target.status?.lastCommit;
    if (entry !== undefined) entry.lastCommit = target.status?.lastCommit;
    if (written === undefined || deployment === undefined) return;
    const before = written.status?.deployment;
    recordTransitions(recorder, target, before, deployment, isSameDelivery);
    const repositories = store.repositories().filter(({ namespace }) => namespace === target.metadata.namespace);
    recordHealthChanges(recorder, repositories, target, packages, before, deployment);
  }
}

/** What a delivery changes in a status. */
function deliveryOf({ status }: DeliveryTarget): unknown {
  return [
    status?.lastCommit,
    status?.packages,
    status?.packagesDigest,
    findCondition(status?.conditions, 'Ready')?.reason,
  ];
}

function deliveredState({ status }: DeliveryTarget) {
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready === undefined) return { status: 'Unknown', reason: 'Pending', message: 'not delivered yet' } as const;
  return { status: ready.status, reason: ready.reason ?? '', message: engineText(ready.message ?? '') };
}

function objectsOf(reports: readonly EngineReport[]): NonNullable<TargetDeployment['objects']> {
  return reports
    .map(({ object, path, applied }) => ({
      name: object,
      path,
      ...(applied === undefined ? {} : { revision: applied }),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .slice(0, MAX_OBJECTS);
}
