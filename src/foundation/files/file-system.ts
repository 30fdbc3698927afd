import { closeSync, type Dirent, fsync, openSync, readdirSync, statSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const sync = promisify(fsync);

/** The code of a system error (`ENOENT`), or undefined. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** True if the error means that a path does not exist, also because one of its folders is a file. */
export function isMissing(error: unknown): boolean {
  return errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR';
}

/** Removes a file if it exists. */
export function removeFile(path: string): Promise<void> {
  return rm(path, { force: true });
}

export async function readFileIfPresent(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Lists the names in a folder; empty if the folder does not exist. */
export async function readFolder(path: string): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Lists the names in a folder; empty if the folder does not exist. */
export function readFolderSync(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** A file below a folder, as a path from `root`; undefined if there is none, or no such folder. */
export function firstFileBelow(root: string, folder: string): string | undefined {
  // Almost never there: this check costs no error.
  if (statSync(join(root, folder), { throwIfNoEntry: false })?.isDirectory() !== true) return undefined;
  for (const entry of readFolderSync(join(root, folder))) {
    const path = `${folder}/${entry.name}`;
    const file = entry.isDirectory() ? firstFileBelow(root, path) : path;
    if (file !== undefined) return file;
  }
  return undefined;
}

/** Makes the names in a folder durable. Does nothing if the folder does not exist. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const descriptor = openSync(path, 'r');
    try {
      await sync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}
