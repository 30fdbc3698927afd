import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { triggerSource } from '../../src/controller/source.ts';
import type { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import type { BuildPackage } from '../../src/delivery/render/build-package.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import { sleep } from '../../src/foundation/time/backoff.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { SteadyClock } from '../../src/foundation/time/steady-clock.ts';
import { isHosted } from '../../src/git/open/open-location.ts';
import type { RepositoryOptions } from '../../src/git/open/open-repository.ts';
import type { FreezeRule } from '../../src/package/model/policy/approval-rules.ts';
import { hostedFolder } from '../../src/package/store/opening/open-package-repository.ts';
import { Signers } from '../../src/package/store/opening/signing.ts';
import { freezesInForce } from '../../src/package/store/policies/freeze-objects.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { credentialsOf } from '../../src/package/upstream/credentials.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { STAYS_QUEUED } from '../pull-request/merging/dequeue.ts';
import { Maintainer } from '../repository/maintainer.ts';
import type { SyncRequests } from '../repository/sync-requests.ts';
import type { BuiltFolders } from './branch/built-folders.ts';
import { packageBranchText, packageRepositoryAt } from './branch/package-branches.ts';
import { isLostRace, TargetBranch } from './branch/target-branch.ts';
import { controllerMirror } from './branch/target-mirror.ts';
import { targetSources } from './branch/target-sources.ts';
import { DeliveredWriter } from './branch/write-delivered.ts';
import { type DeliveryContext, deliverOnce } from './deliver-once.ts';
import {
  BLOCKING_REASONS,
  type DeliveryReport,
  frozenReport,
  SUSPENDED,
  targetStatusAfter,
} from './delivery-report.ts';
import { type OpenTargetForge, PullDeliveries, STOPPED } from './pull-request/pull-deliveries.ts';
import { TargetMemories } from './target/target-memories.ts';
import type { TargetObjects } from './target/target-objects.ts';
import { withoutPackageList } from './target/without-package-list.ts';
import { writeTargetStatus } from './target/write-target-status.ts';
import { WantedRevisions } from './wanted-revisions.ts';

export const DELIVERY_ACTOR = 'controller:delivery';

export interface DeliveryOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'repositories'>;
  readonly clock: Clock;
  /** Mirrors of remote targets are kept in its folder `targets`. */
  readonly dataFolder: string;
  readonly git?: RepositoryOptions;
  /** Milliseconds within which packages that become ready share a commit. Default 200. */
  readonly window?: number;
  /** Milliseconds after which a target is checked without an event. Default 300,000. */
  readonly resync?: number;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
  /** The objects of delivered packages, from an informer. Default: they are listed for each reconciliation. */
  readonly delivered?: DeliveredPackages;
  /** Called after each commit with the folders that it changed, from the root of the repository of the target. */
  readonly onCommit?: (target: Stored<DeliveryTarget>, folders: readonly string[]) => void;
  /** Receives which packages ship which objects. */
  readonly targetObjects?: TargetObjects;
  /** The namespace whose freezes are in force in all. */
  readonly systemNamespace?: string;
  /** Wakes for targets that webhooks report on. Default: none. */
  readonly requests?: Pick<SyncRequests, 'subscribe'> | undefined;
  /** Makes the manifests of packages. Default: without programs that render. */
  readonly buildPackage?: BuildPackage;
  /** Cache of manifests between reconciliations. Default: a new cache. */
  readonly built?: BuiltFolders;
  /** Default: targets with `spec.pullRequest` are refused. */
  readonly openForge?: OpenTargetForge;
}

/** Maximum number of attempts on a branch with concurrent pushes, before the backoff of the queue applies. */
const MAX_ATTEMPTS = 5;

/** The first delivery of thousands of packages takes minutes on a busy machine. Requests to remotes have limits of their own. */
const TIMEOUT_MS = 600_000;

