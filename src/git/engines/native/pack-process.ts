import type { ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { syncFolder } from '../../../foundation/files/file-system.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { cleanText } from '../../../foundation/text/clean-text.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import { diskFull, isDiskFullMessage, requireFreeSpace } from '../../disk/disk-room.ts';
import type { Oid } from '../../git-repository.ts';
import { collectStderr, endGroup, killGroup, NOT_DURABLE, spawnGit, startError } from '../../process/git-process.ts';

/** The largest pack that is received. */
const MAX_PACK_BYTES = 16 * 1024 ** 3;

/**
 * Stores a pack in the repository while it arrives. Every object in it must be valid, and every object that it refers to must be
 * in the pack or in the repository. If the pack ends early or the signal aborts, no file remains. Throws the error of reading the
 * pack, the signal's reason, Unavailable for a damaged pack, and LimitExceeded.
 */
export async function indexPack(
  gitDir: string,
  pack: AsyncIterable<Uint8Array>,
  clock: Clock,
  signal: AbortSignal,
  durable = true,
): Promise<void> {
  signal.throwIfAborted();
  requireFreeSpace(gitDir);
  // A separate folder with a name that Git removes later: index-pack leaves its files when it is killed.
  const folder = await mkdtemp(join(gitDir, 'objects', 'tmp_objdir-incoming-'));
  try {
    const name = await writeIndexed(gitDir, join(folder, 'in.pack'), pack, clock, signal, durable);
    await moveIn(folder, join(gitDir, 'objects', 'pack'), name, durable);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Moves a pack and what belongs to it to where Git finds it: the index last, by which it is found. */
async function moveIn(from: string, to: string, name: string, durable: boolean): Promise<void> {
  const endings = (await readdir(from))
    .map((file) => extname(file))
    .sort((a, b) => Number(a === '.idx') - Number(b === '.idx'));
  await mkdir(to, { recursive: true });
  for (const ending of endings) await rename(join(from, `in${ending}`), join(to, `pack-${name}${ending}`));
  if (durable) await syncFolder(to);
}

/** Writes a pack and its index into files; returns the id of the pack. */
async function writeIndexed(
  gitDir: string,
  file: string,
  pack: AsyncIterable<Uint8Array>,
  clock: Clock,
  signal: AbortSignal,
  durable: boolean,
): Promise<string> {
  const child = spawnGit({
    gitDir,
    settings: durable ? [] : NOT_DURABLE,
    // The last option makes it follow every link, and exit with 1 where some lead out of the pack, as they do in a thin one.
    arguments: [
      'index-pack',
      '--stdin',
      '--fix-thin',
      `--max-input-size=${MAX_PACK_BYTES}`,
      '--check-self-contained-and-connected',
      file,
    ],
  });
  const stderr = collectStderr(child);
  let output = '';
  child.stdout?.setEncoding('latin1').on('data', (text: string) => {
    if (output.length < 1000) output += text;
  });
  const ended = endOf(child);
  const stop = () => endGroup(child, clock);
  signal.addEventListener('abort', stop, { once: true });
  let failure: unknown;
  const source = async function* () {
    const reading = pack[Symbol.asyncIterator]();
    // Not by a loop over `pack`: that would take an early end of the process, which the stream throws in here, for its error.
    const next = () =>
      reading.next().catch((error: unknown) => {
        failure = error;
        stop();
        throw error;
      });
    try {
      for (let piece = await next(); piece.done !== true; piece = await next()) yield piece.value;
    } finally {
      await reading.return?.();
    }
  };
  if (child.stdin !== null)
    await pipeline(Readable.from(source(), { objectMode: false }), child.stdin).catch(() => {
      // The source's error is kept; if the process ended early, its standard error has the reason.
    });
  const code = await ended.finally(() => signal.removeEventListener('abort', stop));
  signal.throwIfAborted();
  if (failure !== undefined) throw failure;
  const name = /^pack\t([0-9a-f]{40})/.exec(output)?.[1];
  if ((code === 0 || code === 1) && name !== undefined) return name;
  const detail = cleanText(stderr(), 500);
  if (isDiskFullMessage(detail)) throw diskFull(gitDir, detail);
  if (detail.includes('exceeds maximum allowed size'))
    throw new SluiceError(
      'LimitExceeded',
      `cannot receive a pack of more than ${MAX_PACK_BYTES} bytes: the repository is too large for Sluice`,
    );
  throw new SluiceError('Unavailable', `cannot use the pack that a remote sent: ${detail}`);
}

/**
 * Streams a thin pack of all objects that are reachable from some objects and not from others. Ending the iteration
 * ends git.
 */
export async function* streamPack(
  gitDir: string,
  tips: readonly Oid[],
  known: readonly Oid[],
): AsyncGenerator<Uint8Array> {
  const child = spawnGit({
    gitDir,
    arguments: ['pack-objects', '--revs', '--thin', '--stdout', '--delta-base-offset', '--quiet'],
  });
  const stderr = collectStderr(child);
  const ended = endOf(child);
  ended.catch(() => undefined);
  try {
    child.stdin?.on('error', () => {
      // It ended without reading all; its exit code has the reason.
    });
    child.stdin?.end(`${tips.join('\n')}\n${known.map((oid) => `^${oid}\n`).join('')}`);
    if (child.stdout !== null) yield* child.stdout as AsyncIterable<Uint8Array>;
    if ((await ended) !== 0) throw new SluiceError('Internal', `git pack-objects failed: ${cleanText(stderr(), 500)}`);
  } finally {
    killGroup(child);
  }
}

function endOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('error', (cause) => reject(startError(cause)));
    child.on('close', (code) => resolve(code ?? -1));
  });
}
