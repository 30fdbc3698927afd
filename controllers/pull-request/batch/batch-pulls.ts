import { revisionKeyOf } from '../../../src/package/model/identity/identity.ts';
import { packagePath, parseRef, recordRef } from '../../../src/package/model/identity/layout.ts';
import { publishedRecordOf } from '../../../src/package/model/record/commit-message.ts';
import type { LifecycleStep } from '../../../src/package/model/record/record.ts';
import { isPublished, type PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import { wasPublished } from '../../../src/package/plan/create/merged-package.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { endStepOf, REOPEN_MS } from '../ending/end-step.ts';
import { type Belonging, type NamedPull, ofEnded } from '../ending/ended-pulls.ts';
import { isOfLostProposal, leftRecord } from '../ending/left-record.ts';
import { hasProposedContent } from '../ending/proposed-heads.ts';
import { proposalId, proposalsIn } from '../text/section.ts';
import { type BranchMember, hasOnly, isAsProposed, isOwnHead, membersAt } from './batch-branch.ts';
import { batchPrefix, isNameOfBatch } from './batch-name.ts';

/**
 * A pull request from a branch with the name of a shared one. Users can push each name, and commits with each message: it is of the members that its
 * text or its commits name only as far as the repository knows them, and its policies let them share pull requests; of a merge also only if that has
 * brought nothing but their packages, as these were proposed.
 */
export async function ofBatch(packages: PackageRepository, pull: NamedPull): Promise<Belonging> {
  const { git, id, index, layout } = packages;
  const { head, state, body = '' } = pull;
  if (!isNameOfBatch(id, head.branch)) return 'none';
  const members = (await membersAt(git, head.commit)) ?? [];
  const isMerged = state === 'merged';
  const known: (Belonging | 'proposed' | 'published')[] = [];
  for (const one of members) known.push(await (isMerged ? ofMergedMember : ofMember)(packages, one, pull));
  if (known.includes('published') || (!isMerged && known.includes('own'))) return 'own';
  const isProposed = known.includes('proposed');
  if (!isMerged && (isProposed || listsProposal(packages, proposalsIn(body)))) return 'own';
  if (members.length === 0 || (known.includes('none') && !isProposed)) return 'none';
  const paths = members.map(({ name }) =>
    packagePath(layout, index.get(name)?.key.package ?? revisionKeyOf(name).package),
  );
  if (!(await hasOnly(packages, head.commit, paths))) return 'none';
  // What a user has pushed since is no part of what was rejected.
  if (!isProposed && !(await isAsProposed(git, head.commit, paths))) return 'none';
  return isProposed || known.includes('own') ? 'own' : 'ended';
}

/**
 * The same for one of a Repository that is not open, for another directory: its proposals have records there. What it shares is left to it for a while,
 * as it opens.
 */
export async function ofOtherBatch(
  repositories: readonly Pick<PackageRepository, 'git' | 'id' | 'index' | 'layout'>[],
  { head: { branch, commit } }: NamedPull,
): Promise<Belonging> {
  const [some] = repositories;
  if (some === undefined || repositories.some(({ id }) => branch.startsWith(batchPrefix(id)))) return 'none';
  const members = (await membersAt(some.git, commit)) ?? [];
  const isElsewhere = (ref: string) => repositories.every(({ layout }) => parseRef(layout, ref).kind !== 'record');
  const hasRecord = ({ name }: (typeof members)[number]) => {
    const { package: path, workspace } = revisionKeyOf(name);
    const end = `/${path}/${workspace}`;
    return some.index.recordRefs().some(([ref]) => ref.endsWith(end) && isElsewhere(ref));
  };
  return members.length > 0 && members.every(hasRecord) ? 'ended' : 'none';
}

/** Whether a revision of a shared pull request is gone. */
export async function hasDeleted({ git, index }: PackageRepository, { head }: NamedPull): Promise<boolean> {
  return ((await membersAt(git, head.commit)) ?? []).some(({ name }) => index.get(name) === undefined);
}

/** Of one that is not merged. */
async function ofMember(
  packages: PackageRepository,
  { name, proposal }: Pick<BranchMember, 'name' | 'proposal'>,
  pull: NamedPull,
): Promise<Belonging | 'proposed'> {
  const revision = packages.index.get(name);
  const { review } = policyOf(packages, name, revision);
  if (review?.batch === undefined) {
    // Those whose policy was changed since are left to the controller of proposals, which releases them.
    const isReleased =
      isLive(revision, proposal) && review === undefined && (await isOwnHead(packages.git, pull.head.commit));
    if (revision !== undefined) return isReleased ? 'own' : 'ended';
  }
  if (revision === undefined) return ofEnded(packages, revisionKeyOf(name), revision, pull);
  if (isPublished(revision)) return 'ended';
  // By its name: of one that was proposed again while the branch had it, that has the proposal of before.
  if (revision.lifecycle === 'Proposed') return 'proposed';
  return idOf(revision) === proposal ? ofEnded(packages, revision.key, revision, pull) : 'none';
}

/** Of a merge: `published` if it was published there. All others have to have the package as it was proposed. */
async function ofMergedMember(
  packages: PackageRepository,
  member: Pick<BranchMember, 'name' | 'proposal'>,
  pull: NamedPull,
): Promise<Belonging | 'proposed' | 'published'> {
  const { git, index, layout } = packages;
  const { name, proposal } = member;
  const { head, body = '', closedAt = '', merged } = pull;
  const revision = index.get(name);
  const key = revision?.key ?? revisionKeyOf(name);
  const path = packagePath(layout, key.package);
  const isAsIn = (steps: readonly LifecycleStep[], tip: string | undefined) =>
    hasProposedContent(git, { path, steps, tip }, head.commit);
  if (revision === undefined) {
    if (merged !== undefined && wasPublished(packages, key.package, merged.commit)) return 'published';
    const scope = { package: path, workspace: key.workspace };
    const record = await leftRecord(packages, recordRef(layout, path, key.workspace), scope);
    if (record === undefined || !isOfLostProposal(record)) return 'none';
    return (await isAsIn(record.steps, record.commit)) ? 'ended' : 'none';
  }
  if (isPublished(revision)) {
    const { commit, tip } = revision;
    if (merged?.commit === commit) return 'published';
    if (merged === undefined || !(await index.isOnMain(merged.commit, commit))) return 'none';
    return (await isAsIn(publishedRecordOf(tip.facts)?.steps ?? [], tip.parents[1] ?? commit)) ? 'own' : 'none';
  }
  const steps = revision.record?.steps ?? [];
  const isShared = policyOf(packages, name, revision).review?.batch !== undefined;
  if (revision.lifecycle === 'Proposed') {
    // By its name, as above; of a policy that was changed since, only as it was.
    if (!isShared && !isLive(revision, proposal)) return 'none';
    const marked = proposalsIn(body);
    const isListed = marked.length === 0 || marked.includes(proposal) || marked.includes(idOf(revision));
    const isFollowed = isListed && !(await isElsewhere(packages, member, head.branch));
    return isFollowed && (await isAsIn(steps, revision.commit)) ? 'proposed' : 'none';
  }
  const end = endStepOf(revision);
  if (!isShared || end === undefined || idOf(revision) !== proposal) return 'none';
  if (Date.parse(closedAt) - Date.parse(end.at) > REOPEN_MS) return 'none';
  return (await isAsIn(steps, end.commit)) ? 'ended' : 'none';
}

/** Whether another branch has this proposal too: users can push a copy of the one of Sluice, and the controller of proposals follows one of them. */
async function isElsewhere(
  { git, id }: Pick<PackageRepository, 'git' | 'id'>,
  { proposal }: Pick<BranchMember, 'proposal'>,
  branch: string,
): Promise<boolean> {
  for (const { name, oid } of await git.listRefs([`refs/heads/${batchPrefix(id)}`]))
    if (
      name !== `refs/heads/${branch}` &&
      (await membersAt(git, oid))?.some((one) => one.proposal === proposal) === true
    )
      return true;
  return false;
}

function policyOf(packages: PackageRepository, name: string, revision: PackageRevision | undefined) {
  if (revision !== undefined) return packages.policyFor(revision);
  const key = revisionKeyOf(name);
  const { namespace, layout } = packages;
  const path = packagePath(layout, key.package);
  return packages.policyFor({ key, name, namespace, path, kptfile: undefined, record: undefined });
}

function idOf({ uid, record }: PackageRevision): string {
  return proposalId(uid, record?.steps ?? []);
}

function isLive(revision: PackageRevision | undefined, proposal: string): boolean {
  return revision?.lifecycle === 'Proposed' && idOf(revision) === proposal;
}

/** Whether one of these is there, and may share a pull request: users can remove the commits of Sluice from a branch, which it writes again. */
function listsProposal(packages: PackageRepository, proposals: readonly string[]): boolean {
  if (proposals.length === 0) return false;
  for (const one of packages.index.all()) {
    if (one.lifecycle !== 'Proposed' || !proposals.includes(proposalId(one.uid, one.record?.steps ?? []))) continue;
    if (packages.policyFor(one).review?.batch !== undefined) return true;
  }
  return false;
}
