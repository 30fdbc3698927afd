import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { triggerSource } from '../../src/controller/source.ts';
import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import type { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { settingsOf } from '../../src/delivery/delivery-target.ts';
import { joinPath, normalizeDirectory } from '../../src/delivery/path-rules.ts';
import type { BuildPackage } from '../../src/delivery/render/build-package.ts';
import { isAlert, packageKey } from '../../src/delivery/selection/select-revisions.ts';
import type { Desired } from '../../src/delivery/tree/desired-result.ts';
import type { FolderOwner } from '../../src/delivery/tree/kustomization.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import { sleep } from '../../src/foundation/time/backoff.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { SteadyClock } from '../../src/foundation/time/steady-clock.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { isHosted } from '../../src/git/open/open-location.ts';
import type { RepositoryOptions } from '../../src/git/open/open-repository.ts';
import { runInSlices } from '../../src/package/index/steps.ts';
import type { FreezeRule } from '../../src/package/model/policy/approval-rules.ts';
import { hostedFolder } from '../../src/package/store/opening/open-package-repository.ts';
import { Signers } from '../../src/package/store/opening/signing.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
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
import { recordOnRevisions } from '../revision-events.ts';
import type { BuiltFolders } from './branch/built-folders.ts';
import { packageBranchText, packageRepositoryAt } from './branch/package-branches.ts';
import { isLostRace, TargetBranch } from './branch/target-branch.ts';
import { controllerMirror } from './branch/target-mirror.ts';
import { targetSources } from './branch/target-sources.ts';
import { DeliveredWriter } from './branch/write-delivered.ts';
import { namingDeletedOwners } from './deleted-owners.ts';
import {
  BLOCKING_REASONS,
  changedFolders,
  type DeliveryReport,
  describeDelivery,
  frozenReport,
  reportOf,
  SUSPENDED,
  targetStatusAfter,
  unregisteredText,
} from './delivery-report.ts';
import { describeDrifts } from './drift/describe-drift.ts';
import { deliveredBefore, findDrift } from './drift/find-drift.ts';
import { changedWhileStaying } from './drift/staying-folders.ts';
import {
  mergedPackages,
  type OpenTargetForge,
  PullDeliveries,
  removedByMerge,
  STOPPED,
} from './pull-request/pull-deliveries.ts';
import { TargetMemories } from './target/target-memories.ts';
import type { TargetMemory } from './target/target-memory.ts';
import type { TargetObjects } from './target/target-objects.ts';
import { withoutPackageList } from './target/without-package-list.ts';
import { writeTargetStatus } from './target/write-target-status.ts';
import { unknownPackages } from './unknown-packages.ts';
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
      return await deliverOnce(target, repositoryObjects, branch, memory, signal);
    } finally {
      memories.put(key, memory);
    }
  }

  async function deliverOnce(
    target: Stored<DeliveryTarget>,
    repositoryObjects: readonly Stored<Repository>[],
    branch: TargetBranch,
    memory: TargetMemory,
    signal: AbortSignal,
  ): Promise<DeliveryReport> {
    const { git } = target.spec;
    const head = await branch.head(signal);
    const isByPull = target.spec.pullRequest !== undefined;
    if (head.oid === undefined && isByPull) {
      const message = `branch ${git.branch} does not exist in ${git.repo}, so that there is nothing to merge a pull request into; create it`;
      return { reason: 'BranchMissing', message };
    }
    if (head.oid === undefined && !head.isEmpty && git.createBranch !== true) {
      const message = `branch ${git.branch} does not exist in ${git.repo}; create it, or set spec.git.createBranch: true`;
      return { reason: 'BranchMissing', message };
    }
    const settings = settingsOf(target);
    const files = await memory.files(branch.git, git.repo, head.oid, normalizeDirectory(git.directory));
    // Rights are granted by namespace, so packages of another one are not delivered. A repository without its main branch
    // reports nothing about its packages.
    const repositories = store
      .repositories()
      .filter(({ index, namespace }) => namespace === target.metadata.namespace && index.mainHead !== undefined);
    // Only folders of this target: a folder of another target does not prove a delivery of this one.
    const folders = [...files.owners.values()].filter((owner) => owner.target === settings.name);
    const readable = new Set(repositories.map((one) => one.repository));
    const unreadable = new Set<string>();
    for (const { repository } of folders) if (!readable.has(repository)) unreadable.add(repository);
    const objects = repositoryObjects.filter(({ metadata }) => metadata.namespace === target.metadata.namespace);
    const registered = new Set(objects.map(({ metadata }) => metadata.name));
    const unregistered = [...new Set(target.spec.selector.repositories)].filter((name) => !registered.has(name));
    const known = (await writer.read(target)).of(target);
    const wanted = await memory.change(async () => {
      const now = await wantedRevisions.of(target, known, repositories, objects, folders, { memory: memory.wanted });
      await options.targetObjects?.set(target, now.chosen);
      return now;
    });
    const tree = memory.desired(settings, files);
    const update = (kept: ReadonlySet<string>): Promise<Desired> =>
      memory.change(async () => {
        const first = await runInSlices(tree.update(wanted.revisions, unreadable, kept));
        if (first.missing.length === 0) return first;
        await wantedRevisions.load(target, first.missing, repositories, memory.wanted);
        return runInSlices(tree.update(wanted.revisions, unreadable, kept));
      });
    let result = await update(new Set());
    const differing = head.oid === undefined ? [] : deliveredBefore(result.packages, folders, known);
    const drifts = head.oid === undefined ? [] : await findDrift(branch.git, head.oid, settings.name, differing);
    const driftTexts = await describeDrifts(branch.git, files, result.edits, drifts, target.spec.render);
    const isKept = target.spec.drift === 'Report' && drifts.length > 0;
    const kept = new Set(isKept ? drifts.map(({ of }) => packageKey(of)) : []);
    if (isKept) result = await update(kept);
    result = { ...result, refused: await namingDeletedOwners(client, target, result.refused, signal) };
    const author = { name: git.author ?? 'sluice', email: git.email ?? 'sluice@localhost', time: clock.now() };
    const drifting = new Set(drifts.map(({ of }) => packageKey(of)));
    let commit: Oid | undefined;
    let freezes: readonly FreezeRule[] = [];
    const isPermitted = async () => {
      freezes = await freezesOf(target);
      return freezes.length === 0;
    };
    const pull =
      isByPull && head.oid !== undefined
        ? await pulls.deliver(
            { target, branch, base: head.oid, result, author, isPermitted },
            { folders, drifted: drifting },
            result,
            signal,
          )
        : undefined;
    if (freezes.length > 0) return frozenReport(freezes);
    if (pull?.isMerged === true) return { reason: 'Merged', message: 'the branch of the target is read again' };
    if (pull !== undefined && head.oid !== undefined)
      announceMerge(target, repositories, { result, known, folders }, head.oid);
    if (result.edits.size > 0 && !isByPull) {
      commit = await branch.commit(head.oid, result.edits, result.message, author, signal, isPermitted);
      if (commit === undefined) return frozenReport(freezes);
      memory.committed(files, git.repo, commit, result.edits);
      events.record(target, 'Normal', 'Delivered', describeDelivery(commit, result), 'commit');
      const delivered = result.packages.filter(({ changed }) => changed);
      const message = `DeliveryTarget ${target.metadata.name}: commit ${commit}`;
      recordOnRevisions(recorder, repositories, delivered, { type: 'Normal', reason: 'Delivered', message });
      options.onCommit?.(target, changedFolders(result, git.directory));
    }
    for (const refusal of result.refused) {
      if (refusal.reason === 'Unverified') continue;
      const reason = isAlert(refusal) ? 'Held' : 'Refused';
      events.record(target, 'Warning', reason, `${packageKey(refusal)}: ${refusal.message}`, packageKey(refusal));
    }
    const repair = isKept ? 'kept' : isByPull ? 'repaired by the merge of the pull request' : 'repaired';
    for (const { key, text } of driftTexts)
      events.record(target, 'Warning', 'Drifted', `${repair}: ${text}`, `drift ${key}`);
    if (unregistered.length > 0)
      events.record(target, 'Warning', 'RepositoryMissing', unregisteredText(unregistered), 'repositories');
    const driftTopics = isKept ? driftTexts.map(({ key }) => `drift ${key}`) : [];
    const topics = ['commit', ...(unregistered.length > 0 ? ['repositories'] : []), ...driftTopics];
    events.forget(keyOf(target), new Set([...topics, ...result.refused.map(packageKey)]));
    const drifted = { packages: kept, texts: isKept ? driftTexts.map(({ text }) => text) : [] };
    const delivered = new Set(result.packages.map(packageKey));
    const unknown = unknownPackages({ target: settings.name, known, files, readable, delivered });
    const staying = [...result.refused, ...unknown];
    const edited = await changedWhileStaying(branch.git, head.oid, target, known, staying);
    const directory = normalizeDirectory(git.directory);
    const isLastCommitLost =
      commit === undefined && (await branch.hasLost(target.status?.lastCommit, head.oid, directory));
    return reportOf(target.status, known, {
      ...{
        result,
        wanted,
        folders,
        unreadable,
        unknown,
        unregistered,
        commit,
        head: head.oid,
        isLastCommitLost,
        drifted,
        edited,
        pull,
      },
    });
  }

  /** Reports what a merge delivered since the last report, as a push does at once. */
  function announceMerge(
    target: Stored<DeliveryTarget>,
    repositories: readonly PackageRepository[],
    about: {
      readonly result: Desired;
      readonly known: readonly DeliveredPackage[];
      readonly folders: readonly FolderOwner[];
    },
    head: Oid,
  ): void {
    const delivered = mergedPackages(about.result.packages, about.known);
    const removed = removedByMerge(about.known, about.folders);
    if (delivered.length + removed.length === 0) return;
    const parts = [
      ...delivered.map(({ package: path, revision }) => `${path} v${revision}`),
      ...removed.map(({ package: path }) => `${path} removed`),
    ];
    events.record(target, 'Normal', 'Delivered', `merged, at ${head}: ${parts.join(', ')}`, 'commit');
    const message = `DeliveryTarget ${target.metadata.name}: merged, at ${head}`;
    recordOnRevisions(recorder, repositories, delivered, { type: 'Normal', reason: 'Delivered', message });
    const directory = normalizeDirectory(target.spec.git.directory);
    const gone = removed.map(({ package: path }) => joinPath(directory, path));
    options.onCommit?.(target, [...delivered.map(({ folder }) => folder), ...gone]);
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
