import { isSluiceError, messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { FileEntry, GitRepository, Oid } from '../../../git/git-repository.ts';
import type { SourcedPolicy } from '../../../package/store/policies/effective-policy.ts';
import type { RevisionStore } from '../../../package/store/revision-store.ts';
import { type PolicyPlace, readPolicyFiles } from './read-policy-files.ts';

/** The main branch of an open repository. */
export interface PolicyBranch {
  readonly git: Pick<GitRepository, 'listFiles' | 'readCommit' | 'readObjects' | 'statObjects'>;
  readonly branch: string;
  /** Undefined if the branch does not exist. */
  readonly head: Oid | undefined;
}

/** Returns the main branch of a repository, by its id; undefined if it is not open. */
export type PolicySource = (id: string) => Promise<PolicyBranch | undefined>;

/** The main branches as last fetched; a repository that is opened on demand is opened. */
export function mainBranches(store: Pick<RevisionStore, 'reach' | 'findRepository'>): PolicySource {
  return async (id) => {
    await store.reach(id, 'look');
    const repository = store.findRepository(id);
    if (repository === undefined) return undefined;
    return { git: repository.git, branch: repository.layout.branch, head: repository.index.mainHead };
  };
}

/** The policies of a folder that are valid. */
export interface ReadPolicies {
  readonly tree: Oid;
  /** The newest commit with this content that was read. */
  readonly commit: Oid;
  readonly policies: readonly SourcedPolicy[];
}

export interface FolderState {
  readonly head: Oid | undefined;
  /** The last ones on the branch that are valid. */
  readonly good?: ReadPolicies | undefined;
  /** Why those of the head are not valid; one sentence or several lines. */
  readonly problem?: string | undefined;
  /** Problems by the id of the tree, so that a tree is read once. */
  readonly invalid: ReadonlyMap<Oid, string>;
}

/** Commits of the branch among which the last valid state is looked for. */
const MAX_COMMITS = 20;
const MAX_ENTRIES = 200;
const MAX_FILES = 50;
const MAX_BYTES = 128 * 1024;
/** Characters that need no escape in any message. */
const PLAIN_PATH = /^[A-Za-z0-9._+@-]+(\/[A-Za-z0-9._+@-]+)*$/;
const NOTHING = '';

/**
 * Reads the policies of a folder at the head of a branch. If they are not valid, the last ones on the branch that are valid are in force,
 * along first parents; if none of the last commits has valid ones, those that this process has read before.
 */
export async function readPolicyFolder(
  { git, branch, head }: PolicyBranch,
  folder: string,
  place: Pick<PolicyPlace, 'namespace' | 'repository'>,
  before: FolderState | undefined,
): Promise<FolderState> {
  if (head === undefined)
    return { ...before, invalid: new Map(), head, problem: `branch ${branch} does not exist; push it` };
  const invalid = new Map<Oid, string>();
  let problem: string | undefined;
  let commit: Oid | undefined = head;
  for (let read = 0; read < MAX_COMMITS && commit !== undefined; read += 1) {
    const tree = await folderAt(git, commit, folder);
    if (before?.good?.tree === tree) return { head, good: before.good, problem, invalid };
    const known = invalid.get(tree) ?? before?.invalid.get(tree);
    const result = known ?? (await readTree({ git, tree, folder }, { ...place, branch, commit }));
    if (typeof result !== 'string') return { head, good: { tree, commit, policies: result }, problem, invalid };
    invalid.set(tree, result);
    problem ??= result;
    commit = await parentOf(git, commit);
  }
  return { head, good: before?.good, problem, invalid };
}

/** The id of the tree of the folder, or of what is in its place; empty if there is nothing. */
async function folderAt(git: PolicyBranch['git'], commit: Oid, folder: string): Promise<Oid> {
  const [found] = await git.statObjects([`${commit}:${folder}`]);
  return found?.oid ?? NOTHING;
}

async function parentOf(git: PolicyBranch['git'], commit: Oid): Promise<Oid | undefined> {
  try {
    return (await git.readCommit(commit)).parents[0];
  } catch (error) {
    // The history is truncated here.
    if (isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}

interface FolderTree {
  readonly git: PolicyBranch['git'];
  readonly tree: Oid;
  readonly folder: string;
}

/** The policies of a tree, or the problem. */
async function readTree({ git, tree, folder }: FolderTree, place: PolicyPlace): Promise<SourcedPolicy[] | string> {
  const [found] = tree === NOTHING ? [] : await git.statObjects([tree]);
  if (found?.type !== 'tree') return `${folder}: there is no such folder on branch ${place.branch}`;
  try {
    const files = checkedFiles(await git.listFiles(tree, MAX_ENTRIES), folder);
    const ids = files.map(({ oid }) => oid);
    const bytes = (await git.statObjects(ids)).reduce((sum, one) => sum + (one?.size ?? 0), 0);
    if (bytes > MAX_BYTES) return `${folder}: the policies have ${bytes} bytes, at most ${MAX_BYTES} are read`;
    const contents = await git.readObjects(ids);
    const read = files.map(({ path }, at) => ({ path: `${folder}/${path}`, data: contentOf(contents[at]) }));
    return readPolicyFiles(read, place);
  } catch (error) {
    if (isSluiceError(error, 'InvalidInput')) return error.message;
    if (isSluiceError(error, 'LimitExceeded')) return `${folder}: ${messageOf(error)}`;
    throw error;
  }
}

/** The files with policies. Throws InvalidInput for what could lead out of the folder, or cannot be shown. */
function checkedFiles(entries: readonly FileEntry[], folder: string): FileEntry[] {
  for (const { mode, path } of entries) {
    const shown = PLAIN_PATH.test(path) ? `${folder}/${path}` : `${folder}/${JSON.stringify(path).slice(0, 200)}`;
    if (mode === '120000') throw new SluiceError('InvalidInput', `${shown}: a symbolic link is not read; remove it`);
    if (mode === '160000') throw new SluiceError('InvalidInput', `${shown}: a submodule is not read; remove it`);
    if (isPolicyFile(path) && !PLAIN_PATH.test(path))
      throw new SluiceError('InvalidInput', `${shown}: use letters, digits and . _ + @ - in the names of the files`);
  }
  const files = entries.filter(({ path }) => isPolicyFile(path));
  if (files.length > MAX_FILES)
    throw new SluiceError('InvalidInput', `${folder}: there are ${files.length} files, at most ${MAX_FILES} are read`);
  return files;
}

function isPolicyFile(path: string): boolean {
  return /\.ya?ml$/i.test(path);
}

function contentOf(object: { readonly data: Buffer } | undefined): Buffer {
  if (object !== undefined) return object.data;
  throw new SluiceError('Corrupt', 'a file of the policies is missing from the repository; run "git fsck" in it');
}
