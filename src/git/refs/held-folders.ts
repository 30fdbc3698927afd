import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isMissing, removeFile } from '../../foundation/files/file-system.ts';

/** Of this process, in the locks of refs that it takes. */
const PROCESS_ID = randomUUID();
const MARK = /^sluice ([0-9a-f-]{36}) (.+)\n$/;
/** Milliseconds for which a lock that nothing identifies must be unchanged: a git process may outlive the process that started it. */
const UNCHANGED_MS = 1000;
const MAX_WAITS = 10;
/** No name of a ref ends like a lock. */
const PACKED = ['packed-refs.lock', 'packed-refs.new', 'HEAD.lock'];

/** The folders whose lock this process holds, each with the repositories in it that were opened meanwhile. */
const heldFolders = new Map<string, Set<string>>();

/**
 * To be called by a process that has acquired the lock of a folder: no other process of Sluice uses the folder, so the locks of refs that an
 * earlier holder left can be released at once. Returns the function that ends this.
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
 * Releases the locks of refs in a repository that is opened for the first time since this process holds the folder that it is in. Their
 * writers have ended, except for a git process that may outlive the one that started it: what such a process has locked changes soon.
 */
export async function releaseLeftLocks(gitDir: string): Promise<void> {
  const opened = openedBeside(gitDir);
  if (opened === undefined || opened.has(gitDir)) return;
  opened.add(gitDir);
  let locks = await locksOf(gitDir);
  for (let waits = 0; locks.size > 0 && waits < MAX_WAITS; waits += 1) {
    await delay(UNCHANGED_MS);
    const after = await locksOf(gitDir);
    const isUnchanged = after.size === locks.size && [...after].every(([path, id]) => locks.get(path) === id);
    if (isUnchanged) for (const path of after.keys()) await removeFile(path);
    locks = isUnchanged ? new Map() : after;
  }
}

/** The lock files of all refs, with what changes when their writer does anything. */
async function locksOf(gitDir: string): Promise<Map<string, string>> {
  const names = await readdir(join(gitDir, 'refs'), { recursive: true });
  const candidates = [...names.filter((name) => name.endsWith('.lock')).map((name) => join('refs', name)), ...PACKED];
  const locks = new Map<string, string>();
  for (const name of candidates) {
    const path = join(gitDir, name);
    try {
      const { ino, size, mtimeNs } = await stat(path, { bigint: true });
      locks.set(path, `${ino} ${size} ${mtimeNs}`);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return locks;
}
