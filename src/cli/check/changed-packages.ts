import { lstat, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isMissing } from '../../foundation/files/file-system.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { printable } from '../output/printable.ts';
import { runGit } from './run-git.ts';

const MAX_FOLDERS = 200_000;
/** What git prints elsewhere, and in a bare repository. */
const NO_WORKING_TREE = /not a git repository|must be run in a work tree/;
/**
 * Folders of the outermost packages that differ between the merge base of `base` and HEAD, and the commit that is checked out; sorted, relative
 * to the root of the working tree. Removed packages are left out. Throws InvalidInput where git refuses.
 */
export async function changedPackages(root: string, base: string): Promise<readonly string[]> {
  const args = ['diff', '--name-only', '-z', '--no-renames', '--no-ext-diff', `${base}...HEAD`, '--'];
  const changed = (await runGit(root, args)).split('\0').filter((path) => path !== '');
  const packages = new Map<string, Promise<boolean>>();
  const isPackage = (folder: string) => {
    const known = packages.get(folder) ?? hasKptfile(join(root, folder));
    packages.set(folder, known);
    return known;
  };
  const found = new Set<string>();
  for (const path of changed) {
    for (const folder of foldersAbove(path)) {
      if (!(await isPackage(folder))) continue;
      found.add(folder);
      break;
    }
  }
  return [...found].sort();
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
    if (entries.some((entry) => entry.name === 'Kptfile' && entry.isFile())) {
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

async function hasKptfile(folder: string): Promise<boolean> {
  try {
    return (await lstat(join(folder, 'Kptfile'))).isFile();
  } catch (error) {
    if (isMissing(error) || (error as NodeJS.ErrnoException).code === 'ENOTDIR') return false;
    throw error;
  }
}
