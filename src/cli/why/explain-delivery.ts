import { credentialsOf } from '../../../controllers/credentials.ts';
import { packageRepositoryAt } from '../../../controllers/delivery/package-branches.ts';
import { settingsOf } from '../../delivery/delivery-target.ts';
import { manifestsOf } from '../../delivery/manifests.ts';
import { selectRevisions } from '../../delivery/select-revisions.ts';
import { messageOf } from '../../foundation/sluice-error.ts';
import { openLocation } from '../../git/open-location.ts';
import { hostedFolder } from '../../package/open-package-repository.ts';
import { isPublished, type PackageRevision, repositoryIdOf, revisionId } from '../../package/package-revision.ts';
import { selects } from '../../package/policy-objects.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/delivery-target.ts';
import type { Stored } from '../../resource/object.ts';
import { targetMirror } from '../assembly/data-folder.ts';
import type { Session } from '../assembly/session.ts';
import { lastDelivery } from './delivered-commit.ts';
import type { DeliveryExplanation } from './explanation.ts';

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
  const { repository, package: path } = revision.key;
  const published = session.store
    .list({ repository, package: path })
    .filter((candidate) => isPublished(candidate) && candidate.revision > 0)
    .map((candidate) => ({
      repository,
      package: path,
      revision: candidate.revision,
      ...(candidate.outOfBand === undefined ? {} : { outOfBand: candidate.outOfBand.reason }),
    }));
  const { chosen, refused } = selectRevisions(settings, published, () => true);
  const refusal = refused.find((one) => one.revision === undefined || one.revision === revision.revision);
  if (refusal !== undefined) return notDelivered(refusal.message);
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
  const signal = AbortSignal.timeout(session.patience);
  try {
    return await lookAtBranch(session, revision, target, name, signal);
  } catch (error) {
    const why = signal.aborted ? `no answer within ${session.patience / 1000} s` : messageOf(error);
    return { target: name, state: 'Unknown', message: `the target cannot be read: ${why}` };
  }
}

async function lookAtBranch(
  session: Session,
  revision: PackageRevision,
  target: Stored<DeliveryTarget>,
  name: string,
  signal: AbortSignal,
): Promise<DeliveryExplanation> {
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
    const last = head === undefined ? undefined : await lastDelivery(git, head, revision.key);
    const waits = 'it is delivered as soon as "sluice up" gets to it';
    if (last?.revision === revision.revision) {
      return { target: name, state: 'Delivered', commit: last.commit, message: `on branch ${branch} of ${repo}` };
    }
    const before = last?.revision === undefined ? '' : `; v${last.revision} was, in commit ${last.commit.slice(0, 12)}`;
    return {
      target: name,
      state: 'NotDelivered',
      message: `not on branch ${branch} of ${repo} yet${before}; ${waits}`,
    };
  } finally {
    await git.close();
  }
}
