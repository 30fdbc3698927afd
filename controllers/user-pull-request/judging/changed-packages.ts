import type { GitRepository, Oid, TreeEntry } from '../../../src/git/git-repository.ts';
import { isLinePath } from '../../../src/git/objects/paths.ts';
import { unreadableReason } from '../../../src/package/model/content/unreadable-content.ts';

/** Folders of both sides that are read, whatever a branch contains. */
const MAX_TREES = 2000;
const MAX_DEPTH = 50;

/** A folder with a Kptfile that differs between two commits. */
export interface ChangedPackage {
  /** From the root of the repository. */
  readonly path: string;
  /** Its trees; undefined on the side where it is no package. A folder whose Kptfile is no file has the later one: it must not pass for a removal. */
  readonly before: Oid | undefined;
  readonly after: Oid | undefined;
}

export interface ChangedPackages {
  /** The outermost ones, sorted by path. */
  readonly packages: readonly ChangedPackage[];
  /** False if there are too many changed folders to look at all of them, or the later commit has some that cannot be read, such as by their names. */
  readonly isComplete: boolean;
}

/**
 * The outermost packages below `directory` that differ between two commits. Equal folders are not read, nor those inside of packages, so that a
 * branch of any size costs a bounded number of reads. Below a package that is removed there can be others, which it had as subpackages or not at all.
 */
export async function changedPackages(
  git: Pick<GitRepository, 'readTree' | 'statObjects'>,
  { before, after, directory }: { readonly before: Oid; readonly after: Oid; readonly directory: string },
): Promise<ChangedPackages> {
  const packages: ChangedPackage[] = [];
  let left = MAX_TREES;
  let isComplete = true;
  const [one, other] = await git.statObjects([`${before}:${directory}`, `${after}:${directory}`]);
  await visit(directory, one?.oid, other?.oid, 0);
  return { packages: packages.sort((a, b) => (a.path < b.path ? -1 : 1)), isComplete };

  async function visit(path: string, old: Oid | undefined, next: Oid | undefined, depth: number): Promise<void> {
    if (old === next) return;
    if (left <= 0 || depth > MAX_DEPTH) {
      isComplete = false;
      return;
    }
    left -= 2;
    const [olds, nexts] = [await entriesOf(git, old), await entriesOf(git, next)];
    // With an unreadable earlier side all packages of the later one count as changed: none of them is missed.
    if (nexts === UNREAD_ENTRIES) isComplete = false;
    // The root of a repository is no package.
    const [was, is] = path === '' ? [undefined, undefined] : [kptfileOf(olds), kptfileOf(nexts)];
    if (was === 'file' || is !== undefined)
      packages.push({ path, before: was === 'file' ? old : undefined, after: is === undefined ? undefined : next });
    if (is === 'file') return;
    // What was inside of a package was none, also where it is the same.
    const before = was === 'file' ? NO_ENTRIES : olds;
    for (const name of new Set([...before.keys(), ...nexts.keys()])) {
      const [from, to] = [treeIn(before, name), treeIn(nexts, name)];
      // No package of Sluice is in such a folder.
      if (!isLinePath(name)) isComplete &&= from === to || to === undefined;
      else if (from !== to) await visit(path === '' ? name : `${path}/${name}`, from, to, depth + 1);
    }
  }
}

/** A folder with a Kptfile in a commit. */
export interface PresentPackage {
  readonly tree: Oid;
  /** False if its Kptfile is a symbolic link or a submodule. */
  readonly hasFile: boolean;
}

/** Those of some folders below `directory` that have a Kptfile at a commit and are in no package there, by path. */
export async function packagesAt(
  git: Pick<GitRepository, 'readTree' | 'statObjects'>,
  { commit, directory }: { readonly commit: Oid; readonly directory: string },
  some: readonly { readonly path: string }[],
): Promise<ReadonlyMap<string, PresentPackage>> {
  const above = new Map(some.map(({ path }) => [path, foldersAbove(path, directory)]));
  const folders = [...new Set([...above].flatMap(([path, others]) => [path, ...others]))];
  const stats = await git.statObjects(folders.map((path) => `${commit}:${path}`));
  const found = new Map<string, PresentPackage>();
  for (const [at, path] of folders.entries()) {
    const { oid: tree, type } = stats[at] ?? {};
    if (tree === undefined || type !== 'tree') continue;
    const kptfile = kptfileOf(await entriesOf(git, tree));
    if (kptfile !== undefined) found.set(path, { tree, hasFile: kptfile === 'file' });
  }
  const packages = new Map<string, PresentPackage>();
  for (const [path, others] of above) {
    const present = found.get(path);
    const isInside = others.some((one) => found.get(one)?.hasFile === true);
    if (present !== undefined && !isInside) packages.set(path, present);
  }
  return packages;
}

/** Undefined where there is no package. */
export function packageTree(present: PresentPackage | undefined): Oid | undefined {
  return present?.hasFile === true ? present.tree : undefined;
}

/** Those that a package could be in, without the root of the repository. */
function foldersAbove(path: string, directory: string): readonly string[] {
  const parts = path.split('/');
  const first = directory === '' ? 1 : directory.split('/').length;
  return parts.slice(first).map((_, at) => parts.slice(0, first + at).join('/'));
}

const NO_ENTRIES: ReadonlyMap<string, TreeEntry> = new Map();

/** Those of a folder that a push brought and that cannot be read, since it is malformed or too large. */
export const UNREAD_ENTRIES: ReadonlyMap<string, TreeEntry> = new Map();

export async function entriesOf(
  git: Pick<GitRepository, 'readTree'>,
  tree: Oid | undefined,
): Promise<ReadonlyMap<string, TreeEntry>> {
  try {
    const entries = tree === undefined ? undefined : await git.readTree(tree);
    return new Map((entries ?? []).map((entry) => [entry.name, entry]));
  } catch (error) {
    if (unreadableReason(error) === undefined) throw error;
    return UNREAD_ENTRIES;
  }
}

/** Undefined if there is none; a folder of this name is none. */
export function kptfileOf(entries: ReadonlyMap<string, TreeEntry>): 'file' | 'link' | undefined {
  const mode = entries.get('Kptfile')?.mode;
  if (mode === undefined || mode === '040000') return undefined;
  return mode.startsWith('100') ? 'file' : 'link';
}

export function treeIn(entries: ReadonlyMap<string, TreeEntry>, name: string): Oid | undefined {
  const entry = entries.get(name);
  return entry?.mode === '040000' ? entry.oid : undefined;
}
