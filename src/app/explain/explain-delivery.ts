import { wasDeleted } from '../../../controllers/delivery/deletion-proof.ts';
import { packageRepositoryAt } from '../../../controllers/delivery/package-branches.ts';
import { settingsOf } from '../../delivery/delivery-target.ts';
import { manifestsOf } from '../../delivery/manifests.ts';
import { type PackageRefusal, packageKey, selectRevisions } from '../../delivery/select-revisions.ts';
import { messageOf } from '../../foundation/sluice-error.ts';
import { openLocation } from '../../git/open/open-location.ts';
import { isPublished, type PackageRevision, repositoryIdOf, revisionId } from '../../package/model/package-revision.ts';
import { hostedFolder } from '../../package/store/open-package-repository.ts';
import { selects } from '../../package/store/policy-objects.ts';
import { credentialsOf } from '../../package/upstream/credentials.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/delivery-target.ts';
import { findCondition } from '../../resource/object/condition.ts';
import type { Stored } from '../../resource/object/object.ts';
import { targetMirror } from '../data-folder.ts';
import type { Session } from '../session.ts';
import { type LastDelivery, lastDelivery } from './delivered-commit.ts';
import type { DeliveryExplanation } from './explanation.ts';
import { repushText } from './lost-tag.ts';

/** Where a published revision was delivered, or why it was not. */
export async function explainDelivery(session: Session, revision: PackageRevision): Promise<DeliveryExplanation[]> {
  if (!isPublished(revision) || revision.revision < 1) return [];
  const repository = session.repository(repositoryIdOf(revision));
  const targets = session.objects.of(deliveryTargetKind);
  const selecting = targets.filter((target) => selects(target.spec.selector, revision, repository));
  // Side by side, so that one that does not answer costs its own time only; but two of one repository share a mirror.
  const groups = [...Map.groupBy(selecting, (target) => target.spec.git.repo).values()];
  const explained = await Promise.all(
    groups.map(async (group) => {
      const told: DeliveryExplanation[] = [];
      for (const target of group) told.push(await explainTarget(session, revision, target));
      return told;
    }),
  );
  const told = explained.flat().sort((a, b) => (a.target < b.target ? -1 : 1));
  if (repository?.spec.deployment === true) {
    told.push({
      target: repository.metadata.name,
      state: 'Delivered',
      commit: revision.commit,
      message: `clusters sync from the repository itself, branch ${repository.spec.git?.branch}`,
    });
  }
  if (told.length === 0) {
    told.push({
      target: '(none)',
      state: 'NotDelivered',
      message: 'no DeliveryTarget selects it, and its repository is no deployment repository',
    });
  }
  return told;
}

async function explainTarget(
  session: Session,
  revision: PackageRevision,
  target: Stored<DeliveryTarget>,
): Promise<DeliveryExplanation> {
  const settings = settingsOf(target);
  const { name } = settings;
  const notDelivered = (message: string): DeliveryExplanation => ({ target: name, state: 'NotDelivered', message });
  if (target.spec.suspend === true) return notDelivered('the target is suspended (spec.suspend)');
  const registered = await packageRepositoryAt(target.spec.git, session.repositories());
  if (registered !== undefined) {
    const { repo, branch } = target.spec.git;
    return notDelivered(`branch ${branch} of ${repo} belongs to the packages of Repository ${registered}`);
  }
  const signal = AbortSignal.timeout(session.patience);
  const branch = await lookAtBranch(session, revision, target, signal).catch((error: unknown) => ({
    problem: signal.aborted ? `no answer within ${session.patience / 1000} s` : messageOf(error),
  }));
  const { chosen, held } = await selectionOf(session, revision, target, 'problem' in branch ? undefined : branch.last);
  const { git } = target.spec;
  const place = `branch ${git.branch} of ${git.repo}`;
  const isThere = !('problem' in branch) && branch.last?.revision === revision.revision;
  const [hold] = held;
  if (hold !== undefined) {
    const message = hold.message + repushOf(hold, session, revision, target);
    return isThere ? { target: name, state: 'Held', commit: branch.last.commit, message } : notDelivered(message);
  }
  const [choice] = chosen;
  if (choice !== undefined && choice.revision !== revision.revision) {
    return { target: name, state: 'OtherRevision', message: `v${choice.revision} is delivered there` };
  }
  const content = await session.store.content(revisionId(revision));
  const outcome = manifestsOf(content.files);
  if (outcome.refused !== undefined) return notDelivered(outcome.refused.message);
  const [secret] = outcome.manifests.openSecrets;
  if (secret !== undefined && target.spec.allowSecrets !== true) {
    return notDelivered(`${secret} is not encrypted, and the target does not allow that (allowSecrets)`);
  }
  if ('problem' in branch) {
    return { target: name, state: 'Unknown', message: `the target cannot be read: ${branch.problem}` };
  }
  const { last } = branch;
  if (isThere) return { target: name, state: 'Delivered', commit: last?.commit ?? '', message: `on ${place}` };
  const before = last?.revision === undefined ? '' : `; v${last.revision} was, in commit ${last.commit.slice(0, 12)}`;
  const refusal = refusalIn(target, revision);
  if (refusal !== undefined) return notDelivered(`not on ${place}${before}; the target refuses it: ${refusal}`);
  return notDelivered(`not on ${place} yet${before}; "sluice up" delivers it once it gets to it`);
}

