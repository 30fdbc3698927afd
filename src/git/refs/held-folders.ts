import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { isMissing } from '../../foundation/files/file-system.ts';

/** Of this process, in the locks of refs that it takes. */
const PROCESS_ID = randomUUID();
const MARK = /^sluice ([0-9a-f-]{36}) (.+)\n$/;
/** No name of a ref ends like a lock. */
const PACKED = ['packed-refs.lock', 'packed-refs.new', 'HEAD.lock'];

/** The folders whose lock this process holds, each with the repositories in it that were opened meanwhile. */
const heldFolders = new Map<string, Set<string>>();

/**
 * To be called by a process that has acquired the lock of a folder: its earlier holders have ended, so the locks of refs that they left can be
 * released at once. Returns the function that ends this.
 */
export function holdFolder(folder: string): () => void {
  heldFolders.set(folder, new Set());
  return () => void heldFolders.delete(folder);
}

/** True for a repository in a folder that this process holds: locks that it leaves when it is killed are released by the next holder. */
export function isHeld(gitDir: string): boolean {
  return openedBeside(gitDir) !== undefined;
}

/** The repositories that were opened in the held folder that this one is in; undefined outside of such folders. */
function openedBeside(gitDir: string): Set<string> | undefined {
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
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  const [, owner, folder = ''] = MARK.exec(text) ?? [];
  return owner !== undefined && owner !== PROCESS_ID && heldFolders.has(folder);
}

/**
 * Releases the locks of refs that an earlier holder left in a repository that is opened for the first time since this process holds the folder
 * that it is in. A lock without its mark may be that of a living process: a command reads and writes without the lock of the folder.
 */
export async function releaseLeftLocks(gitDir: string): Promise<void> {
  const opened = openedBeside(gitDir);
  if (opened === undefined || opened.has(gitDir)) return;
  opened.add(gitDir);
  for (const path of await locksOf(gitDir)) if (isLeftLock(path)) removeLeftLock(path);
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