/** Commits the manifests of published packages into the branches of delivery targets. */
export function deliveryController(options: DeliveryOptions): ControllerOptions {
  const { store, clock, dataFolder, window = 200, resync = 300_000 } = options;
  const client = options.client.as({ name: DELIVERY_ACTOR }, 'controller');
  /** For the ends of freezes. */
  const steady = new SteadyClock(clock);
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: DELIVERY_ACTOR });
  const events = new EventDeduplicator(recorder);
  const signers = new Signers(client, clock);
  const wantedRevisions = new WantedRevisions(options.buildPackage, options.built);
  const memories = new TargetMemories();
  const writer = new DeliveredWriter({ client, clock, delivered: options.delivered });
  const pulls = new PullDeliveries(options.openForge, events, clock);
  const context: DeliveryContext = {
    ...{ client, store, clock, events, recorder, writer, wantedRevisions, pulls, freezesOf },
    ...{ targetObjects: options.targetObjects, onCommit: options.onCommit },
  };
  const maintainer = new Maintainer({ clock, interval: 6 * 3_600_000, budget: undefined });

  return {
    name: 'delivery',
    sources: [
      ...targetSources(options.systemNamespace),
      triggerSource((enqueue) => {
        const wake = (target: ObjectKey) => {
          pulls.noteMessage(keyText(target));
          enqueue(target);
        };
        return options.requests?.subscribe(wake) ?? (() => undefined);
      }),
    ],
    // Deliveries mostly wait, for the window and for remotes; one that hangs occupies a worker until its signal aborts.
    maxConcurrentReconciles: 64,
    namespaceShare: { most: 16, mostFailing: 4 },
    timeoutDelayMs: 120_000,
    reconcileTimeoutMs: TIMEOUT_MS,
    baseDelayMs: 500,
    maxDelayMs: 300_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      // Within the reconciliation and not before it, so that the manager is not idle while a delivery is about to begin.
      if (window > 0) await sleep(clock, window, signal);
      signal.throwIfAborted();
      const found = await client.find(deliveryTargetKind, key);
      if (found === undefined || found.metadata.deletionTimestamp !== undefined) return forget(key);
      let target = found;
      try {
        target = await withoutPackageList(client, writer, found, signal);
        const freezes = await freezesOf(target);
        let report = await reportFor(target, freezes, signal);
        const left = STOPPED.has(report.reason) ? await pulls.dequeue(target, report.message, signal) : undefined;
        if (left !== undefined && left !== 'failed') report = { ...report, pullRequest: left };
        // Before the status, which then counts these packages: a reader may see some of them early, but never misses one.
        if (report.packages !== undefined) await writer.write(target, report.packages, signal);
        await write(target, report);
        if (left === 'failed') return STAYS_QUEUED;
        const poll = pulls.pollMs(keyText(key), report);
        if (poll !== undefined) return { requeueAfter: poll, reason: 'the pull request of the target is read' };
        const ends = freezes.flatMap(({ until }) => until ?? []).map((until) => until - steady.now());
        if (ends.length > 0 && Math.min(...ends) < resync)
          return { requeueAfter: Math.max(1, Math.min(...ends)), reason: 'the end of a freeze' };
        return { requeueAfter: resync, reason: 'the next check of the branch of the target' };
      } catch (error) {
        const isTimeout = isSluiceError(signal.reason, 'Timeout');
        const message = isTimeout ? describeTimeout(target) : messageOf(error);
        // Without a report if the process ends.
        if (!signal.aborted || isTimeout) await write(target, { reason: 'Error', message });
        throw error;
      }
    },
  };

  async function reportFor(
    target: Stored<DeliveryTarget>,
    freezes: readonly FreezeRule[],
    signal: AbortSignal,
  ): Promise<DeliveryReport> {
    if (freezes.length > 0) return frozenReport(freezes);
    return target.spec.suspend === true ? { reason: 'Suspended', message: SUSPENDED } : deliver(target, signal);
  }

  function freezesOf({ metadata: { namespace = '' } }: Stored<DeliveryTarget>): Promise<FreezeRule[]> {
    const { systemNamespace } = options;
    return freezesInForce(
      client,
      { namespace, ...(systemNamespace === undefined ? {} : { systemNamespace }) },
      steady.now(),
    );
  }

  async function forget(key: ObjectKey): Promise<undefined> {
    events.forget(key);
    memories.forget(keyText(key));
    options.targetObjects?.forget({ metadata: key });
    await pulls.forget(keyText(key));
    await maintainer.forget(keyText(key), `target ${keyText(key)}`);
  }

  async function deliver(target: Stored<DeliveryTarget>, signal: AbortSignal): Promise<DeliveryReport> {
    const { git } = target.spec;
    const { items } = await client.list(repositoryKind);
    const registered = await packageRepositoryAt(git, items, target.metadata.namespace);
    if (registered !== undefined) {
      return { reason: 'TargetIsPackages', message: packageBranchText(git, registered) };
    }
    const credentials = credentialsOf(client, target, git.secretRef);
    const signer = signers.of(target);
    const branch = await TargetBranch.open({
      ...{
        url: git.repo,
        branch: git.branch,
        mirrorPath: controllerMirror(dataFolder, target),
        hostedFolder: hostedFolder(dataFolder),
      },
      ...(credentials === undefined ? {} : { credentials }),
      git: { ...options.git, ...(signer === undefined ? {} : { signer }) },
    });
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          const report = await deliverWithMemory(target, items, branch, signal);
          // What was merged is read from the branch, like a merge of a user.
          if (report.reason === 'Merged' && attempt < MAX_ATTEMPTS) continue;
          await maintain(target, branch, signal);
          return report;
        } catch (error) {
          // Another writer was faster; the branch is read again and the difference computed again.
          if (!isLostRace(error) || attempt >= MAX_ATTEMPTS) throw error;
        }
      }
    } finally {
      await branch.close();
    }
  }

  async function deliverWithMemory(
    target: Stored<DeliveryTarget>,
    repositoryObjects: readonly Stored<Repository>[],
    branch: TargetBranch,
    signal: AbortSignal,
  ): Promise<DeliveryReport> {
    const key = keyText(keyOf(target));
    const memory = memories.take(key);
    try {
      return await deliverOnce(context, { target, branch, memory }, repositoryObjects, signal);
    } finally {
      memories.put(key, memory);
    }
  }

  /** Packs the loose objects that deliveries leave behind; no other part does. */
  async function maintain(target: Stored<DeliveryTarget>, branch: TargetBranch, signal: AbortSignal): Promise<void> {
    const key = keyText(keyOf(target));
    maintainer.startIfDue(key, {
      ...{ name: `target ${key}`, git: branch.git, isOwn: branch.isMirror || isHosted(target.spec.git.repo) },
      report: (reason, error) => events.record(target, 'Warning', reason, messageOf(error), reason),
    });
    // Packing can be aborted at any time.
    const end = () => void maintainer.forget(key, `target ${key}`);
    signal.addEventListener('abort', end, { once: true });
    try {
      await maintainer.idle(key);
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  async function write(target: Stored<DeliveryTarget>, report: DeliveryReport): Promise<void> {
    const written = await writeTargetStatus(client, target, (current) =>
      targetStatusAfter(current, report, clock.now()),
    );
    if (written !== undefined && BLOCKING_REASONS.has(report.reason))
      events.record(target, 'Warning', report.reason, report.message, 'error');
  }
}

function describeTimeout({ spec: { git } }: DeliveryTarget): string {
  return `cannot deliver: ${git.repo} did not respond within ${TIMEOUT_MS / 1000} s; the delivery is retried with growing pauses`;
}
