import { revisionName } from '../../src/package/model/identity/identity.ts';
import { parseRef } from '../../src/package/model/identity/layout.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { BATCH_REFS, isBatchBranch } from './batch/batch-name.ts';
import { ofBatch, ofOtherBatch } from './batch/batch-pulls.ts';
import { type Belonging, type NamedPull, ofEnded, ofLive, ofPublished } from './ending/ended-pulls.ts';
import { leftRecord } from './ending/left-record.ts';
import { proposalWith } from './ending/proposed-heads.ts';

/** Prefix of the branches of proposals. */
const PROPOSED = 'proposed/';
/** Where the branches are that have such names. */
const OWN_REFS: readonly string[] = [`refs/heads/${PROPOSED}`, BATCH_REFS];

/** True for names that the branches of proposals have; users can push others under such a name. */
export function hasOwnName(branch: string): boolean {
  return branch.startsWith(PROPOSED) || isBatchBranch(branch);
}

/**
 * Which pull requests are those of proposals. All others are of users, whatever names their branches have and whatever their texts and commits say:
 *
 * - The branch is that of a proposal that is there now, or a shared one with a proposal that is there and shares pull requests: `own`. The controller
 *   of proposals follows it.
 * - The proposal is published. A merge at that commit of the main branch, or at an earlier one, is of the proposal: `own`. A later one is of a user, who
 *   has opened it again or has pushed the branch again. One that is open with the head that was published is `ended`, with another head of a user.
 * - The proposal was rejected or deleted, and its branch is gone: `ended`.
 *
 * A merge is that of a proposal only where Git proves that its head was proposed (`proposalWith`), by records that count: names, records and marks are
 * there for other reasons too, and a merge that each controller leaves to the other one is lost. Where the proof is gone, as with the record of a
 * revision that was deleted, the merge is of a user.
 *
 * What has `ended` on the host too is reported by the controller of proposals. Hosts close the others some time after the branch is gone, so that one
 * that is open is of a user only once it has stayed so (`UserPulls.isOfUser`).
 *
 * With `signal`, which ends that, a head that was not read yet is read first if a proposal may have it: hosts list branches before they are fetched.
 */
export type OwnBranches = (pull: NamedPull, signal?: AbortSignal) => Promise<Belonging>;

/** Of one repository, and of those that are registered for other directories of the same Git repository. */
export function ownBranchesOf(
  store: Pick<RevisionStore, 'findRepository' | 'repositories'>,
  repositoryId: string,
): OwnBranches {
  return async (pull, signal) => {
    const { head } = pull;
    if (!hasOwnName(head.branch)) return 'none';
    const repository = store.findRepository(repositoryId);
    if (repository === undefined) return 'none';
    const all = allOfGit(store, repository);
    const known = await belonging(all, pull);
    if (known === 'own' || signal === undefined) return known;
    return (await readHead(all, head, signal)) ? belonging(all, pull) : known;
  };
}

/**
 * All that are registered for its Git repository, this one first. The others are looked for only where this one does not decide: each poll asks about
 * each open pull request of a proposal.
 */
function allOfGit(
  store: Pick<RevisionStore, 'repositories'>,
  repository: PackageRepository,
): Iterable<PackageRepository> {
  return {
    *[Symbol.iterator]() {
      yield repository;
      for (const one of store.repositories())
        if (one !== repository && one.trust.repository === repository.trust.repository) yield one;
    },
  };
}

/**
 * The branch with this head of a proposal that a policy reviews, or of several in a shared pull request: such a commit has the checks of the proposal.
 * Those of another proposal, which users can push for each package, nothing writes.
 */
export async function reviewedBranchAt(
  store: Pick<RevisionStore, 'repositories'>,
  repository: PackageRepository,
  commit: string,
): Promise<string | undefined> {
  const all = allOfGit(store, repository);
  for (const { name: ref, oid } of await repository.git.listRefs(OWN_REFS)) {
    if (oid !== commit) continue;
    const branch = ref.slice('refs/heads/'.length);
    for (const one of all) if (await isReviewed(one, branch, commit)) return branch;
  }
  return undefined;
}

async function isReviewed(repository: PackageRepository, branch: string, commit: string): Promise<boolean> {
  const { index, follows } = repository;
  if (follows) return false;
  const isWritten = (one: PackageRevision | undefined) =>
    one?.lifecycle === 'Proposed' && repository.policyFor(one).review !== undefined;
  if (isBatchBranch(branch)) return (await ofBatch(repository, { head: { branch, commit } })) === 'own';
  const meaning = parseRef(repository.layout, `refs/heads/${branch}`);
  if (meaning.kind !== 'proposed') return false;
  const { package: name, workspace } = meaning;
  const revision = index.get(revisionName({ repository: repository.repository, package: name, workspace }));
  return revision?.ref === `refs/heads/${branch}` && revision.tip.tree !== undefined && isWritten(revision);
}

/** Returns whether something was read. */
async function readHead(
  repositories: Iterable<PackageRepository>,
  head: NamedPull['head'],
  signal: AbortSignal,
): Promise<boolean> {
  let isRead = false;
  const ref = `refs/heads/${head.branch}`;
  for (const repository of repositories) {
    const { index, layout, follows } = repository;
    if (follows || parseRef(layout, ref).kind !== 'proposed' || index.ref(ref) === head.commit) continue;
    await repository.sync(signal, 'branches');
    isRead = true;
  }
  return isRead;
}

/** `repositories`: all that are registered for the Git repository, each for another directory. */
async function belonging(repositories: Iterable<PackageRepository>, pull: NamedPull): Promise<Belonging> {
  let found: Belonging = 'none';
  for (const repository of repositories) {
    const one = await (isBatchBranch(pull.head.branch) ? ofBatch(repository, pull) : ofBranch(repository, pull));
    if (one === 'own') return one;
    if (one === 'ended') found = one;
  }
  return found === 'none' && isBatchBranch(pull.head.branch) ? ofOtherBatch([...repositories], pull) : found;
}

async function ofBranch(packages: PackageRepository, pull: NamedPull): Promise<Belonging> {
  const { index, layout, repository } = packages;
  const { branch } = pull.head;
  const ref = `refs/heads/${branch}`;
  const meaning = parseRef(layout, ref);
  if (meaning.kind !== 'proposed') return ofOtherDirectory(packages, pull);
  const key = { repository, package: meaning.package, workspace: meaning.workspace };
  const revision = index.get(revisionName(key));
  if (revision !== undefined && isPublished(revision)) return ofPublished(packages, revision, pull);
  // The index has each such branch as a revision, also where it has no package of this name.
  const isLive = revision?.ref === ref && revision.tip.tree !== undefined;
  if (isLive) return ofLive(packages, revision, pull);
  if (index.ref(ref) !== undefined) return 'none';
  return ofEnded(packages, key, revision, pull);
}

/** Of a directory that this server has not opened, or another one has registered: its proposals have records that count. */
async function ofOtherDirectory(packages: PackageRepository, { head }: NamedPull): Promise<Belonging> {
  const { git, layout } = packages;
  const of = head.branch.slice(PROPOSED.length);
  const at = of.lastIndexOf('/');
  if (at < 1) return 'none';
  const scope = { package: of.slice(0, at), workspace: of.slice(at + 1) };
  const record = await leftRecord(packages, layout.recordPrefix + of, scope);
  if (record === undefined) return 'none';
  const { commit, steps } = record;
  const isOfIt =
    head.commit === commit || (await proposalWith(git, { path: scope.package, steps, tip: commit }, head.commit));
  return isOfIt ? 'own' : 'none';
}
