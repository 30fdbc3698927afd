import { conditionsOf } from '../../kptfile-schema/index.ts';
import type { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { settingsOf } from '../../src/delivery/delivery-target.ts';
import type { BuildPackage } from '../../src/delivery/render/build-package.ts';
import { type PackageRefusal, packageKey, selectRevisions } from '../../src/delivery/selection/select-revisions.ts';
import type { KeyedMutex } from '../../src/foundation/concurrency/mutex.ts';
import { messageOf } from '../../src/foundation/sluice-error.ts';
import { timestamp } from '../../src/foundation/time/clock.ts';
import type { GitNetwork } from '../../src/git/network/git-network.ts';
import { openLocation } from '../../src/git/open/open-location.ts';
import { type Explainer, type Findings, repairSteps, sluiceCommand } from '../../src/package/api/explain/explainer.ts';
import type { DeliveryExplanation } from '../../src/package/model/revision/explanation.ts';
import {
  isPublished,
  type PackageRevision,
  repositoryIdOf,
  revisionId,
} from '../../src/package/model/revision/package-revision.ts';
import { hostedFolder } from '../../src/package/store/opening/open-package-repository.ts';
import { selects } from '../../src/package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { credentialsOf } from '../../src/package/upstream/credentials.ts';
import type { Client } from '../../src/resource/client/client.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { keyOf, keyText, type Stored } from '../../src/resource/object/object.ts';
import { withDeployment } from '../deployment-status/explain-deployment.ts';
import { DELIVERABLE_TYPE, UNDELIVERABLE } from '../revision/resolvers/deliverable/deliverability.ts';
import { packageBranchText, packageRepositoryAt } from './branch/package-branches.ts';
import { wasDeleted } from './deletion-proof.ts';
import { type LastDelivery, lastDelivery } from './delivery-history.ts';
import { refusalIn, SUSPENDED } from './delivery-report.ts';
import { repushText } from './lost-tag.ts';
import { targetNotes } from './target/target-notes.ts';

export interface DeliveryExplainerOptions {
  readonly store: RevisionStore;
  readonly repositories: () => readonly Stored<Repository>[];
  readonly targets: () => readonly Stored<DeliveryTarget>[];
  readonly delivered: DeliveredPackages;
  /** For the credentials of targets. */
  readonly client: Client;
  readonly network: GitNetwork;
  readonly dataFolder: string;
  /** Path of the mirror of a remote target for explanations; the delivery controller has a separate mirror. */
  readonly mirrorOf: (target: DeliveryTarget) => string;
  /** Locks by the path of a mirror: one reader at a time. */
  readonly mirrors: KeyedMutex;
  readonly buildPackage: BuildPackage;
  /** Milliseconds that reading a target may take. */
  readonly timeoutMs: number;
}

/** Explains where a published revision was delivered, or why it was not; for a draft, why a target would refuse it. */
export function deliveryExplainer(options: DeliveryExplainerOptions): Explainer {
  return {
    async explain({ evaluation: { revision } }, { signal }) {
      if (!isPublished(revision)) return undeliverable(revision);
      return revision.revision < 1 ? {} : { delivery: await explainDelivery(options, revision, signal) };
    },
  };
}

/** Returns what keeps a target from delivering the package well after its publication, and how to repair it before. */
function undeliverable(revision: PackageRevision): Findings {
  const { kptfile, lifecycle, name } = revision;
  const condition = kptfile && conditionsOf(kptfile).get(DELIVERABLE_TYPE);
  if (condition?.status !== 'False') return {};
  const reason = condition.message ?? 'a target cannot deliver it';
  const message = `if it is published in this state, ${reason}`;
  // A proposal has to become a draft again before its files can change.
  const withdraw =
    lifecycle === 'Proposed' ? [sluiceCommand('rpkg', 'reject', name, '--reason', `${DELIVERABLE_TYPE} is False`)] : [];
  return { reasons: [{ reason: UNDELIVERABLE, message }], next: [...withdraw, ...repairSteps(revision)] };
}

async function explainDelivery(
  part: DeliveryExplainerOptions,
  revision: PackageRevision,
  signal: AbortSignal | undefined,
): Promise<DeliveryExplanation[]> {
  const id = repositoryIdOf(revision);
  const repository = part.repositories().find((one) => keyText(keyOf(one)) === id);
  // Rights are granted by namespace, so a target of another one does not deliver it.
  const selecting = part
    .targets()
    .filter(({ metadata }) => metadata.namespace === revision.namespace)
    .filter((target) => selects(target.spec.selector, revision, repository));
  // Targets are explained in parallel, so that one that does not respond does not delay the others.
  const explained = await Promise.all(
    selecting.map(async (target) => {
      const explained = await explainTarget(part, revision, target, signal);
      const explanation = withDeployment(explained, revision, target, part.delivered);
      const notes = await targetNotes(part.client, target, revision, signal);
      return notes.length === 0 ? explanation : { ...explanation, notes };
    }),
  );
  explained.sort((a, b) => (a.target < b.target ? -1 : 1));
  if (repository?.spec.deployment === true) {
    explained.push({
      target: repository.metadata.name,
      state: 'Delivered',
      commit: revision.commit,
      message: `clusters sync from the repository itself, branch ${repository.spec.git?.branch}`,
    });
  }
  if (explained.length === 0) {
    explained.push({
      target: '(none)',
      state: 'NotDelivered',
      message: 'no DeliveryTarget selects it, and its repository is no deployment repository',
    });
  }
  return explained;
}

async function explainTarget(
  part: DeliveryExplainerOptions,
  revision: PackageRevision,
  target: Stored<DeliveryTarget>,
  request: AbortSignal | undefined,
): Promise<DeliveryExplanation> {
  const settings = settingsOf(target);
  const { name } = settings;
  const notDelivered = (message: string): DeliveryExplanation => ({ target: name, state: 'NotDelivered', message });
  const registered = await packageRepositoryAt(target.spec.git, part.repositories(), revision.namespace);
  if (registered !== undefined) {
    const { repo, branch } = target.spec.git;
    return notDelivered(packageBranchText({ repo, branch }, registered));
  }
  const timeout = AbortSignal.timeout(part.timeoutMs);
  const signal = request === undefined ? timeout : AbortSignal.any([timeout, request]);
  const branch = await readBranch(part, revision, target, signal).catch((error: unknown) => ({
    problem: timeout.aborted ? `no answer within ${part.timeoutMs / 1000} s` : messageOf(error),
  }));
  if (target.spec.suspend === true) return explainSuspended(revision, target, branch);
  const { chosen, blocked } = await selectionOf(part, revision, target, 'problem' in branch ? undefined : branch.last);
  const { git } = target.spec;
  const place = `branch ${git.branch} of ${git.repo}`;
  const isThere = !('problem' in branch) && branch.last?.revision === revision.revision;
  const [hold] = blocked;
  if (hold !== undefined) {
    const message = hold.message + repushOf(hold, part, revision, target);
    return isThere ? { target: name, state: 'Held', commit: branch.last.commit, message } : notDelivered(message);
  }
  const [choice] = chosen;
  if (choice !== undefined && choice.revision !== revision.revision) {
    const back = target.status?.rollbacks?.find((one) => packageKey(one) === packageKey(choice));
    const isPinned = target.spec.pins?.some((one) => packageKey(one) === packageKey(choice)) === true;
    const isFailed = !isPinned && back?.from === revision.revision && back.to === choice.revision;
    const message = isFailed
      ? `v${choice.revision} is delivered there again, since v${back.from} failed (${back.time}): ${back.reason}; publish another revision, or run "sluice target resume ${target.metadata.name}"`
      : `v${choice.revision} is delivered there${isPinned ? ', which spec.pins names' : ''}`;
    return { target: name, state: 'OtherRevision', message };
  }
  const content = await part.store.content(revisionId(revision));
  const source = { files: content.files, package: revision.key.package, namespace: revision.namespace };
  const outcome = await part.buildPackage(source, target.spec.render);
  if (outcome.refused !== undefined) return notDelivered(outcome.refused.message);
  const [secret] = outcome.manifests.openSecrets;
  if (secret !== undefined && target.spec.allowSecrets !== true) {
    return notDelivered(`${secret} is not encrypted, and the target does not allow that (allowSecrets)`);
  }
  if ('problem' in branch) {
    return { target: name, state: 'Unknown', message: `the target cannot be read: ${branch.problem}` };
  }
  const { last } = branch;
  if (isThere) {
    const at = timestamp(branch.last?.time ?? 0);
    const message = `on ${place}`;
    return { target: name, state: 'Delivered', commit: last?.commit ?? '', at, message };
  }
  const before = last?.revision === undefined ? '' : `; v${last.revision} was, in commit ${last.commit.slice(0, 12)}`;
  const waits = pullTextOf(target);
  const refusal = refusalFrom(target, revision, waits !== undefined);
  if (refusal === undefined && waits !== undefined) return notDelivered(`not on ${place} yet${before}; ${waits}`);
  if (refusal !== undefined) return notDelivered(`not on ${place}${before}; the target refuses it: ${refusal}`);
  return notDelivered(`not on ${place} yet${before}; "sluice up" delivers it next`);
}

/** What is on the branch stays; nothing is selected. */
function explainSuspended(
  { revision }: PackageRevision,
  target: Stored<DeliveryTarget>,
  branch: { readonly last: LastDelivery | undefined } | { readonly problem: string },
): DeliveryExplanation {
  const { name } = settingsOf(target);
  if ('problem' in branch)
    return { target: name, state: 'Unknown', message: `${SUSPENDED}; the target cannot be read: ${branch.problem}` };
  const { last } = branch;
  if (last?.revision !== revision) {
    const other = last?.revision === undefined ? '' : `; v${last.revision} is delivered there`;
    return { target: name, state: 'NotDelivered', message: `the target is suspended (spec.suspend)${other}` };
  }
  const { git } = target.spec;
  return {
    ...{ target: name, state: 'Delivered', commit: last.commit, at: timestamp(last.time) },
    message: `on branch ${git.branch} of ${git.repo}; ${SUSPENDED}`,
  };
}

const PULL_REASONS: readonly string[] = ['WaitsForMerge', 'PullRequestClosed', 'BranchChanged'];

/** What a delivery by pull request waits for. */
function pullTextOf({ spec, status }: Stored<DeliveryTarget>): string | undefined {
  const { pullRequest } = status ?? {};
  if (spec.pullRequest === undefined || pullRequest === undefined) return undefined;
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready !== undefined && PULL_REASONS.includes(ready.reason))
    return ready.message.replace(/^\d+ packages? (?:is|are) delivered; /, '');
  const isOpen = pullRequest.state === 'Open' || pullRequest.state === 'Queued';
  return isOpen ? `waits for the merge of ${pullRequest.url}` : undefined;
}

