import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, readFolder, removeFile, syncFolder } from '../../foundation/files/file-system.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { diskUse, statOf } from '../disk/disk-use.ts';
import type { ObservedFiles } from '../disk/observed-files.ts';
import { runGit } from '../process/git-process.ts';
import { dropCommitGraph } from './commit-graph.ts';

export interface GarbageOptions {
  readonly gitDir: string;
  readonly clock: Clock;
  /** Milliseconds for each command. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
  /** Milliseconds for which garbage is kept after it was found. */
  readonly dropAfter: number;
  /** Disk space is short: searches for garbage even if few objects were added since the last time. */
  readonly underPressure: boolean;
  /** Observations of the files by this process. */
  readonly observed: ObservedFiles;
  /** Milliseconds of running time between two steps. */
  readonly pause: number;
}

/** Folder for packs that were set aside, and the file with the size of the repository at the last search for garbage. */
const ASIDE = 'sluice-put-aside';
const NOTE = 'sluice-collected';
/**
 * Minimum amount of new data for a search, which reads the whole repository; also required is half of the previous size.
 */
const MIN_NEW_BYTES = 16 * 1024 * 1024;
const MIN_NEW_BYTES_UNDER_PRESSURE = 1024 * 1024;
/** In the order of removal: Git sees no pack without its index, so none that is only partly there. */
const PARTS = ['idx', 'pack', 'rev', 'mtimes'] as const;

/**
 * Removes unreachable objects in three steps with time between them: they are packed separately; when that pack is old enough it is
 * moved to a folder that readers do not use; and if the repository is still complete some time later, it is deleted. Objects that are
 * needed are restored. So the removal depends neither on a moment without writers nor on a correct clock.
 */
export async function dropGarbage(options: GarbageOptions): Promise<void> {
  const { gitDir } = options;
  // Other tools write this list of packs; it would name packs that no longer exist.
  if ((await statOf(join(gitDir, 'objects/pack/multi-pack-index'))) !== undefined) return;
  const aside = await packsIn(join(gitDir, ASIDE));
  if (aside.length > 0) return await deleteAside(options, aside);
  const found = (await packsIn(join(gitDir, 'objects/pack'))).filter(({ parts }) => parts.includes('mtimes'));
  if (found.length > 0) return await putAside(options, found);
  if (await isWorthIt(options)) await collect(options);
}

interface Pack {
  readonly name: string;
  readonly parts: readonly string[];
}

/** Lists the packs without a file that makes Git keep them. */
async function packsIn(folder: string): Promise<Pack[]> {
  const parts = new Map<string, string[]>();
  for (const { name } of await readFolder(folder)) {
    const [, pack, part] = /^(pack-[0-9a-f]{40})\.([a-z]+)$/.exec(name) ?? [];
    if (pack !== undefined && part !== undefined) parts.set(pack, [...(parts.get(pack) ?? []), part]);
  }
  return [...parts].map(([name, list]) => ({ name, parts: list })).filter((pack) => !pack.parts.includes('keep'));
}

/** Packs all objects into two packs: reachable and unreachable ones. */
async function collect(options: GarbageOptions): Promise<void> {
  const { gitDir } = options;
  await run(
    options,
    ['repack', '--quiet', '-a', '-d', '--cruft'],
    ['pack.threads=1', 'pack.windowMemory=64m', 'repack.writeBitmaps=false'],
  );
  await writeFile(join(gitDir, NOTE), `${(await diskUse(gitDir)).bytes}\n`);
}

async function isWorthIt({ gitDir, underPressure }: GarbageOptions): Promise<boolean> {
  const { bytes } = await diskUse(gitDir);
  const last = await noted(gitDir);
  if (last === undefined && !underPressure) {
    // The size at the last search is unknown; it is noted now.
    await writeFile(join(gitDir, NOTE), `${bytes}\n`);
    return false;
  }
  const before = last ?? 0;
  return bytes > before + (underPressure ? MIN_NEW_BYTES_UNDER_PRESSURE : Math.max(MIN_NEW_BYTES, before / 2));
}

async function noted(gitDir: string): Promise<number | undefined> {
  try {
    const [, bytes] = /^(\d{1,15})\n$/.exec(await readFile(join(gitDir, NOTE), 'latin1')) ?? [];
    return bytes === undefined ? undefined : Number(bytes);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Sets packs of garbage aside that are old enough, both by the clock and by what this process has observed. */
async function putAside(options: GarbageOptions, packs: readonly Pack[]): Promise<void> {
  const { gitDir, clock, dropAfter, observed, pause } = options;
  const folder = join(gitDir, 'objects/pack');
  for (const { name } of packs) {
    const path = join(folder, `${name}.pack`);
    const seen = (await observed.age(path)) ?? 0;
    const modified = (await statOf(path))?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (seen === 0 || seen < pause || clock.now() - modified < dropAfter) return;
  }
  await dropCommitGraph(gitDir);
  await mkdir(join(gitDir, ASIDE), { recursive: true });
  await move(packs, folder, join(gitDir, ASIDE));
  await expectComplete(options, packs);
}

/** Deletes the packs that were set aside, if the repository is complete without them. */
async function deleteAside(options: GarbageOptions, packs: readonly Pack[]): Promise<void> {
  const { gitDir, observed, pause } = options;
  for (const { name, parts } of packs) {
    const seen = (await observed.age(join(gitDir, ASIDE, `${name}.${parts[0]}`))) ?? 0;
    if (seen === 0 || seen < pause) return;
  }
  if (!(await expectComplete(options, packs))) return;
  for (const { name, parts } of packs)
    for (const part of parts) await removeFile(join(gitDir, ASIDE, `${name}.${part}`));
}

/** Restores packs, and searches for garbage again, if their objects are reachable from refs. False if that was so. */
async function expectComplete(options: GarbageOptions, packs: readonly Pack[]): Promise<boolean> {
  const { gitDir } = options;
  try {
    await run(options, ['rev-list', '--objects', '--quiet', '--all']);
    return true;
  } catch (error) {
    // For any error: the state is as before.
    await move(packs, join(gitDir, ASIDE), join(gitDir, 'objects/pack'));
    if (!isSluiceError(error, 'Internal')) throw error;
  }
  await collect(options);
  return false;
}

/** If it stopped in the middle, the next run continues with the packs that are set aside. */
async function move(packs: readonly Pack[], from: string, to: string): Promise<void> {
  const back = to.endsWith('objects/pack');
  const order = back ? PARTS.toReversed() : PARTS;
  for (const { name, parts } of packs)
    for (const part of order)
      if (parts.includes(part)) await rename(join(from, `${name}.${part}`), join(to, `${name}.${part}`));
  await syncFolder(to);
  await syncFolder(from);
}

async function run(
  { gitDir, clock, timeout, signal }: GarbageOptions,
  commandArguments: readonly string[],
  settings: readonly string[] = [],
): Promise<void> {
  const { code, stderr } = await runGit({ gitDir, settings, arguments: commandArguments, clock, timeout, signal });
  if (code === 0) return;
  const output = stderr.trim().slice(0, 500);
  throw new SluiceError(
    'Internal',
    `git ${commandArguments[0]} failed during the search for unreachable objects: ${output}`,
  );
}
