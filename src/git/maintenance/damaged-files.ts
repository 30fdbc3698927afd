import { link, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import { errnoOf, isMissing, readFileIfPresent, readFolder } from '../../foundation/files/file-system.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { hashOf } from '../objects/object-id.ts';
import { MAX_OBJECT_BYTES } from '../objects/object-source.ts';
import { runGit } from '../process/git-process.ts';
import { PackedRefs } from '../refs/packed-refs.ts';

const inflated = promisify(inflate);
/** In the repository; the next repair replaces its content. */
const FOLDER = 'sluice-damaged';

export interface Damage {
  /** Relative to the repository. */
  readonly objectFiles: readonly string[];
  readonly refFiles: readonly string[];
}

/** Reads a whole repository, and returns which of its files are damaged. Takes time in proportion to its size. */
export async function findDamage(
  gitDir: string,
  { clock, timeout, signal }: { clock: Clock; timeout: number; signal: AbortSignal | undefined },
): Promise<Damage> {
  const objectFiles: string[] = [];
  for (const { name: folder } of await readFolder(join(gitDir, 'objects'))) {
    if (!/^[0-9a-f]{2}$/.test(folder)) continue;
    for (const { name } of await readFolder(join(gitDir, 'objects', folder))) {
      const file = `objects/${folder}/${name}`;
      if (/^[0-9a-f]{38}$/.test(name) && !(await isSound(join(gitDir, file), `${folder}${name}`)))
        objectFiles.push(file);
    }
  }
  const names = (await readFolder(join(gitDir, 'objects/pack'))).map(({ name }) => name);
  for (const pack of new Set(names.flatMap((name) => /^(pack-[0-9a-f]{40})\.(?:pack|idx)$/.exec(name)?.[1] ?? []))) {
    const verify = ['verify-pack', '--', join(gitDir, 'objects/pack', `${pack}.idx`)];
    const isWhole = names.includes(`${pack}.pack`) && names.includes(`${pack}.idx`);
    if (isWhole && (await runGit({ gitDir, arguments: verify, clock, timeout, signal })).code === 0) continue;
    objectFiles.push(...names.filter((name) => name.startsWith(`${pack}.`)).map((name) => `objects/pack/${name}`));
  }
  return { objectFiles, refFiles: await damagedRefs(gitDir) };
}

async function isSound(path: string, oid: string): Promise<boolean> {
  try {
    // Sluice reads no objects above this size, so they are left to git.
    return hashOf(await inflated(await readFile(path), { maxOutputLength: 2 * MAX_OBJECT_BYTES })) === oid;
  } catch (error) {
    return isMissing(error) || errnoOf(error) === 'ERR_BUFFER_TOO_LARGE';
  }
}

async function damagedRefs(gitDir: string): Promise<string[]> {
  const damaged: string[] = [];
  const folders = ['refs'];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await readFolder(join(gitDir, folder))) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) folders.push(name);
      else if (!name.endsWith('.lock')) {
        const text = (await readFileIfPresent(join(gitDir, name)))?.toString('latin1');
        if (text !== undefined && !/^(?:[0-9a-f]{40}\s*$|ref:)/.test(text)) damaged.push(name);
      }
    }
  }
  const packed = await readFileIfPresent(join(gitDir, 'packed-refs'));
  try {
    if (packed !== undefined) await PackedRefs.parse(packed);
  } catch (error) {
    if (!isSluiceError(error, 'Corrupt')) throw error;
    damaged.push('packed-refs');
  }
  return damaged;
}

/** Keeps copies of damaged files under their names, for an operator to examine. The files also stay where they are. */
export async function preserveDamagedFiles(gitDir: string, files: readonly string[]): Promise<void> {
  if (files.length === 0) return;
  const folder = join(gitDir, FOLDER);
  await rm(folder, { recursive: true, force: true });
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await link(join(gitDir, file), join(folder, file)).catch(async (error: unknown) => {
      // Another process repairs the mirror too.
      if (isMissing(error)) return;
      // A file system without links.
      if (errnoOf(error) !== 'EPERM' && errnoOf(error) !== 'ENOTSUP') throw error;
      await rename(join(gitDir, file), join(folder, file));
    });
  }
}
