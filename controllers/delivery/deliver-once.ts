import type { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import { settingsOf } from '../../src/delivery/delivery-target.ts';
import { joinPath, normalizeDirectory } from '../../src/delivery/path-rules.ts';
import { isAlert, packageKey } from '../../src/delivery/selection/select-revisions.ts';
import type { Desired } from '../../src/delivery/tree/desired-result.ts';
import type { FolderOwner } from '../../src/delivery/tree/kustomization.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { runInSlices } from '../../src/package/index/steps.ts';
import type { FreezeRule } from '../../src/package/model/policy/approval-rules.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf, type Stored } from '../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../event-deduplicator.ts';
import { recordOnRevisions } from '../revision-events.ts';
import type { TargetBranch } from './branch/target-branch.ts';
import type { DeliveredWriter } from './branch/write-delivered.ts';
import { namingDeletedOwners } from './deleted-owners.ts';
import {
  changedFolders,
  type DeliveryReport,
  describeDelivery,
  frozenReport,
  reportOf,
  unregisteredText,
} from './delivery-report.ts';
import { type DriftText, describeDrifts } from './drift/describe-drift.ts';
import { deliveredBefore, findDrift } from './drift/find-drift.ts';
import { changedWhileStaying } from './drift/staying-folders.ts';
import { mergedPackages, type PullDeliveries, removedByMerge } from './pull-request/pull-deliveries.ts';
import type { TargetMemory } from './target/target-memory.ts';
import type { TargetObjects } from './target/target-objects.ts';
import { unknownPackages } from './unknown-packages.ts';
import type { WantedRevisions } from './wanted-revisions.ts';

export interface DeliveryContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'repositories'>;
  readonly clock: Clock;
  readonly events: EventDeduplicator;
  readonly recorder: EventRecorder;
  readonly writer: Pick<DeliveredWriter, 'read'>;
  readonly wantedRevisions: WantedRevisions;
  readonly pulls: PullDeliveries;
  readonly targetObjects: TargetObjects | undefined;
  /** See `DeliveryOptions`. */
  readonly onCommit: ((target: Stored<DeliveryTarget>, folders: readonly string[]) => void) | undefined;
  /** Those in force now. */
  freezesOf(target: Stored<DeliveryTarget>): Promise<readonly FreezeRule[]>;
}

/** What is delivered to. */
export interface Destination {
  readonly target: Stored<DeliveryTarget>;
  readonly branch: TargetBranch;
  readonly memory: TargetMemory;
}

/**
 * Reads the branch of a target, computes what it has to become, and commits the difference, or has it merged. Throws what `isLostRace` recognizes
 * if another writer was faster.
 */
export async function deliverOnce(
  context: DeliveryContext,
  { target, branch, memory }: Destination,
  repositoryObjects: readonly Stored<Repository>[],
  signal: AbortSignal,
): Promise<DeliveryReport> {
  const { client, store, clock, events, wantedRevisions, pulls } = context;
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
  const known = (await context.writer.read(target)).of(target);
  const wanted = await memory.change(async () => {
    const now = await wantedRevisions.of(target, known, repositories, objects, folders, { memory: memory.wanted });
    await context.targetObjects?.set(target, now.chosen);
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
    freezes = await context.freezesOf(target);
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
    announceMerge(context, target, repositories, { result, known, folders }, head.oid);
  if (result.edits.size > 0 && !isByPull) {
    commit = await branch.commit(head.oid, result.edits, result.message, author, signal, isPermitted);
    if (commit === undefined) return frozenReport(freezes);
    memory.committed(files, git.repo, commit, result.edits);
    announceCommit(context, target, repositories, result, commit);
  }
  const repair = isKept ? 'kept' : isByPull ? 'repaired by the merge of the pull request' : 'repaired';
  recordFindings(events, target, { result, driftTexts, isKept, repair, unregistered });
  const drifted = { packages: kept, texts: isKept ? driftTexts.map(({ text }) => text) : [] };
  const delivered = new Set(result.packages.map(packageKey));
  const unknown = unknownPackages({ target: settings.name, known, files, readable, delivered });
  const staying = [...result.refused, ...unknown];
  const edited = await changedWhileStaying(branch.git, head.oid, target, known, staying);
  const directory = normalizeDirectory(git.directory);
  const isLastCommitLost =
    commit === undefined && (await branch.hasLost(target.status?.lastCommit, head.oid, directory));
  return reportOf(target.status, known, {
    ...{ result, wanted, folders, unreadable, unknown, unregistered, commit },
    ...{ head: head.oid, isLastCommitLost, drifted, edited, pull },
  });
}

function announceCommit(
  { events, recorder, onCommit }: Pick<DeliveryContext, 'events' | 'onCommit' | 'recorder'>,
  target: Stored<DeliveryTarget>,
  repositories: readonly PackageRepository[],
  result: Desired,
  commit: Oid,
): void {
  events.record(target, 'Normal', 'Delivered', describeDelivery(commit, result), 'commit');
  const delivered = result.packages.filter(({ changed }) => changed);
  const message = `DeliveryTarget ${target.metadata.name}: commit ${commit}`;
  recordOnRevisions(recorder, repositories, delivered, { type: 'Normal', reason: 'Delivered', message });
  onCommit?.(target, changedFolders(result, target.spec.git.directory));
}

/** Reports what a merge delivered since the last report, as a push does at once. */
function announceMerge(
  { events, recorder, onCommit }: Pick<DeliveryContext, 'events' | 'onCommit' | 'recorder'>,
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
  onCommit?.(target, [...delivered.map(({ folder }) => folder), ...gone]);
}

/** Emits events for what was found besides the delivery, and forgets those for what is no longer so. */
function recordFindings(
  events: EventDeduplicator,
  target: Stored<DeliveryTarget>,
  found: {
    readonly result: Desired;
    readonly driftTexts: readonly DriftText[];
    readonly isKept: boolean;
    /** What becomes of drift. */
    readonly repair: string;
    readonly unregistered: readonly string[];
  },
): void {
  const { result, driftTexts, isKept, repair, unregistered } = found;
  for (const refusal of result.refused) {
    if (refusal.reason === 'Unverified') continue;
    const reason = isAlert(refusal) ? 'Held' : 'Refused';
    events.record(target, 'Warning', reason, `${packageKey(refusal)}: ${refusal.message}`, packageKey(refusal));
  }
  for (const { key, text } of driftTexts)
    events.record(target, 'Warning', 'Drifted', `${repair}: ${text}`, `drift ${key}`);
  if (unregistered.length > 0)
    events.record(target, 'Warning', 'RepositoryMissing', unregisteredText(unregistered), 'repositories');
  const driftTopics = isKept ? driftTexts.map(({ key }) => `drift ${key}`) : [];
  const topics = ['commit', ...(unregistered.length > 0 ? ['repositories'] : []), ...driftTopics];
  events.forget(keyOf(target), new Set([...topics, ...result.refused.map(packageKey)]));
}
