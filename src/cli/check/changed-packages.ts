import { execFile } from 'node:child_process';
import { lstat, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isMissing } from '../../foundation/files/file-system.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

const run = promisify(execFile);
const MAX_LIST_BYTES = 64 * 1024 * 1024;
const GIT_TIMEOUT_MS = 60_000;
const MAX_FOLDERS = 200_000;
/** Settings of the user that would change the list, or run a program. */
const PLAIN = ['-c', 'core.fsmonitor=false', '-c', 'diff.ignoreSubmodules=all'];

/**
 * Folders of the outermost packages that differ between the merge base of `base` and HEAD, and the commit that is checked out; sorted, relative
 * to the root of the working tree. Removed packages are left out. Throws InvalidInput where git refuses.
 */
export async function changedPackages(root: string, base: string): Promise<readonly string[]> {
  if (base.startsWith('-')) throw new SluiceError('InvalidInput', `${JSON.stringify(base)} is no revision of git`);
  const args = ['diff', '--name-only', '-z', '--no-renames', '--no-ext-diff', `${base}...HEAD`, '--'];
  const changed = (await git(root, args)).split('\0').filter((path) => path !== '');
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

/** The root of the working tree that a folder is in. */
export async function workingTreeOf(folder: string): Promise<string> {
  return (await git(folder, ['rev-parse', '--show-toplevel'])).replace(/\n$/, '');
}

/** Outermost first; `.` is the root. */
function foldersAbove(path: string): string[] {
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

async function git(folder: string, args: readonly string[]): Promise<string> {
  try {
    const options = { maxBuffer: MAX_LIST_BYTES, timeout: GIT_TIMEOUT_MS };
    return (await run('git', [...PLAIN, '-C', folder, ...args], options)).stdout;
  } catch (error) {
    const { stderr = '', code } = error as { readonly stderr?: string; readonly code?: unknown };
    if (code === 'ENOENT') throw new SluiceError('Unavailable', 'git is not installed');
    const said = stderr.trim() === '' ? messageOf(error) : stderr.trim();
    throw new SluiceError('InvalidInput', `git ${args[0]} failed: ${said}; fetch the base first, or use --all`);
  }
}
