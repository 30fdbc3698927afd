import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { RefConflictError } from '../../../src/git/errors.ts';
import type { Commit, GitRepository, Oid, RefUpdate, Signature } from '../../../src/git/git-repository.ts';
import { mergeBases } from '../../../src/git/objects/merge-bases.ts';
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
}

/** A commit that a user pushed to the branch of a batch, and that the next head takes back. */
export interface ForeignCommit {
  readonly commit: Oid;
  readonly by: string;
}

const TREE_TRAILER = 'Sluice-Batch-Tree';
const MEMBER_TRAILER = 'Sluice-Batch-Member';
/** Commits of a branch that are searched for one of Sluice. */
const MAX_COMMITS = 1000;

/**
 * Brings the branch of a batch to the main branch with the packages of its members, by one commit on top of it: what was reviewed stays in
 * its history. It is based on the present main branch where a package changed there, or with `rebase`; otherwise only if it changes anyway. With
 * `isQueued` a merge queue tests it on the present main branch, which would end with another commit. What users have pushed there is given to
 * `onForeign` before it is taken back: a process that ends in between begins again.
 */
export async function updateBatchBranch(
  repository: BatchRepository,
  branch: string,
  members: readonly BranchMember[],
  signal: AbortSignal,
  {
    rebase = false,
    isQueued = false,
    onForeign,
  }: {
    readonly rebase?: boolean;
    readonly isQueued?: boolean;
    readonly onForeign?: (foreign: ForeignCommit) => Promise<void>;
  } = {},
): Promise<BatchHead> {
  const { git, index, layout } = repository;
  const main = index.mainHead;
  if (main === undefined)
    throw new SluiceError('Unavailable', `refs/heads/${layout.branch} does not exist; create the branch`);
  const old = await repository.untracked.readBranch(branch, signal);
  const base = old === undefined ? undefined : await baseOf(git, old, main);
  if (old !== undefined && base !== undefined && !(rebase && base !== main)) {
    const isCurrent = (await git.readCommit(old)).tree === (await treeOf(git, base, members));
    if (isCurrent && (isQueued || !(await changedBetween(git, base, main, members))))
      return { head: old, isPushed: false, isUpToDate: base === main };
  }
  const foreign = old === undefined ? undefined : await foreignCommit(repository, old, main);
  if (foreign !== undefined) await onForeign?.(foreign);
  const tree = await treeOf(git, main, members);
  const author: Signature = { ...repository.identity, time: repository.clock.now() };
  const head = await git.writeCommit({
    ...{ tree, author, committer: author },
    parents: old === undefined ? [main] : base === main ? [old] : [old, main],
    message: messageOf(members, tree),
  });
  const ref = `refs/heads/${branch}`;
  const write: RefUpdate =
    old === undefined ? { type: 'create', ref, new: head } : { type: 'update', ref, old, new: head };
  try {
    await repository.untracked.writeBranch(write, signal);
  } catch (error) {
    throw blockedError(error) ?? error;
  }
  return { head, isPushed: true, isUpToDate: true };
}

/** Other conflicts end by themselves; a branch that has the name of a folder of the branch stays until a user removes it. */
function blockedError(error: unknown): SluiceError | undefined {
  if (!(error instanceof RefConflictError) || error.details?.kind !== 'collision') return undefined;
  const message = `the branch of the shared pull request cannot be created: ${error.message}; it is tried again each minute`;
  return new SluiceError('Refused', message, { cause: error });
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
  const own = await lastOwn(git, head);
  return own && membersOf(own.commit);
}

/** Whether a head is a commit as Sluice makes it. */
export async function isOwnHead(git: GitRepository, head: Oid): Promise<boolean> {
  return isOwnCommit(await git.readCommit(head));
}

