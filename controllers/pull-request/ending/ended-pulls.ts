import type { PullRequest } from '../../../src/forge/forge.ts';
import { type RevisionKey, revisionName, revisionUid } from '../../../src/package/model/identity/identity.ts';
import { packagePath, recordRef } from '../../../src/package/model/identity/layout.ts';
import { publishedRecordOf } from '../../../src/package/model/record/commit-message.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import { wasPublished } from '../../../src/package/plan/create/merged-package.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { proposalId, proposalsIn } from '../text/section.ts';
import { REOPEN_MS } from './end-step.ts';
import { isOfProposal } from './is-of-proposal.ts';
import { isOfLostProposal, leftRecord } from './left-record.ts';
import { hasPackage, isBasedOn, type ProposedPackage, proposalWith, type RecordedProposal } from './proposed-heads.ts';

/** See `OwnBranches`. */
export type Belonging = 'own' | 'ended' | 'none';

/** What decides; a message of the host has the head alone, and counts as open. */
export type NamedPull = { readonly head: Pick<PullRequest['head'], 'branch' | 'commit'> } & Partial<
  Pick<PullRequest, 'number' | 'state' | 'body' | 'closedAt' | 'merged'>
>;

/** A pull request of the branch of a proposal that is there. */
export async function ofLive(
  { git }: Pick<PackageRepository, 'git'>,
  { uid, commit, path, record }: PackageRevision,
  pull: NamedPull,
): Promise<Belonging> {
  if (pull.state !== 'merged') return 'own';
  const { head, body = '' } = pull;
  const steps = record?.steps ?? [];
  const found = await proposalWith(git, { path, steps, tip: commit }, head.commit);
  // The merge of an earlier one is reported by what its text has (`reportEarlierMerge`).
  if (found !== undefined && !found.isLast) return proposalsIn(body).length > 0 ? 'own' : 'none';
  const isOfBranch =
    found !== undefined || head.commit === commit || (await isOfPushed(git, { path, steps, tip: commit }, head.commit));
  return isOfBranch && isMergeOf(pull, { proposal: proposalId(uid, steps), commit, steps }) ? 'own' : 'none';
}

/** Whether a head is one of a proposal that a user has pushed, of which the record has no step. */
async function isOfPushed(
  git: PackageRepository['git'],
  { path, steps, tip }: ProposedPackage,
  head: string,
): Promise<boolean> {
  if (steps.some(({ action }) => action === 'propose') || !(await hasPackage(git, path, head))) return false;
  return (await isBasedOn(git, head, tip)) || isBasedOn(git, tip, head);
}

/** Whether a process that knows nothing else of a merge takes it for that of a proposal. */
function isMergeOf(
  { head, state = 'open', body = '', closedAt }: NamedPull,
  { proposal, commit, steps }: { readonly proposal: string; readonly commit: string } & Pick<ProposedPackage, 'steps'>,
): boolean {
  const pull = { head, state, body, ...(closedAt === undefined ? {} : { closedAt }) };
  return isOfProposal(pull, {
    proposal,
    evaluation: { revision: { commit }, record: { steps: [...steps] } },
    known: undefined,
  });
}

/** A pull request of the branch of a published revision. */
export async function ofPublished(
  { git, index }: Pick<PackageRepository, 'git' | 'index'>,
  { commit, path, tip }: PackageRevision,
  { head, state, merged }: NamedPull,
): Promise<Belonging> {
  const [, proposed] = tip.parents;
  if (state !== 'merged') return head.commit === proposed ? 'ended' : 'none';
  // Hosts that find the commits of a proposal on the main branch report its head as the commit of the merge.
  if (merged === undefined || merged.commit === commit || merged.commit === proposed) return 'own';
  if (!(await index.isOnMain(merged.commit, commit))) return 'none';
  const steps = publishedRecordOf(tip.facts)?.steps ?? [];
  if (head.commit === proposed || (await proposalWith(git, { path, steps, tip: proposed }, head.commit)) !== undefined)
    return 'own';
  return (await isOfPushed(git, { path, steps, tip: proposed }, head.commit)) ? 'own' : 'none';
}

/** A pull request of a proposal whose branch is gone. `revision`: what is left of it. */
export async function ofEnded(
  packages: Pick<PackageRepository, 'git' | 'index' | 'layout' | 'namespace' | 'trust'>,
  key: RevisionKey,
  revision: PackageRevision | undefined,
  pull: NamedPull,
): Promise<Belonging> {
  const { git, layout, namespace, trust } = packages;
  const { head, state, merged } = pull;
  const path = packagePath(layout, key.package);
  const scope = { package: path, workspace: key.workspace };
  if (revision !== undefined) {
    const steps = revision.record?.steps ?? [];
    if (state !== 'merged') return steps.some(({ action }) => action === 'propose') ? 'ended' : 'none';
    const found = await proposalWith(git, { path, steps }, head.commit);
    return found !== undefined && !isLate(pull, found) ? 'ended' : 'none';
  }
  if (merged !== undefined && wasPublished(packages, key.package, merged.commit)) return 'own';
  const record = await leftRecord(packages, recordRef(layout, path, key.workspace), scope);
  if (record === undefined || !isOfLostProposal(record)) {
    // The mark of a record stays when the revision is deleted: what its proposal was cannot be proven any more.
    return state !== 'merged' && trust.mark(scope) !== undefined ? 'ended' : 'none';
  }
  if (state !== 'merged') return 'ended';
  const { commit, steps } = record;
  const proposal = proposalId(revisionUid(revisionName(key), namespace), steps);
  const isOfIt =
    head.commit === commit || (await proposalWith(git, { path, steps, tip: commit }, head.commit))?.isLast === true;
  return isOfIt && isMergeOf(pull, { proposal, commit, steps }) ? 'ended' : 'none';
}

/** Whether a merge came too long after the end of its proposal to be reported as one of that. */
export function isLate({ closedAt = '' }: Pick<NamedPull, 'closedAt'>, { propose, end }: RecordedProposal): boolean {
  return Date.parse(closedAt) - Date.parse((end ?? propose).at) > REOPEN_MS;
}
