import type { Stats } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isMissing } from '../../foundation/files/file-system.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { type Finding, findingAt } from '../../function/lint/finding.ts';
import { LINK, notAFile, SUBMODULE } from '../../function/lint/not-a-file.ts';
import { printable } from '../output/printable.ts';
import { runGit } from './run-git.ts';

const MAX_FOLDERS = 200_000;

/** The packages that a branch changes, and all files that it changes. */
export interface ChangedPackages {
  /** Folders of the outermost packages, sorted, relative to the root of the working tree. Removed packages are left out. */
  readonly packages: readonly string[];
  /** By path relative to the root, the modes that they have in Git, removed files included. */
  readonly changed: ReadonlyMap<string, string>;
}

/** What git prints elsewhere, and in a bare repository. */
const NO_WORKING_TREE = /not a git repository|must be run in a work tree/;

/**
 * What differs between the merge base of `base` and HEAD, and the files that are checked out, committed or not; ignored files do not count. Throws
 * InvalidInput where git refuses.
 */
export async function changedPackages(root: string, base: string): Promise<ChangedPackages> {
  const [from = ''] = (await runGit(root, ['merge-base', base, 'HEAD'])).split('\n');
  const changed = changedEntries(await runGit(root, ['diff', ...CHANGES, from, '--']));
  const untracked = await runGit(root, ['ls-files', '--others', '--exclude-standard', '-z']);
  for (const path of untracked.split('\0')) {
    const entry = path === '' ? undefined : await lstatOf(join(root, path));
    // A folder is another clone, which Git does not add with its files.
    if (entry !== undefined && !entry.isDirectory()) changed.set(path, entry.isFile() ? '100644' : LINK);
  }
  const packages = new Map<string, Promise<boolean>>();
  const isPackage = (folder: string) => {
    const known = packages.get(folder) ?? hasKptfile(root, folder, changed);
    packages.set(folder, known);
    return known;
  };
  const found = new Set<string>();
  for (const path of changed.keys()) {
    for (const folder of foldersAbove(path)) {
      if (!(await isPackage(folder))) continue;
      found.add(folder);
      break;
    }
  }
  return { packages: [...found].sort(), changed };
}

/** Options with which git prints all files, links and submodules that differ, whatever the user has set. */
export const CHANGES = ['--raw', '-z', '--no-renames', '--no-ext-diff', '--ignore-submodules=dirty'] as const;

/** By path, the modes that the entries of such a list have now; zeros for removed ones. */
export function changedEntries(list: string): Map<string, string> {
  const parts = list.split('\0');
  const entries = new Map<string, string>();
  for (let at = 0; at + 1 < parts.length; at += 2) entries.set(parts[at + 1] ?? '', parts[at]?.split(' ')[1] ?? '');
  return entries;
}

/** The changed entries of a package that are no files, with paths below its folder. */
export function refusedEntries(folder: string, changed: ReadonlyMap<string, string>): Finding[] {
  const place = folder === '.' ? '' : `${folder}/`;
  return [...changed]
    .filter(([path, mode]) => path.startsWith(place) && (mode === LINK || mode === SUBMODULE))
    .map(([path, mode]) => findingAt(path.slice(place.length), notAFile(mode)));
}

/** Folders of all outermost packages below a folder, sorted, relative to it. Links are not followed. */
export async function allPackages(root: string): Promise<readonly string[]> {
  const found: string[] = [];
  const waiting = ['.'];
  let seen = 0;
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    if (++seen > MAX_FOLDERS)
      throw new SluiceError('LimitExceeded', `there are more than ${MAX_FOLDERS} folders; name a smaller one`);
    const entries = await readdir(join(root, folder), { withFileTypes: true });
    if (entries.some((entry) => entry.name === 'Kptfile' && !entry.isDirectory())) {
      found.push(folder);
      continue;
    }
    for (const entry of entries)
      if (entry.isDirectory() && entry.name !== '.git' && entry.name !== 'node_modules')
        waiting.push(folder === '.' ? entry.name : `${folder}/${entry.name}`);
  }
  return found.sort();
}

/** Throws InvalidInput for what is no folder. */
export async function expectFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (found === undefined) throw new SluiceError('InvalidInput', `there is no folder "${printable(folder)}"`);
  if (!found.isDirectory()) throw new SluiceError('InvalidInput', `"${printable(folder)}" is not a folder`);
}

/** The root of the working tree that a folder is in. */
export async function workingTreeOf(folder: string): Promise<string> {
  try {
    return (await runGit(folder, ['rev-parse', '--show-toplevel'])).replace(/\n$/, '');
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput') || !NO_WORKING_TREE.test(error.message)) throw error;
    throw new SluiceError(
      'InvalidInput',
      `"${printable(folder)}" is in no Git working tree, so that what a branch changes is not known; name a folder of a clone, or check every package below it with --all`,
      { cause: error },
    );
  }
}

/** Outermost first; `.` is the root. */
export function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) folders.unshift(folder);
  return ['.', ...folders];
}

/** Also if it is no file, which is an error then. A folder that is below a link is not that of a package. */
async function hasKptfile(root: string, folder: string, changed: ReadonlyMap<string, string>): Promise<boolean> {
  const path = join(folder, 'Kptfile');
  const kptfile = await lstatOf(join(root, path));
  if (kptfile === undefined || (kptfile.isDirectory() && changed.get(path) !== SUBMODULE)) return false;
  for (const above of foldersAbove(path).slice(1))
    if ((await lstatOf(join(root, above)))?.isDirectory() !== true) return false;
  return true;
}

async function lstatOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isMissing(error) || (error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}
