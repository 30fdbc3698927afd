import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Kptfile } from '../../../kptfile-schema/index.ts';
import type { Oid } from '../../git/git-repository.ts';
import type { CommitInfo } from '../package-revision.ts';
import type { RevisionRecord } from '../record.ts';

/** A Kptfile as read, or why it cannot be. */
export type KptfileFact =
  | { readonly kptfile: Kptfile; readonly problem?: undefined }
  | { readonly kptfile?: undefined; readonly problem: string };

/** A package found on the main branch. */
export interface FolderFact {
  readonly path: string;
  readonly tree: Oid;
  readonly kptfileBlob: Oid;
}

/**
 * What was read from Git objects. Objects never change, so an entry is never stale; a missing one is only slower. The file can be
 * deleted at any time, and a damaged one is worth no more than none.
 */
export class FactCache {
  /** By `<commit>:<package folder>`. */
  readonly commits = new Map<string, CommitInfo>();
  /** By blob. */
  readonly kptfiles = new Map<Oid, KptfileFact>();
  /** By record commit; null for one that cannot be read. */
  readonly records = new Map<Oid, RevisionRecord | null>();
  /** By tree of a package folder on the main branch: the Kptfile in it. */
  readonly folders = new Map<Oid, Oid>();

  /** Number of entries. */
  get size(): number {
    return this.commits.size + this.kptfiles.size + this.records.size + this.folders.size;
  }

  /** Drops everything but what another cache holds. */
  keepOnly(other: FactCache): void {
    refill(this.commits, other.commits);
    refill(this.kptfiles, other.kptfiles);
    refill(this.records, other.records);
    refill(this.folders, other.folders);
  }
}

function refill<Value>(map: Map<string, Value>, entries: ReadonlyMap<string, Value>): void {
  map.clear();
  for (const [key, value] of entries) map.set(key, value);
}

/** Changes with the meaning of an entry; files of another version are not read. */
const HEADER = Buffer.from('sluice-index 2\n');
/** Characters that are written, and lines that are read, before others get their turn. */
const CHUNK = 256 * 1024;
const SLICE = 512;

type Line = ['c', string, CommitInfo] | ['k', Oid, KptfileFact] | ['r', Oid, RevisionRecord | null] | ['f', Oid, Oid];

/** Reads a cache file; an absent or damaged one gives an empty cache and the reason. */
export async function loadFactCache(file: string): Promise<{ cache: FactCache; note: string | undefined }> {
  const cache = new FactCache();
  let data: Buffer;
  try {
    data = await readFile(file);
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return { cache, note: absent ? undefined : `index cache not readable, rebuilt: ${String(error)}` };
  }
  // A damaged cache must not show revisions that are not there, so the whole is checked before a line of it counts.
  const end = data.length - lastLine('').length;
  const sum = createHash('sha256').update(data.subarray(0, end)).digest('hex');
  if (!data.subarray(0, HEADER.length).equals(HEADER) || data.toString('latin1', end) !== lastLine(sum)) {
    return { cache, note: 'index cache of another version or damaged, rebuilt' };
  }
  let start = HEADER.length;
  for (let lines = 1; start < end; lines++) {
    const stop = data.indexOf('\n', start);
    put(cache, JSON.parse(data.toString('utf8', start, stop)) as Line);
    start = stop + 1;
    if (lines % SLICE === 0) await setImmediate();
  }
  return { cache, note: undefined };
}

/** The checksum of all before, with a line of its own. */
function lastLine(sum: string): string {
  return `sum ${sum.padEnd(64)}\n`;
}

function put(cache: FactCache, line: Line): void {
  switch (line[0]) {
    case 'c':
      cache.commits.set(line[1], line[2]);
      break;
    case 'k':
      cache.kptfiles.set(line[1], line[2]);
      break;
    case 'r':
      cache.records.set(line[1], line[2]);
      break;
    case 'f':
      cache.folders.set(line[1], line[2]);
      break;
  }
}

function* linesOf(cache: FactCache): Generator<Line> {
  for (const [key, value] of cache.commits) yield ['c', key, value];
  for (const [key, value] of cache.kptfiles) yield ['k', key, value];
  for (const [key, value] of cache.records) yield ['r', key, value];
  for (const [key, value] of cache.folders) yield ['f', key, value];
}

/** Writes the cache beside and renames it into place, so that a reader never sees half of it. It must not change meanwhile. */
export async function saveFactCache(file: string, cache: FactCache): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      const hash = createHash('sha256');
      let chunk = HEADER.toString();
      for (const line of linesOf(cache)) {
        chunk += `${JSON.stringify(line)}\n`;
        if (chunk.length < CHUNK) continue;
        hash.update(chunk);
        await handle.appendFile(chunk);
        chunk = '';
      }
      await handle.appendFile(chunk + lastLine(hash.update(chunk).digest('hex')));
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
