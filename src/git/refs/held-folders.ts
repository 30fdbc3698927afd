import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isMissing } from '../../foundation/files/file-system.ts';

/** Of this process, in the locks of refs that it takes. */
const PROCESS_ID = randomUUID();
/** The folder is empty in that of a command, which holds none. */
const MARK = /^sluice ([0-9a-f-]{36}) (.*)\n$/;
/** Milliseconds for which locks without a mark must be unchanged: a git process may outlive the process that started it, or be that of a command. */
const UNCHANGED_MS = 1000;
const MAX_WAITS = 10;
/** No name of a ref ends like a lock. */
const PACKED = ['packed-refs.lock', 'packed-refs.new', 'HEAD.lock'];

/** The folders whose lock this process holds, each with the repositories in it that were opened meanwhile, and the end of their release. */
const heldFolders = new Map<string, Map<string, Promise<void>>>();

/**
 * To be called by a process that has acquired the lock of a folder: its earlier holders have ended, so the locks of refs that they left can be
 * released at once. Returns the function that ends this.
 */
export function holdFolder(folder: string): () => void {
  heldFolders.set(folder, new Map());
  return () => void heldFolders.delete(folder);
}

/** True for a repository in a folder that this process holds: locks that it leaves when it is killed are released by the next holder. */
export function isHeld(gitDir: string): boolean {
  return openedBeside(gitDir) !== undefined;
}

/** The repositories that were opened in the held folder that this one is in; undefined outside of such folders. */
function openedBeside(gitDir: string): Map<string, Promise<void>> | undefined {
  const [, opened] = [...heldFolders].find(([folder]) => gitDir.startsWith(folder + sep)) ?? [];
  return opened;
}

/** The text that a lock of a ref has in it, so that the next holder of the folder can see whose it is. Git reads no lock. */
export function lockMark(): string {
  const [folder = ''] = heldFolders.keys();
  return `sluice ${PROCESS_ID} ${folder}\n`;
}

/** True for the lock of an ended process: an earlier holder of a folder that this process holds. Nothing is awaited before the caller removes it. */
export function isLeftLock(path: string): boolean {
  const { owner, folder } = markOf(path) ?? {};
  return owner !== undefined && owner !== PROCESS_ID && folder !== undefined && heldFolders.has(folder);
}

/** Undefined if there is no such lock, and without an owner for that of git. */
function markOf(
  path: string,
): { readonly owner?: string | undefined; readonly folder?: string | undefined } | undefined {
  try {
    const [, owner, folder] = MARK.exec(readFileSync(path, 'utf8')) ?? [];
    return { owner, folder };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/**
 * Releases the locks of refs that were left in a repository that is opened for the first time since this process holds the folder that it is in:
 * those of an earlier holder at once, and those of git once nothing changes any of them for a moment. A lock with another mark stays: it may be
 * that of a living command, which reads and writes without the lock of the folder.
 */
export async function releaseLeftLocks(gitDir: string): Promise<void> {
  const opened = openedBeside(gitDir);
  if (opened === undefined) return;
  const release = opened.get(gitDir) ?? releaseAll(gitDir);
  opened.set(gitDir, release);
  try {
    await release;
  } catch (error) {
    opened.delete(gitDir);
    throw error;
  }
}

async function releaseAll(gitDir: string): Promise<void> {
  const paths = await locksOf(gitDir);
  for (const path of paths) if (isLeftLock(path)) removeLeftLock(path);
  let locks = locksOfGit(paths);
  for (let waits = 0; locks.size > 0 && waits < MAX_WAITS; waits += 1) {
    await delay(UNCHANGED_MS);
    const after = locksOfGit(await locksOf(gitDir));
    const isUnchanged = after.size === locks.size && [...after].every(([path, state]) => locks.get(path) === state);
    // Nothing is awaited since they were read.
    if (isUnchanged) for (const path of after.keys()) removeLeftLock(path);
    locks = isUnchanged ? new Map() : after;
  }
}

/** Those that no process of Sluice has marked, with what changes when their writer does anything. */
function locksOfGit(paths: readonly string[]): Map<string, string> {
  const locks = new Map<string, string>();
  for (const path of paths) {
    const holder = basename(path) === 'packed-refs.new' ? join(dirname(path), 'packed-refs.lock') : path;
    const state = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (state === undefined || markOf(holder)?.owner !== undefined) continue;
    locks.set(path, `${state.ino} ${state.size} ${state.mtimeNs}`);
  }
  return locks;
}

/** With the file that the holder of a lock of packed refs writes, which would block git. */
export function removeLeftLock(path: string): void {
  if (basename(path) === 'packed-refs.lock') rmSync(join(dirname(path), 'packed-refs.new'), { force: true });
  rmSync(path, { force: true });
}

/** The lock files of all refs. */
export async function locksOf(gitDir: string): Promise<string[]> {
  const names = await readdir(join(gitDir, 'refs'), { recursive: true });
  const loose = names.filter((name) => name.endsWith('.lock')).map((name) => join('refs', name));
  return [...loose, ...PACKED].map((name) => join(gitDir, name));
}
