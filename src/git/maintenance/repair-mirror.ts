import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { readFileIfPresent, readFolder, removeFile, syncFolder } from '../../foundation/files/file-system.ts';
import { abandonedFolders, makeOwnFolder } from '../../foundation/files/own-folder.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { requireFreeSpace } from '../disk/disk-room.ts';
import { diskUse } from '../disk/disk-use.ts';
import { createRepository } from '../disk/repository-format.ts';
import type { MirrorRepair } from '../git-repository.ts';
import type { EngineOptions } from '../process/engine-options.ts';
import { runGit } from '../process/git-process.ts';
import { RefFiles } from '../refs/ref-files.ts';
import { findDamage, preserveDamagedFiles } from './damaged-files.ts';

/** A repository inside of the mirror, on the same file system, which readers do not use. Each process that repairs the mirror has its own. */
const FRESH = 'sluice-fresh-';

/** The repairs of this process by the path of the mirror, which several registrations may share. */
const running = new Map<string, Promise<MirrorRepair>>();

export interface RepairOptions extends Pick<EngineOptions, 'clock' | 'timeouts'> {
  readonly gitDir: string;
  readonly signal: AbortSignal | undefined;
  /** Fetches everything that the mirror should have into the empty repository at a path. */
  fetchInto(path: string): Promise<void>;
}

/**
 * Repairs a damaged mirror. Everything is fetched again into a separate repository, since the content of a damaged pack is unknown;
 * then the new pack is moved into the mirror, and damaged files are removed. Undamaged files stay, including objects that are not
 * pushed yet. Readers are served during the repair, and refs never disappear. Throws Corrupt if it is still damaged afterwards.
 *
 * A repair of the same mirror that is running in this process counts for this one too, unless it fails, as with credentials of its own.
 */
export async function repairMirror(options: RepairOptions): Promise<MirrorRepair> {
  const { gitDir, signal } = options;
  for (let other = running.get(gitDir); other !== undefined; other = running.get(gitDir)) {
    const ended = other.catch(() => undefined);
    const repaired = await untilEnded(signal, () => ended);
    if (repaired !== undefined) return repaired;
  }
  const repair = repairAlone(options).finally(() => running.delete(gitDir));
  running.set(gitDir, repair);
  return await repair;
}

async function repairAlone(options: RepairOptions): Promise<MirrorRepair> {
  const { gitDir } = options;
  // The whole folder may be missing.
  await createRepository(gitDir);
  requireFreeSpace(gitDir, (await diskUse(gitDir)).bytes);
  await removeLeft(gitDir);
  const fresh = await makeOwnFolder(gitDir, FRESH);
  try {
    await createRepository(fresh);
    await options.fetchInto(fresh);
    await run(options, fresh, ['pack-refs', '--all', '--prune']);
    await run(options, fresh, ['repack', '--quiet', '-a', '-d']);
    const { clock, timeouts, signal } = options;
    const { objectFiles, refFiles } = await findDamage(gitDir, { clock, timeout: timeouts.maintain, signal });
    const lostRefs = (await readFileIfPresent(join(gitDir, 'packed-refs'))) === undefined;
    await preserveDamagedFiles(gitDir, [...objectFiles, ...refFiles]);
    const placed = await placePacks(join(fresh, 'objects/pack'), join(gitDir, 'objects/pack'));
    for (const file of objectFiles) if (!placed.has(file)) await removeFile(join(gitDir, file));
    if (refFiles.length > 0 || lostRefs) await replaceRefs(gitDir, fresh, refFiles);
    if ((await problem(options)) !== undefined) {
      // Some refs are older than what the remote has now, and what they led to was lost.
      await replaceRefs(gitDir, fresh, await looseRefs(gitDir));
      const output = await problem(options);
      if (output !== undefined) throw beyondRepair(gitDir, output);
    }
    return { damaged: [...objectFiles, ...refFiles] };
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** Removes what repairs left that were killed. In a container, such a process may have had the number of this one. */
async function removeLeft(gitDir: string): Promise<void> {
  const names = (await readFolder(gitDir)).map(({ name }) => name);
  const own = names.filter((name) => name.startsWith(`${FRESH}${process.pid}-`)).map((name) => join(gitDir, name));
  for (const left of [...own, ...(await abandonedFolders(gitDir, FRESH))])
    await rm(left, { recursive: true, force: true });
}

/**
 * Moves packs, with each index last, since readers find a pack by its index. Returns their names, as `objects/pack/…`.
 */
async function placePacks(from: string, to: string): Promise<ReadonlySet<string>> {
  await mkdir(to, { recursive: true });
  const names = (await readFolder(from)).map(({ name }) => name);
  const inOrder = [...names.filter((name) => !name.endsWith('.idx')), ...names.filter((name) => name.endsWith('.idx'))];
  for (const name of inOrder) await rename(join(from, name), join(to, name));
  await syncFolder(to);
  return new Set(names.map((name) => `objects/pack/${name}`));
}

/**
 * Sets the packed refs to those of the remote and removes loose refs that would override them. Other packed refs keep an earlier value
 * of the remote. At no time is a ref of the remote missing.
 */
async function replaceRefs(gitDir: string, fresh: string, loose: readonly string[]): Promise<void> {
  const text = (await readFileIfPresent(join(fresh, 'packed-refs'))) ?? Buffer.alloc(0);
  await writeFile(join(gitDir, 'packed-refs.new'), text, { flush: true });
  await rename(join(gitDir, 'packed-refs.new'), join(gitDir, 'packed-refs'));
  for (const file of loose) if (file !== 'packed-refs') await removeFile(join(gitDir, file));
  await syncFolder(gitDir);
}

async function looseRefs(gitDir: string): Promise<string[]> {
  const refs = await new RefFiles(gitDir).listLoose('refs/');
  return refs.map(({ name }) => name);
}

/** Git's message if an object is missing that refs lead to. */
async function problem(options: RepairOptions): Promise<string | undefined> {
  const { code, stderr } = await git(options, options.gitDir, ['rev-list', '--objects', '--quiet', '--all']);
  return code === 0 ? undefined : stderr.trim().slice(0, 500);
}

function beyondRepair(gitDir: string, output: string): SluiceError {
  return new SluiceError(
    'Corrupt',
    `cannot repair the mirror ${gitDir}: ${output}. Remove the folder; Sluice then fetches the repository again`,
  );
}

async function run(options: RepairOptions, gitDir: string, commandArguments: readonly string[]): Promise<void> {
  const { code, stderr } = await git(options, gitDir, commandArguments);
  if (code !== 0)
    throw new SluiceError('Internal', `git ${commandArguments[0]} failed: ${stderr.trim().slice(0, 500)}`);
}

function git({ clock, timeouts, signal }: RepairOptions, gitDir: string, commandArguments: readonly string[]) {
  return runGit({ gitDir, arguments: commandArguments, clock, timeout: timeouts.maintain, signal });
}
