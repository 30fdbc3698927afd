import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Commit, GitRepository, Oid, Signature } from '../../../src/git/git-repository.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { batchPrefix } from './batch-name.ts';

export type BatchRepository = Pick<PackageRepository, 'clock' | 'git' | 'identity' | 'index' | 'layout' | 'untracked'>;

/** A proposal in the branch of a batch. */
export interface BranchMember {
  readonly proposal: string;
  /** Of the revision. */
  readonly name: string;
  readonly path: string;
  /** Tree of the package. */
  readonly tree: Oid;
}

export interface BatchHead {
  readonly head: Oid;
  /** It has the present head of the main branch. */
  readonly isUpToDate: boolean;
  readonly isPushed: boolean;
  /** A commit that a user pushed there, and that the new head takes back. */
  readonly foreign?: { readonly commit: Oid; readonly by: string };
}

const TREE_TRAILER = 'Sluice-Batch-Tree';
const MEMBER_TRAILER = 'Sluice-Batch-Member';
/** Commits of a branch that are searched for those of the main branch. */
const MAX_COMMITS = 1000;

/**
 * Brings the branch of a batch to the main branch with the packages of its members, by one commit on top of it: what was reviewed stays in
 * its history. It is based on the present main branch where a package changed there, or with `rebase`; otherwise only if it changes anyway. With
 * `isQueued` a merge queue tests it on the present main branch, which would end with another commit.
 */
export async function updateBatchBranch(
  repository: BatchRepository,
  branch: string,
  members: readonly BranchMember[],
  signal: AbortSignal,
  { rebase = false, isQueued = false }: { readonly rebase?: boolean; readonly isQueued?: boolean } = {},
): Promise<BatchHead> {
  const { git, index, layout } = repository;
  const main = index.mainHead;
  if (main === undefined)
    throw new SluiceError('Unavailable', `refs/heads/${layout.branch} does not exist; create the branch`);
  const old = await repository.untracked.readBranch(branch, signal);
  const base = old === undefined ? undefined : await baseOf(repository, old, main);
  if (old !== undefined && base !== undefined && !(rebase && base !== main)) {
    const isCurrent = (await git.readCommit(old)).tree === (await treeOf(git, base, members));
    if (isCurrent && (isQueued || !(await changedBetween(git, base, main, members))))
      return { head: old, isPushed: false, isUpToDate: base === main };
  }
  const tree = await treeOf(git, main, members);
  const author: Signature = { ...repository.identity, time: repository.clock.now() };
  const head = await git.writeCommit({
    ...{ tree, author, committer: author },
    parents: old === undefined ? [main] : base === main ? [old] : [old, main],
    message: messageOf(members, tree),
  });
  const ref = `refs/heads/${branch}`;
  await repository.untracked.writeBranch(
    old === undefined ? { type: 'create', ref, new: head } : { type: 'update', ref, old, new: head },
    signal,
  );
  const foreign = old === undefined ? undefined : await foreignHead(repository, old, main);
  return { head, isPushed: true, isUpToDate: true, ...(foreign === undefined ? {} : { foreign }) };
}

/** Removes the branch of a batch that has ended. */
export async function removeBatchBranch(
  repository: BatchRepository,
  branch: string,
  signal: AbortSignal,
): Promise<void> {
  const old = await repository.untracked.readBranch(branch, signal);
  if (old !== undefined)
    await repository.untracked.writeBranch({ type: 'delete', ref: `refs/heads/${branch}`, old }, signal);
}

/**
 * The members of the last commit of Sluice in the history of a head, as their proposals and the names of their revisions; undefined if the
 * repository does not have it.
 */
export async function membersAt(
  git: GitRepository,
  head: Oid,
): Promise<readonly Pick<BranchMember, 'name' | 'proposal'>[] | undefined> {
  let next: Oid | undefined = head;
  for (let count = 0; next !== undefined && count < MAX_COMMITS; count += 1) {
    const [stat] = await git.statObjects([next]);
    if (stat?.type !== 'commit') return undefined;
    const commit = await git.readCommit(next);
    if (isOwnCommit(commit)) return membersOf(commit);
    next = commit.parents[0];
  }
  return undefined;
}

/** The branch of the batch that has a proposal, as the repository was last read. */
export async function batchBranchOf(
  { git, id }: Pick<PackageRepository, 'git' | 'id'>,
  proposal: string,
): Promise<string | undefined> {
  for (const { name, oid } of await git.listRefs([`refs/heads/${batchPrefix(id)}`]))
    if ((await membersAt(git, oid))?.some((one) => one.proposal === proposal) === true)
      return name.slice('refs/heads/'.length);
  return undefined;
}

function treeOf(git: GitRepository, base: Oid, members: readonly BranchMember[]): Promise<Oid> {
  return git.editTree(base, new Map(members.map(({ path, tree }) => [path, { oid: tree, mode: '040000' }] as const)));
}

/** Whether the package of a member differs between two commits of the main branch: a merge would conflict. */
async function changedBetween(
  git: GitRepository,
  base: Oid,
  main: Oid,
  members: readonly BranchMember[],
): Promise<boolean> {
  if (base === main) return false;
  const trees = async (commit: Oid) => git.statObjects(members.map(({ path }) => `${commit}:${path}`));
  const [before, now] = await Promise.all([trees(base), trees(main)]);
  return before.some((one, at) => one?.oid !== now[at]?.oid);
}

/** The newest commit of the main branch in the history of a head; undefined if it is not found. */
async function baseOf({ git, index }: BatchRepository, head: Oid, main: Oid): Promise<Oid | undefined> {
  let newest: Oid | undefined;
  const seen = new Set([head]);
  for (const oid of seen) {
    if (seen.size > MAX_COMMITS) return undefined;
    const commit = await git.readCommit(oid);
    // Those of Sluice are not searched for in the whole history of the main branch.
    if (isOwnCommit(commit) || !(await index.isOnMain(oid, main))) {
      for (const parent of commit.parents) seen.add(parent);
    } else if (newest === undefined || (await index.isOnMain(newest, oid))) newest = oid;
  }
  return newest;
}

/** The head if a user pushed it. A merge of the main branch, which hosts offer, changes nothing that is proposed. */
async function foreignHead({ git, index }: BatchRepository, head: Oid, main: Oid): Promise<BatchHead['foreign']> {
  const commit = await git.readCommit(head);
  if (isOwnCommit(commit)) return undefined;
  const [, merged] = commit.parents;
  if (merged !== undefined && (await index.isOnMain(merged, main))) return undefined;
  return { commit: head, by: `${commit.author.name} <${commit.author.email}>` };
}

/** True for a commit as Sluice made it: an amended one has another tree. */
function isOwnCommit({ message, tree }: Commit): boolean {
  return new RegExp(`^${TREE_TRAILER}: ([0-9a-f]{40})$`, 'm').exec(message)?.[1] === tree;
}

function membersOf({ message }: Commit): readonly Pick<BranchMember, 'name' | 'proposal'>[] {
  return [...message.matchAll(new RegExp(`^${MEMBER_TRAILER}: ([0-9a-f]{16}) (\\S+)$`, 'gm'))].map(
    ([, proposal = '', name = '']) => ({ proposal, name }),
  );
}

function messageOf(members: readonly BranchMember[], tree: Oid): string {
  const lines = members.map(({ proposal, name }) => `${MEMBER_TRAILER}: ${proposal} ${name}`);
  return `Propose ${members.length} packages\n\n${[...lines, `${TREE_TRAILER}: ${tree}`].join('\n')}\n`;
}
