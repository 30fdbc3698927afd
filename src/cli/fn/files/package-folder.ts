import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isMissing } from '../../../foundation/files/file-system.ts';
import { abandonedFolders, makeOwnFolder } from '../../../foundation/files/own-folder.ts';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { isResourcePath } from '../../../function/resource/resource-path.ts';
import { checkPath } from '../../../git/objects/paths.ts';
import { printable } from '../../output/printable.ts';

const MAX_ENTRIES = 50_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** Prefix of the folder with new contents until all of them are written. */
const TEMPORARY = '.sluice-write-';

/** The files of a folder that can contain resources. */
export interface PackageFolder {
  /** Absolute, without links. */
  readonly path: string;
  /** YAML files and Kptfiles by path below the folder, in the order of their paths. */
  readonly files: ReadonlyMap<string, string>;
  /** Skipped files, one line each. */
  readonly notes: readonly string[];
  /** Those of them that are no files, by path below the folder. */
  readonly links: readonly string[];
}

/** Reads the YAML files and Kptfiles below a folder. Links are skipped, as in kpt, so no file outside is read. */
export async function readPackageFolder(folder: string): Promise<PackageFolder> {
  const path = await realFolder(folder);
  const found = new Map<string, string>();
  const notes: string[] = [];
  const links: string[] = [];
  let [entries, bytes] = [0, 0];
  const visit = async (prefix: string): Promise<void> => {
    for (const entry of await readdir(join(path, prefix), { withFileTypes: true })) {
      const below = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
      if (entry.name === '.git') continue;
      if (++entries > MAX_ENTRIES) throw tooLarge(folder);
      if (entry.isDirectory()) await visit(below);
      else if (isResourcePath(below)) {
        if (entry.isFile()) {
          const data = await readRegular(join(path, below), MAX_BYTES - bytes, folder);
          bytes += data.byteLength;
          const text = decoded(data);
          if (text === undefined) notes.push(`${printable(below)}: not UTF-8, left as it is`);
          else found.set(below, text);
        } else {
          links.push(below);
          notes.push(`${printable(below)}: not a regular file, passed over; links are not followed`);
        }
      }
    }
  };
  await visit('');
  return { path, files: new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1))), notes, links };
}

/**
 * Changes files of a folder; null removes one. All new contents are written in a temporary folder before the first one is moved to its
 * place, so that a full disk or a missing permission changes nothing, and every file is complete if the process is killed; the next
 * write removes leftover files. Throws Refused for a path that leaves the folder or leads through a link.
 */
export async function writePackageFolder(folder: string, edits: ReadonlyMap<string, string | null>): Promise<void> {
  const path = await realFolder(folder);
  let temporary: string | undefined;
  try {
    for (const left of await abandonedFolders(path, TEMPORARY)) await rm(left, { recursive: true, force: true });
    const found: { target: string; text: string | null; mode: number | undefined }[] = [];
    for (const [file, text] of edits) {
      const target = join(path, ...checkPath(file));
      const mode = await checkWay(path, file);
      if (text !== null || mode !== undefined) found.push({ target, text, mode });
    }
    if (found.length === 0) return;
    temporary = await makeOwnFolder(path, TEMPORARY);
    for (const [at, { text, mode }] of found.entries())
      if (text !== null) await writeTemporary(join(temporary, String(at)), text, mode);
    for (const { target, text } of found) if (text !== null) await mkdir(dirname(target), { recursive: true });
    for (const [at, { target, text }] of found.entries()) {
      if (text === null) await rm(target);
      else await rename(join(temporary, String(at)), target);
    }
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw new SluiceError('Unavailable', `cannot write to ${printable(folder)}: ${messageOf(error)}`, { cause: error });
  } finally {
    if (temporary !== undefined) await rm(temporary, { recursive: true, force: true });
  }
}

/** Creates a folder that must not exist and writes files into it. */
export async function writeNewFolder(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  await checkNoFolder(folder);
  for (const path of files.keys()) checkPath(path);
  await mkdir(folder, { recursive: true });
  await writePackageFolder(folder, files);
}

/** Refuses an existing path before any work is done for it. */
export async function checkNoFolder(folder: string): Promise<void> {
  const there = await lstat(folder).catch(() => undefined);
  if (there !== undefined)
    throw new SluiceError('AlreadyExists', `${printable(folder)} exists already: remove it, or name another folder`);
}

async function realFolder(folder: string): Promise<string> {
  try {
    const path = await realpath(folder);
    if ((await lstat(path)).isDirectory()) return path;
  } catch (error) {
    // Wrong usage, as a folder that is no package.
    if (isMissing(error))
      throw new SluiceError('InvalidInput', `there is no folder ${printable(folder)}; name the folder of a package`);
    throw new SluiceError('NotFound', `cannot read ${printable(folder)}: ${messageOf(error)}`, { cause: error });
  }
  throw new SluiceError('InvalidInput', `${printable(folder)} is not a folder; name the folder of a package`);
}

/**
 * Returns the permissions of an existing file, undefined if it does not exist. Refuses links in the path, and everything but files at
 * its end.
 */
async function checkWay(folder: string, file: string): Promise<number | undefined> {
  const segments = file.split('/');
  for (let depth = 1; depth <= segments.length; depth++) {
    const place = join(folder, ...segments.slice(0, depth));
    const stats = await lstat(place).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
      throw error;
    });
    if (stats === undefined) return undefined;
    if (depth === segments.length ? stats.isFile() : stats.isDirectory()) {
      if (depth === segments.length) return stats.mode & 0o777;
    } else
      throw new SluiceError(
        'Refused',
        `${printable(file)} is not written: ${printable(segments.slice(0, depth).join('/'))} is there and is no ${depth === segments.length ? 'file' : 'folder'}, and links are not followed`,
      );
  }
  return undefined;
}

async function readRegular(path: string, left: number, folder: string): Promise<Buffer> {
  // A file may have been replaced by a link or a pipe since the folder was listed.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if ((await handle.stat()).size > left) throw tooLarge(folder);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

async function writeTemporary(path: string, text: string, mode: number | undefined): Promise<void> {
  const handle = await open(path, 'wx');
  try {
    await handle.writeFile(text);
    if (mode !== undefined) await handle.chmod(mode);
  } finally {
    await handle.close();
  }
}

function decoded(data: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return undefined;
  }
}

function tooLarge(folder: string): SluiceError {
  return new SluiceError(
    'LimitExceeded',
    `${printable(folder)} has more than ${MAX_ENTRIES} files or ${MAX_BYTES} bytes of YAML; it does not look like one package`,
  );
}