/** The refusal of the package in the status of the target. */
function refusalFrom(
  { status, metadata }: Stored<DeliveryTarget>,
  { key }: PackageRevision,
  hasPull: boolean,
): string | undefined {
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready?.status !== 'False' || (ready.observedGeneration ?? metadata.generation) !== metadata.generation)
    return undefined;
  if (ready.reason !== 'Partial') return hasPull ? undefined : ready.message;
  return refusalIn(ready.message, key);
}

/** Returns how to restore a missing tag if the target has recorded its commit. */
function repushOf(
  { reason, revision: number }: PackageRefusal,
  part: DeliveryExplainerOptions,
  explained: PackageRevision,
  target: Stored<DeliveryTarget>,
): string {
  const { key, path } = explained;
  if (reason !== 'OutOfBandRemoval') return '';
  const last = part.delivered.find(target, key);
  if (last === undefined || last.commit === '' || last.revision !== number) return '';
  const publication = { path, revision: last.revision, commit: last.commit };
  return `; ${repushText(part.store.repositoryOf(explained), publication, part.dataFolder)}`;
}

/** Returns the revision of the package that the target delivers, as its controller selects it. */
async function selectionOf(
  part: DeliveryExplainerOptions,
  explained: PackageRevision,
  target: Stored<DeliveryTarget>,
  last: LastDelivery | undefined,
) {
  const { repository, package: path } = explained.key;
  const rows = part.store
    .list({ repository: repositoryIdOf(explained), package: path })
    .filter((candidate) => isPublished(candidate) && candidate.revision > 0);
  const published = rows.map(({ revision, outOfBand }) => {
    const row = { repository, package: path, revision };
    return outOfBand === undefined ? row : { ...row, outOfBand };
  });
  const recorded = part.delivered.find(target, explained.key);
  const present = last?.revision ?? recorded?.revision;
  // The branch went back, for example to a backup.
  const reported =
    recorded !== undefined && present !== undefined && recorded.revision > present ? recorded.revision : undefined;
  const revision = reported ?? present;
  const delivered =
    present === undefined
      ? undefined
      : {
          ...{ repository, package: path, revision: present, hasFolder: last?.revision !== undefined },
          ...(reported === undefined ? {} : { reported }),
        };
  const isGone = revision !== undefined && !rows.some((row) => row.revision === revision);
  const commit = recorded?.revision === revision && recorded?.commit !== '' ? recorded?.commit : undefined;
  const isDeleted =
    isGone && (await wasDeleted(part.store.repositoryOf(explained), { package: path, revision }, commit));
  return selectRevisions(settingsOf(target), published, {
    delivered: new Map(delivered === undefined ? [] : [[packageKey(delivered), delivered]]),
    // The revision that the target selects.
    isSelected: () => true,
    isDeleted: () => isDeleted,
  });
}

/** The commit that delivered or removed the package last. */
async function readBranch(
  part: DeliveryExplainerOptions,
  revision: PackageRevision,
  target: Stored<DeliveryTarget>,
  signal: AbortSignal,
): Promise<{ readonly last: LastDelivery | undefined }> {
  const { repo, branch, secretRef } = target.spec.git;
  const ref = `refs/heads/${branch}`;
  const credentials = credentialsOf(part.client, target, secretRef);
  const mirrorPath = part.mirrorOf(target);
  return part.mirrors.run(mirrorPath, async () => {
    signal.throwIfAborted();
    const { git, remote } = await openLocation({
      url: repo,
      mirrorPath,
      hostedFolder: hostedFolder(part.dataFolder),
      repository: { network: part.network },
      ...(credentials === undefined ? {} : { credentials }),
    });
    try {
      if (remote !== undefined) await git.fetch(remote, { refspecs: [`+${ref}:${ref}`], signal });
      const head = await git.resolveRef(ref);
      return {
        last: head === undefined ? undefined : await lastDelivery(git, head, revision.key, settingsOf(target).name),
      };
    } finally {
      await git.close();
    }
  });
}
