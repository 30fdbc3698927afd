import type { GitRepository, Oid, TreeEntry } from '../../../src/git/git-repository.ts';
import { isLinePath } from '../../../src/git/objects/paths.ts';
import type { BranchStart } from './branch-changes.ts';
import { changedPackages, entriesOf, kptfileOf, treeIn, UNREAD_ENTRIES } from './changed-packages.ts';

/** Folders of all sides that are read, whatever a branch contains. */
const MAX_TREES = 3000;
const MAX_DEPTH = 50;
/** Paths of the main branch that are looked at whenever it moves, beside those of packages. */
const MAX_WATCHED = 100;

export interface MergedSides {
  readonly start: BranchStart;
  readonly main: Oid;
  readonly head: Oid;
  /** Of all Repositories, from the root of the Git repository. */
  readonly directories: readonly string[];
  /** Paths of the packages that the branch changes, which are judged. */
  readonly packages: ReadonlySet<string>;
}

export interface UnjudgedMerge {
  /** Why a merge can make other packages than those that are judged file by file; a sentence for each. */
  readonly reasons: readonly string[];
  /** Paths of the main branch that this depends on beside the packages; empty for its root. */
  readonly watched: ReadonlySet<string>;
}

interface Found {
  /** The first file that the main branch has removed, and the branch changes. */
  byMain?: string;
  /** The same with the sides exchanged. */
  byBranch?: string;
  /** The first folder that only the main branch has as a package, and in which the branch changes something. */
  package?: string;
  isIncomplete?: boolean;
}

type Git = Pick<GitRepository, 'readTree' | 'statObjects'>;

/**
 * Finds what a merge of Git can put into packages although no file of them says so. A merge that detects renames takes a file that one side has removed,
 * and the other one changed, for moved, and changes the file that the first side has in its place. Which file that is depends on how alike they are, on
 * limits and on settings of the host. Without such a file all merges are alike: file by file. And a folder that became a package on the main branch has
 * what the branch brings to it. Equal folders are not read.
 */
export async function unjudgedMerge(git: Git, sides: MergedSides): Promise<UnjudgedMerge> {
  const { start, main, head, directories, packages } = sides;
  const watched = new Set<string>();
  const found: Found = {};
  let left = MAX_TREES;
  const [there, wanted, ...bases] = await git.statObjects([main, head, ...start.bases].map((commit) => `${commit}:`));
  for (const base of bases)
    await visit('', { was: base?.oid, wanted: wanted?.oid, there: there?.oid }, { isWatched: false, isPackage: false });
  const reasons: string[] = [];
  const update = 'merge the main branch into this one';
  if (found.package !== undefined)
    reasons.push(`The main branch has the package ${found.package} now, in which this branch changes files; ${update}`);
  // What a side has changed in no package was moved to none by it.
  if (found.byBranch !== undefined && packages.size > 0)
    reasons.push(`The main branch has changed ${found.byBranch}, which this branch removes or moves; ${update}`);
  if (found.byMain !== undefined && (await mainChangesPackages()))
    reasons.push(`The main branch has removed or moved ${found.byMain}, which this branch changes; ${update}`);
  else if (found.byMain !== undefined) watched.add('');
  if (found.isIncomplete === true)
    reasons.push(
      `The branch and the main branch both change too many folders, or too deep or malformed ones; ${update}`,
    );
  return { reasons, watched: fewer(watched) };

  async function visit(
    path: string,
    { was, wanted, there }: { was: Oid | undefined; wanted: Oid | undefined; there: Oid | undefined },
    above: { readonly isWatched: boolean; readonly isPackage: boolean },
  ): Promise<void> {
    if (was === wanted) return;
    const isWhole = above.isWatched || was === undefined || wanted === undefined || left <= 0;
    if (isWhole && !above.isWatched) watch(path);
    const isWatched = isWhole || packages.has(path);
    // Both sides have made the same of it, which the main branch can change again.
    if (there === wanted && !isWatched) watch(path);
    if (there === wanted || (isWatched && there === was)) return;
    if (left <= 0 || path.split('/').length > MAX_DEPTH) {
      watch(path);
      found.isIncomplete ||= there !== was;
      return;
    }
    left -= 3;
    const [old, next, onMain] = [await entriesOf(git, was), await entriesOf(git, wanted), await entriesOf(git, there)];
    if ([old, next, onMain].includes(UNREAD_ENTRIES)) {
      watch(path);
      // A folder that the main branch has not changed is taken from the branch as a whole, also where it repairs it.
      found.isIncomplete ||= next === UNREAD_ENTRIES || there !== was;
      return;
    }
    const isOfPackage = above.isPackage || (isBelow(path) && kptfileOf(next) === 'file');
    if (!isOfPackage && isBelow(path)) {
      if (!isWatched) watch(`${path}/Kptfile`);
      if (kptfileOf(old) !== 'file' && kptfileOf(onMain) === 'file') found.package ??= path;
    }
    for (const name of new Set([...old.keys(), ...next.keys()])) {
      const [one, other, present] = [old.get(name), next.get(name), onMain.get(name)];
      if (isSame(one, other)) continue;
      const child = path === '' ? name : `${path}/${name}`;
      const trees = { was: treeIn(old, name), wanted: treeIn(next, name), there: treeIn(onMain, name) };
      await visit(child, trees, { isWatched, isPackage: isOfPackage });
      if (one === undefined || isTree(one)) continue;
      if (!isWatched) watch(child);
      if (isSame(one, present) || isSame(other, present)) continue;
      if (isFile(other) && !isFile(present)) found.byMain ??= child;
      if (!isFile(other) && isFile(present)) found.byBranch ??= child;
    }
  }

  function watch(path: string): void {
    const parts = path.split('/');
    const odd = parts.findIndex((part) => !isLinePath(part));
    // What cannot be looked up by its path moves with its folder.
    watched.add(odd === -1 ? path : parts.slice(0, odd).join('/'));
  }

  function isBelow(path: string): boolean {
    return directories.some((one) => (one === '' ? path !== '' : path === one || path.startsWith(`${one}/`)));
  }

  /** Also if only a part of what it has changed is known. */
  async function mainChangesPackages(): Promise<boolean> {
    for (const before of start.bases)
      for (const directory of directories) {
        const changed = await changedPackages(git, { before, after: main, directory });
        if (changed.packages.length > 0 || !changed.isComplete) return true;
      }
    return false;
  }
}

/** Where these are many, the folders of the root that they are in. */
function fewer(paths: ReadonlySet<string>): ReadonlySet<string> {
  if (paths.has('')) return new Set(['']);
  if (paths.size <= MAX_WATCHED) return paths;
  const first = new Set([...paths].map((path) => path.split('/', 1)[0] ?? ''));
  return first.size <= MAX_WATCHED ? first : new Set(['']);
}

function isTree({ mode }: TreeEntry): boolean {
  return mode === '040000';
}

function isFile(entry: TreeEntry | undefined): boolean {
  return entry !== undefined && !isTree(entry);
}

function isSame(one: TreeEntry | undefined, other: TreeEntry | undefined): boolean {
  return one?.oid === other?.oid && one?.mode === other?.mode;
}
