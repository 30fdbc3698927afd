import type { GitRepository, Oid, TreeEntry } from '../../src/git/git-repository.ts';

/** Folders of both sides that are read, whatever a branch contains. */
const MAX_TREES = 2000;
const MAX_DEPTH = 50;

/** A folder with a Kptfile that differs between two commits. */
export interface ChangedPackage {
  /** From the root of the repository. */
  readonly path: string;
  /** Its trees; undefined on the side where it is no package. */
  readonly before: Oid | undefined;
  readonly after: Oid | undefined;
}

export interface ChangedPackages {
  /** The outermost ones, sorted by path. */
  readonly packages: readonly ChangedPackage[];
  /** False if there are too many changed folders to look at all of them. */
  readonly isComplete: boolean;
}

/**
 * The outermost packages below `directory` that differ between two commits. Equal folders are not read, nor those inside of packages, so that a
 * branch of any size costs a bounded number of reads.
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
    const [olds, nexts] = [await entriesOf(old), await entriesOf(next)];
    const [wasPackage, isPackage] = [isKptfile(olds), isKptfile(nexts)];
    // The root of a repository is no package.
    if (path !== '' && (wasPackage || isPackage)) {
      packages.push({ path, before: wasPackage ? old : undefined, after: isPackage ? next : undefined });
      return;
    }
    for (const name of new Set([...olds.keys(), ...nexts.keys()])) {
      const [was, is] = [treeIn(olds, name), treeIn(nexts, name)];
      if (was !== is) await visit(path === '' ? name : `${path}/${name}`, was, is, depth + 1);
    }
  }

  async function entriesOf(tree: Oid | undefined): Promise<ReadonlyMap<string, TreeEntry>> {
    const entries = tree === undefined ? undefined : await git.readTree(tree);
    return new Map((entries ?? []).map((entry) => [entry.name, entry]));
  }
}

function isKptfile(entries: ReadonlyMap<string, TreeEntry>): boolean {
  return entries.get('Kptfile')?.mode.startsWith('100') === true;
}

function treeIn(entries: ReadonlyMap<string, TreeEntry>, name: string): Oid | undefined {
  const entry = entries.get(name);
  return entry?.mode === '040000' ? entry.oid : undefined;
}
