import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../foundation/clock.ts';
import { isMissing, readFolder, removeFile, syncFolder } from '../../foundation/file-system.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { diskUse, statOf } from '../disk/disk-use.ts';
import type { MetFiles } from '../disk/met-files.ts';
import { runGit } from '../process/git-process.ts';
import { dropCommitGraph } from './commit-graph.ts';

export interface GarbageOptions {
  readonly gitDir: string;
  readonly clock: Clock;
  /** Milliseconds for each command. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
  /** Milliseconds that garbage stays after it was found. */
  readonly dropAfter: number;
  /** Looks for garbage also where little has come in since the last time. */
  readonly pressed: boolean;
  /** What this process has seen of the files here. */
  readonly met: MetFiles;
  /** Milliseconds of running time for which a step must have stood before the next one is taken. */
  readonly pause: number;
}

/** Folder for packs that were put aside, and the file that says how much there was when garbage was looked for last. */
const ASIDE = 'sluice-put-aside';
const NOTE = 'sluice-collected';
/** Looking for garbage costs as much as all there is, so that is done when this much, in bytes, and half as much again is new. */
const WORTH = 16 * 1024 * 1024;
const WORTH_UNDER_PRESSURE = 1024 * 1024;
/** In the order in which they go; without its index Git sees no pack, and with it last, none that is there by half. */
const PARTS = ['idx', 'pack', 'rev', 'mtimes'] as const;

/**
 * Takes away what no ref leads to, in three steps that lie apart: it is packed by itself; when that pack is old enough it is put
 * aside, where no reader sees it; and if some time later everything is complete without it, it is deleted. What turns out to be needed
 * meanwhile comes back. So nothing depends on one moment in which nobody writes, nor on a clock being right.
 */
export async function dropGarbage(options: GarbageOptions): Promise<void> {
  const { gitDir } = options;
  // A list of packs that this does not know; other tools write it, and it would name packs that are gone.
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

/** Packs that nobody asked to keep. */
async function packsIn(folder: string): Promise<Pack[]> {
  const parts = new Map<string, string[]>();
  for (const { name } of await readFolder(folder)) {
    const [, pack, part] = /^(pack-[0-9a-f]{40})\.([a-z]+)$/.exec(name) ?? [];
    if (pack !== undefined && part !== undefined) parts.set(pack, [...(parts.get(pack) ?? []), part]);
  }
  return [...parts].map(([name, list]) => ({ name, parts: list })).filter((pack) => !pack.parts.includes('keep'));
}

/** Makes two packs of all: what refs lead to, and the rest. */
async function collect(options: GarbageOptions): Promise<void> {
  const { gitDir } = options;
  await run(
    options,
    ['repack', '--quiet', '-a', '-d', '--cruft'],
    ['pack.threads=1', 'pack.windowMemory=64m', 'repack.writeBitmaps=false'],
  );
  await writeFile(join(gitDir, NOTE), `${(await diskUse(gitDir)).bytes}\n`);
}

async function isWorthIt({ gitDir, pressed }: GarbageOptions): Promise<boolean> {
  const { bytes } = await diskUse(gitDir);
  const last = await noted(gitDir);
  if (last === undefined && !pressed) {
    // Nothing is known of what was here before; from now on it is.
    await writeFile(join(gitDir, NOTE), `${bytes}\n`);
    return false;
  }
  const before = last ?? 0;
  return bytes > before + (pressed ? WORTH_UNDER_PRESSURE : Math.max(WORTH, before / 2));
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

/** Puts packs of garbage aside that are old enough, both by the clock and by what this process has seen. */
async function putAside(options: GarbageOptions, packs: readonly Pack[]): Promise<void> {
  const { gitDir, clock, dropAfter, met, pause } = options;
  const folder = join(gitDir, 'objects/pack');
  for (const { name } of packs) {
    const path = join(folder, `${name}.pack`);
    const seen = (await met.age(path)) ?? 0;
    const modified = (await statOf(path))?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (seen === 0 || seen < pause || clock.now() - modified < dropAfter) return;
  }
  await dropCommitGraph(gitDir);
  await mkdir(join(gitDir, ASIDE), { recursive: true });
  await move(packs, folder, join(gitDir, ASIDE));
  await expectComplete(options, packs);
}

/** Deletes what was put aside, if all is complete without it still. */
async function deleteAside(options: GarbageOptions, packs: readonly Pack[]): Promise<void> {
  const { gitDir, met, pause } = options;
  for (const { name, parts } of packs) {
    const seen = (await met.age(join(gitDir, ASIDE, `${name}.${parts[0]}`))) ?? 0;
    if (seen === 0 || seen < pause) return;
  }
  if (!(await expectComplete(options, packs))) return;
  for (const { name, parts } of packs)
    for (const part of parts) await removeFile(join(gitDir, ASIDE, `${name}.${part}`));
}

/** Brings packs back, and sorts anew what is garbage, if refs lead to what is in them. False if that was so. */
async function expectComplete(options: GarbageOptions, packs: readonly Pack[]): Promise<boolean> {
  const { gitDir } = options;
  try {
    await run(options, ['rev-list', '--objects', '--quiet', '--all']);
    return true;
  } catch (error) {
    // Whatever the reason is, what was there before is there again.
    await move(packs, join(gitDir, ASIDE), join(gitDir, 'objects/pack'));
    if (!isSluiceError(error, 'Internal')) throw error;
  }
  await collect(options);
  return false;
}

/** Where it stopped in the middle, for whatever reason, what is aside is dealt with the next time. */
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
  const said = stderr.trim().slice(0, 500);
  throw new SluiceError('Internal', `git ${commandArguments[0]} failed while looking for what is not needed: ${said}`);
}
