import { SluiceError } from '../../foundation/sluice-error.ts';
import { DamageError, HOW_TO_REPAIR } from '../errors.ts';
import type { FileEntry, Oid, TreeChange, TreeEntry } from '../git-repository.ts';
import { EMPTY_TREE } from '../git-repository.ts';
import type { ObjectSource } from './object-source.ts';
import { decodeEntry, decodeName, parseTree, type RawTreeEntry } from './tree-codec.ts';

export const MAX_LISTED_ENTRIES = 100_000;
const MAX_PATH_CHARACTERS = 4096;
/** Each level is a round trip, and a tree that contains itself nearly for ever takes no space. */
const MAX_FOLDER_DEPTH = 256;

interface Folder {
  readonly path: string;
  readonly oid: Oid;
  entries: readonly RawTreeEntry[];
  /** By raw name. */
  readonly folders: Map<string, Folder>;
}

/**
 * All entries below a tree that are not trees, depth first in Git's order. Whole levels are read in one round trip. Folders count
 * against the limit too, since equal folders, nested, multiply without taking any space.
 */
export async function listFiles(source: ObjectSource, root: Oid, limit: number): Promise<FileEntry[]> {
  const top: Folder = { path: '', oid: root, entries: [], folders: new Map() };
  let seen = 0;
  let depth = 0;
  for (let level = [top]; level.length > 0; depth += 1) {
    if (depth > MAX_FOLDER_DEPTH) throw tooDeep(root);
    const trees = await readTrees(
      source,
      level.map(({ oid }) => oid),
    );
    const next: Folder[] = [];
    for (const folder of level) {
      folder.entries = trees.get(folder.oid) ?? [];
      seen += folder.entries.length;
      if (seen > 2 * limit) throw tooMany(root, limit);
      for (const entry of folder.entries) {
        if (entry.mode !== '040000') continue;
        const below = { path: join(folder.path, entry.rawName), oid: entry.oid, entries: [], folders: new Map() };
        folder.folders.set(entry.rawName, below);
        next.push(below);
      }
    }
    level = next;
  }
  const files: FileEntry[] = [];
  collect(top, files);
  if (files.length > limit) throw tooMany(root, limit);
  return files;
}

function collect(folder: Folder, files: FileEntry[]): void {
  for (const { mode, rawName, oid } of folder.entries) {
    const below = folder.folders.get(rawName);
    if (below === undefined) files.push({ mode, path: join(folder.path, rawName), oid });
    else collect(below, files);
  }
}

/**
 * Lists the differences between two trees, sorted by path. Reads only folders that differ, whole levels in one round
 * trip.
 */
export async function diffTrees(source: ObjectSource, before: Oid, after: Oid): Promise<TreeChange[]> {
  const changes: TreeChange[] = [];
  let seen = 0;
  let level = before === after ? [] : [{ path: '', before, after }];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_FOLDER_DEPTH) throw tooDeep(after);
    const trees = await readTrees(
      source,
      level.flatMap((pair) => [pair.before, pair.after]),
    );
    const next: typeof level = [];
    for (const pair of level) {
      for (const [rawName, [old, new_]] of pairUp(trees.get(pair.before) ?? [], trees.get(pair.after) ?? [])) {
        if (old?.oid === new_?.oid && old?.mode === new_?.mode) continue;
        seen += 1;
        if (seen > MAX_LISTED_ENTRIES) throw tooMany(pair.after, MAX_LISTED_ENTRIES);
        const path = join(pair.path, rawName);
        const [oldFile, oldFolder] = split(old);
        const [newFile, newFolder] = split(new_);
        if (oldFile !== undefined || newFile !== undefined) changes.push({ path, before: oldFile, after: newFile });
        if (oldFolder !== newFolder) next.push({ path, before: oldFolder, after: newFolder });
      }
    }
    level = next;
  }
  return changes.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function pairUp(before: readonly RawTreeEntry[], after: readonly RawTreeEntry[]) {
  const pairs = new Map<string, [RawTreeEntry | undefined, RawTreeEntry | undefined]>();
  for (const entry of before) pairs.set(entry.rawName, [entry, undefined]);
  for (const entry of after) pairs.set(entry.rawName, [pairs.get(entry.rawName)?.[0], entry]);
  return pairs;
}

/** Splits an entry into a file and a folder, one of which is undefined. */
function split(entry: RawTreeEntry | undefined): [TreeEntry | undefined, Oid] {
  if (entry === undefined) return [undefined, EMPTY_TREE];
  return entry.mode === '040000' ? [undefined, entry.oid] : [decodeEntry(entry), EMPTY_TREE];
}

async function readTrees(source: ObjectSource, oids: readonly Oid[]): Promise<Map<Oid, RawTreeEntry[]>> {
  const unique = [...new Set(oids)].filter((oid) => oid !== EMPTY_TREE);
  const objects = await source.readObjects(unique);
  const trees = new Map<Oid, RawTreeEntry[]>();
  for (const [index, oid] of unique.entries()) {
    const object = objects[index];
    if (object === undefined) throw new DamageError(`tree ${oid} is missing. ${HOW_TO_REPAIR}`);
    if (object.type !== 'tree')
      throw new SluiceError(
        'Corrupt',
        `a tree names the ${object.type} ${oid} as a folder. Commit its files again with git`,
      );
    trees.set(oid, parseTree(object.data, oid));
  }
  return trees;
}

function join(folder: string, rawName: string): string {
  const name = decodeName(rawName);
  const path = folder === '' ? name : `${folder}/${name}`;
  if (path.length > MAX_PATH_CHARACTERS)
    throw new SluiceError('LimitExceeded', `a path in the tree is longer than ${MAX_PATH_CHARACTERS} characters`);
  return path;
}

function tooDeep(tree: Oid): SluiceError {
  return new SluiceError('LimitExceeded', `tree ${tree} has files below more than ${MAX_FOLDER_DEPTH} folders`);
}

function tooMany(tree: Oid, limit: number): SluiceError {
  return new SluiceError('LimitExceeded', `tree ${tree} has more than ${limit} entries`);
}