/** Whether these folders are at a head as in the last commit of Sluice in its history. */
export async function isAsProposed(git: GitRepository, head: Oid, paths: readonly string[]): Promise<boolean> {
  const own = await lastOwn(git, head);
  if (own === undefined) return false;
  const trees = async (commit: Oid) => git.statObjects(paths.map((path) => `${commit}:${path}`));
  const [proposed, there] = [await trees(own.oid), await trees(head)];
  return proposed.every((one, at) => one?.oid === there[at]?.oid);
}

/** The last commit of Sluice in the history of a head; undefined if the repository does not have it. */
async function lastOwn(
  git: GitRepository,
  head: Oid,
): Promise<{ readonly oid: Oid; readonly commit: Commit } | undefined> {
  let next: Oid | undefined = head;
  for (let count = 0; next !== undefined && count < MAX_COMMITS; count += 1) {
    const [stat] = await git.statObjects([next]);
    if (stat?.type !== 'commit') return undefined;
    const commit: Commit = await git.readCommit(next);
    if (isOwnCommit(commit)) return { oid: next, commit };
    [next] = commit.parents;
  }
  return undefined;
}

/** Whether a head differs from the main branch, as it was at a time, in these folders alone, with a package in each. */
export async function hasOnly(
  { git, index }: Pick<BatchRepository, 'git' | 'index'>,
  head: Oid,
  paths: readonly string[],
): Promise<boolean> {
  const members: Pick<BranchMember, 'path' | 'tree'>[] = [];
  for (const path of paths) {
    const [stat] = await git.statObjects([`${head}:${path}`]);
    if (stat?.type !== 'tree') return false;
    members.push({ path, tree: stat.oid });
  }
  const { tree } = await git.readCommit(head);
  let next: Oid | undefined = head;
  for (let count = 0; next !== undefined && count < MAX_COMMITS; count += 1) {
    const { parents }: Commit = await git.readCommit(next);
    for (const parent of parents.toReversed())
      if (await index.isOnMain(parent)) return tree === (await treeOf(git, parent, members));
    [next] = parents;
  }
  return false;
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

function treeOf(git: GitRepository, base: Oid, members: readonly Pick<BranchMember, 'path' | 'tree'>[]): Promise<Oid> {
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

/** What a merge of a head compares with; undefined if that is not one commit. */
async function baseOf(git: GitRepository, head: Oid, main: Oid): Promise<Oid | undefined> {
  const [base, ...others] = (await mergeBases(git, head, main)) ?? [];
  return others.length === 0 ? base : undefined;
}

/**
 * The last commit that a user has pushed onto those of Sluice. A merge of the main branch, which hosts offer, changes nothing that is proposed, but
 * there can be others below it.
 */
async function foreignCommit(
  { git, index }: BatchRepository,
  head: Oid,
  main: Oid,
): Promise<ForeignCommit | undefined> {
  let next: Oid | undefined = head;
  for (let count = 0; next !== undefined && count < MAX_COMMITS; count += 1) {
    const commit: Commit = await git.readCommit(next);
    if (isOwnCommit(commit) || (next !== head && (await index.isOnMain(next, main)))) return undefined;
    const [parent, merged] = commit.parents;
    const isMerge = parent !== undefined && merged !== undefined && (await index.isOnMain(merged, main));
    if (!isMerge || (await hasOwnFiles(git, commit, [parent, merged])))
      return { commit: next, by: `${commit.author.name} <${commit.author.email}>` };
    next = parent;
  }
  return undefined;
}

/** Whether a merge has files that are as in none of its parents. */
async function hasOwnFiles(git: GitRepository, { tree }: Commit, parents: readonly Oid[]): Promise<boolean> {
  let files: ReadonlySet<string> | undefined;
  for (const parent of parents) {
    const changes = await git.diffTrees((await git.readCommit(parent)).tree, tree);
    const before = files;
    files = new Set(changes.flatMap(({ path }) => (before === undefined || before.has(path) ? path : [])));
  }
  return files !== undefined && files.size > 0;
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
