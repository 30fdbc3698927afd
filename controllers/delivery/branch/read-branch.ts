import { joinPath } from '../../../src/delivery/path-rules.ts';
import { BranchFiles, type PresentFile } from '../../../src/delivery/tree/branch-files.ts';
import { type FolderOwner, mayNameOwner, readOwner } from '../../../src/delivery/tree/kustomization.ts';
import { inSlices } from '../../../src/foundation/concurrency/in-slices.ts';
import { isSluiceError, SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { FileEntry, GitRepository, Oid, TreeChange } from '../../../src/git/git-repository.ts';

/** Larger lists are not Sluice's: it writes one line for each file of a package. */
const MAX_LIST_BYTES = 1024 * 1024;
/** Files below the directory of a target, its folders counted: some 150 MB. */
const MAX_BRANCH_FILES = 500_000;
/** Lists that are read in one batch. */
const LISTS_PER_READ = 1000;
/** Mode of the files that Sluice writes. */
const PLAIN_FILE = '100644';

/** Reads the files below a directory at a commit. */
export async function readBranch(git: GitRepository, head: Oid | undefined, directory: string): Promise<BranchFiles> {
  const files = new BranchFiles(directory);
  const tree = head === undefined ? undefined : await treeAt(git, head, directory);
  if (tree === undefined) return files;
  const entries = await listFiles(git, tree, directory);
  const owners = await readOwners(git, entries);
  await inSlices(entries, (entry) => {
    files.set(joinPath(directory, entry.path), presentFile(entry, owners.get(entry.path)));
  });
  return files;
}

/**
 * Brings files of one commit to another. Reads only the folders that differ. Returns false, with nothing changed, if there are too many
 * changes, or the earlier commit no longer exists.
 */
export async function followBranch(git: GitRepository, files: BranchFiles, from: Oid, to: Oid): Promise<boolean> {
  const { directory } = files;
  const [before, after] = await Promise.all([treeAt(git, from, directory), treeAt(git, to, directory)]);
  if (before === after && (before !== undefined || files.size === 0)) return true;
  if (before === undefined) return false;
  let changes: readonly TreeChange[];
  try {
    changes = await git.diffTrees(before, after);
  } catch (error) {
    if (isSluiceError(error, 'LimitExceeded')) return false;
    throw error;
  }
  const present = changes.flatMap(({ path, after: entry }) => (entry === undefined ? [] : { ...entry, path }));
  const owners = await readOwners(git, present);
  for (const { path, after: entry } of changes) {
    const full = joinPath(directory, path);
    if (entry === undefined) files.delete(full);
    else files.set(full, presentFile(entry, owners.get(path)));
  }
  if (files.size > MAX_BRANCH_FILES) throw tooMany(directory);
  return true;
}

function presentFile({ oid, mode }: Pick<FileEntry, 'oid' | 'mode'>, owner: FolderOwner | undefined): PresentFile {
  return { oid, ...(mode === PLAIN_FILE ? {} : { mode }), ...(owner === undefined ? {} : { owner }) };
}

async function treeAt(git: GitRepository, commit: Oid, directory: string): Promise<Oid | undefined> {
  const [stat] = await git.statObjects([`${commit}:${directory}`]);
  return stat?.type === 'tree' ? stat.oid : undefined;
}

async function listFiles(git: GitRepository, tree: Oid, directory: string): Promise<FileEntry[]> {
  try {
    return await git.listFiles(tree, MAX_BRANCH_FILES);
  } catch (error) {
    if (isSluiceError(error, 'LimitExceeded')) throw tooMany(directory, error);
    throw error;
  }
}

function tooMany(directory: string, cause?: SluiceError): SluiceError {
  const message = `directory ${directory === '' ? '/' : directory} of the target contains more than ${MAX_BRANCH_FILES} files; divide its packages among targets with separate directories`;
  return new SluiceError('LimitExceeded', message, cause === undefined ? {} : { cause });
}

/** The owners that lists among these files name, by path. */
async function readOwners(git: GitRepository, files: readonly FileEntry[]): Promise<Map<string, FolderOwner>> {
  const lists = files.filter(({ path, mode }) => mayNameOwner(path) && mode.startsWith('100'));
  const owners = new Map<string, FolderOwner>();
  for (let start = 0; start < lists.length; start += LISTS_PER_READ) {
    const part = lists.slice(start, start + LISTS_PER_READ);
    const sizes = await git.statObjects(part.map(({ oid }) => oid));
    const readable = part.filter((_, index) => (sizes[index]?.size ?? MAX_LIST_BYTES) < MAX_LIST_BYTES);
    const objects = await git.readObjects(readable.map(({ oid }) => oid));
    for (const [index, { path }] of readable.entries()) {
      const object = objects[index];
      const owner = object && readOwner(object.data);
      if (owner !== undefined) owners.set(path, owner);
    }
  }
  return owners;
}
