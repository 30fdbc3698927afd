import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import { changesOfBranch, startOfBranch } from '../judging/branch-changes.ts';
import { readableChanges } from './readable-changes.ts';

/** Packages of which the files are looked at, and files of one that are named. */
const MAX_PACKAGES = 100;
const MAX_NAMED = 5;

/** What a branch changes in a package, and its merge does not have. */
export interface LeftOut {
  /** Of the package, from the root of the repository. */
  readonly path: string;
  /** The package is on the main branch. */
  readonly isThere: boolean;
  /** The files in words; undefined if they are too many, have too long paths, or are in malformed folders, to find out whether there are any. */
  readonly what: string | undefined;
}

/**
 * The changes of a branch to packages that a rebase has not brought to the main branch: hosts leave out merges, whatever users have changed in them, and
 * commits that are like one that was there before. It is what the branch has changed and the merge has as it was where the branch began. `start`: the
 * main branch before the merge.
 */
export async function leftOutOf(
  git: Pick<GitRepository, 'diffTrees' | 'readCommit' | 'readTree' | 'statObjects'>,
  { start, commit, head, directory }: Readonly<Record<'start' | 'commit' | 'head' | 'directory', Oid>>,
  signal: AbortSignal,
): Promise<readonly LeftOut[]> {
  const branch = await startOfBranch(git, { main: start, head }, signal);
  if (branch === undefined || branch.bases.includes(head)) return [];
  const { packages } = await changesOfBranch(git, branch, { after: head, directory });
  const found: LeftOut[] = [];
  for (const { path, before, after } of packages.slice(0, MAX_PACKAGES)) {
    const [tree] = await git.statObjects([`${commit}:${path}`]);
    if (tree?.oid === after) continue;
    const isThere = tree !== undefined;
    const changed = (await readableChanges(git, before, after))?.map((one) => one.path);
    if (changed === undefined) {
      found.push({ path, isThere, what: undefined });
      continue;
    }
    // What differs there from where the branch began was brought by the merge, or is another change.
    const moved = await readableChanges(git, before, tree?.oid);
    const arrived = new Set(moved?.map((one) => one.path));
    const files = changed.filter((file) => !arrived.has(file));
    if (moved === undefined) found.push({ path, isThere, what: undefined });
    else if (files.length > 0) found.push({ path, isThere, what: describe(files) });
  }
  return found;
}

function describe(files: readonly string[]): string {
  const more = files.length - MAX_NAMED;
  const named = `${files.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return `changes of ${files.length} ${files.length === 1 ? 'file' : 'files'} (${named})`;
}