/** What the target said of the package when it was looked at last; the status is cut, and names what is wrong with all in one text. */
function refusalIn({ status, metadata }: Stored<DeliveryTarget>, { key }: PackageRevision): string | undefined {
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready?.status !== 'False' || (ready.observedGeneration ?? metadata.generation) !== metadata.generation)
    return undefined;
  if (ready.reason !== 'Partial') return ready.message;
  const own = ready.message.split('; ').find((part) => part.startsWith(`${packageKey(key)}: `));
  return own?.slice(packageKey(key).length + 2);
}

/** How a tag that is gone is brought back, where the target remembers its commit. */
function repushOf(
  { reason, revision: number }: PackageRefusal,
  session: Session,
  explained: PackageRevision,
  { status }: Stored<DeliveryTarget>,
): string {
  const { key, path } = explained;
  if (reason !== 'OutOfBandRemoval') return '';
  const last = status?.packages?.find((one) => one.repository === key.repository && one.package === key.package);
  if (last === undefined || last.commit === '' || last.revision !== number) return '';
  const publication = { path, revision: last.revision, commit: last.commit };
  return `; ${repushText(session.store.repositoryOf(explained), publication, session.folder.path)}`;
}

/** What the target delivers of the package, as its controller selects it. */
async function selectionOf(
  session: Session,
  explained: PackageRevision,
  target: Stored<DeliveryTarget>,
  last: LastDelivery | undefined,
) {
  const { repository, package: path } = explained.key;
  const rows = session.store
    .list({ repository: repositoryIdOf(explained), package: path })
    .filter((candidate) => isPublished(candidate) && candidate.revision > 0);
  const published = rows.map(({ revision, outOfBand }) => {
    const row = { repository, package: path, revision };
    return outOfBand === undefined ? row : { ...row, outOfBand };
  });
  const status = target.status?.packages?.find((one) => one.repository === repository && one.package === path);
  const revision = last?.revision ?? status?.revision;
  const delivered =
    revision === undefined
      ? undefined
      : { repository, package: path, revision, hasFolder: last?.revision !== undefined };
  const isGone = revision !== undefined && !rows.some((row) => row.revision === revision);
  const commit = status?.revision === revision && status?.commit !== '' ? status?.commit : undefined;
  const isDeleted =
    isGone && (await wasDeleted(session.store.repositoryOf(explained), { package: path, revision }, commit));
  return selectRevisions(settingsOf(target), published, {
    delivered: new Map(delivered === undefined ? [] : [[packageKey(delivered), delivered]]),
    // The target selects the revision that is explained.
    isSelected: () => true,
    isDeleted: () => isDeleted,
  });
}

/** The commit that delivered or removed the package last. */
async function lookAtBranch(
  session: Session,
  revision: PackageRevision,
  target: Stored<DeliveryTarget>,
  signal: AbortSignal,
): Promise<{ readonly last: LastDelivery | undefined }> {
  const { repo, branch, secretRef } = target.spec.git;
  const ref = `refs/heads/${branch}`;
  const credentials = credentialsOf(session.client, target, secretRef);
  const { git, remote } = await openLocation({
    url: repo,
    mirrorPath: targetMirror(session.folder, target),
    hostedFolder: hostedFolder(session.folder.path),
    repository: { network: session.network },
    ...(credentials === undefined ? {} : { credentials }),
  });
  try {
    if (remote !== undefined) await git.fetch(remote, { refspecs: [`+${ref}:${ref}`], signal });
    const head = await git.resolveRef(ref);
    return { last: head === undefined ? undefined : await lastDelivery(git, head, revision.key) };
  } finally {
    await git.close();
  }
}
