import type { GitObject, Oid, TreeEntry } from '../../../git/git-repository.ts';
import { treeWindow } from '../../../git/objects/pack/tree-window.ts';
import { decodeEntry, parseTree } from '../../../git/objects/tree-codec.ts';
import type { FolderFact } from './fact-cache.ts';
import { type FactReader, type Inspection, inBatches } from './fact-reader.ts';

/** Deeper folders contain no packages. */
const MAX_DEPTH = 32;

/** A folder whose content is another one than before. */
interface Differing {
  readonly path: string;
  readonly before: Oid | undefined;
  readonly after: Oid | undefined;
}

/**
 * Compares the packages below a folder in its trees `before` and `after`: by path, the current package, or undefined for a removed
 * one. A folder with a Kptfile is a package, including everything below it. Only differences are read, so the cost of a publication
 * is independent of the number of packages; `known` are the packages of `before`.
 */
export async function folderChanges(
  reader: FactReader,
  known: ReadonlyMap<string, unknown>,
  before: Oid | undefined,
  after: Oid | undefined,
): Promise<Map<string, FolderFact | undefined>> {
  const changed = new Map<string, FolderFact | undefined>();
  const drop = (folder: string) => {
    for (const path of known.keys()) if (isAtOrBelow(path, folder)) changed.set(path, undefined);
  };
  let level: Differing[] = before === after ? [] : [{ path: '', before, after }];
  for (let depth = 0; level.length > 0 && depth < MAX_DEPTH; depth++) {
    const next: Differing[] = [];
    await inBatches(level, async (slice) => {
      const trees = slice.flatMap(({ path, before: old, after: now }) => [known.has(path) ? undefined : old, now]);
      const inspected = await inspectAll(reader, trees);
      for (const [position, { path, before: oldTree, after: tree }] of slice.entries()) {
        const old = inspected[2 * position];
        const now = inspected[2 * position + 1];
        const isPackage = now?.kptfile !== undefined && path !== '';
        const comparable = old !== undefined && old.kptfile === undefined && now !== undefined && !isPackage;
        // A folder that was a package has no packages below it; if it is one now, or cannot be compared, all its
        // entries count as changed.
        if (known.has(path)) changed.set(path, undefined);
        else if (oldTree !== undefined && !comparable) drop(path);
        if (isPackage && tree !== undefined && now?.kptfile !== undefined)
          changed.set(path, { path, tree, kptfileBlob: now.kptfile });
        else next.push(...differing(path, comparable ? old : undefined, now));
      }
    });
    level = next;
  }
  return changed;
}

/** In order; undefined for missing ones. */
async function inspectAll(
  reader: FactReader,
  trees: readonly (Oid | undefined)[],
): Promise<(Inspection | undefined)[]> {
  const given = trees.filter((tree) => tree !== undefined);
  const inspected = await reader.inspect(given);
  const byTree = new Map(given.map((tree, position) => [tree, inspected[position]]));
  return trees.map((tree) => (tree === undefined ? undefined : byTree.get(tree)));
}

function differing(path: string, before: Inspection | undefined, after: Inspection | undefined): Differing[] {
  const [oldFolders, newFolders] = differingFolders(before?.tree, after?.tree);
  const old = new Map(oldFolders.map(({ name, oid }) => [name, oid]));
  const found: Differing[] = [];
  for (const { name, oid } of newFolders) {
    if (old.get(name) !== oid) found.push({ path: inFolder(path, name), before: old.get(name), after: oid });
    old.delete(name);
  }
  for (const [name, oid] of old) found.push({ path: inFolder(path, name), before: oid, after: undefined });
  return found;
}

/** The folders in two trees, without most of those that are the same in both. */
function differingFolders(before: GitObject | undefined, after: GitObject | undefined): [TreeEntry[], TreeEntry[]] {
  if (before === undefined || after === undefined) return [foldersIn(before?.data), foldersIn(after?.data)];
  const { base, target } = treeWindow(before.data, after.data);
  return [foldersIn(base), foldersIn(target)];
}

function foldersIn(tree: Buffer | undefined): TreeEntry[] {
  if (tree === undefined) return [];
  return parseTree(tree, '').flatMap((entry) => (entry.mode === '040000' ? decodeEntry(entry) : []));
}

function isAtOrBelow(path: string, folder: string): boolean {
  return folder === '' || path === folder || path.startsWith(`${folder}/`);
}

function inFolder(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}
