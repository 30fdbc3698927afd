import { createHash, randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Oid } from '../../git/git-repository.ts';
import type { CommitInfo } from '../package-revision.ts';
import type { RevisionRecord } from '../record.ts';
import { KptfileFact } from './kptfile-fact.ts';

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
  commits = new Map<string, CommitInfo>();
  /** By blob. */
  kptfiles = new Map<Oid, KptfileFact>();
  /** By record commit; null for one that cannot be read. */
  records = new Map<Oid, RevisionRecord | null>();
  /** By tree of a package folder on the main branch: the Kptfile in it. */
  folders = new Map<Oid, Oid>();

  /** Number of entries. */
  get size(): number {
    return this.commits.size + this.kptfiles.size + this.records.size + this.folders.size;
  }

  /** Drops everything but what another cache holds, which is then this one's. */
  keepOnly(other: FactCache): void {
    this.commits = other.commits;
    this.kptfiles = other.kptfiles;
    this.records = other.records;
    this.folders = other.folders;
  }
}

/** Changes with the meaning of an entry; files of another version are not read. */
const HEADER = Buffer.from('sluice-index 3\n');
/** Bytes that are written or read before others get their turn: a few milliseconds of work. */
const CHUNK = 256 * 1024;

/** A line begins with a letter for what it is; of those about Kptfiles, which are most of it, only the id is looked at. */
const KPTFILE = 'k'.charCodeAt(0);
const OID_LENGTH = 40;

type Line = ['c', string, CommitInfo] | ['p', Oid, string] | ['r', Oid, RevisionRecord | null] | ['f', Oid, Oid];

/** Reads a cache file; an absent or damaged one gives an empty cache and the reason. */
export async function loadFactCache(file: string): Promise<{ cache: FactCache; note: string | undefined }> {
  try {
    const cache = await readCache(file);
    if (cache !== undefined) return { cache, note: undefined };
    return { cache: new FactCache(), note: 'index cache of another version or damaged, rebuilt' };
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const note = absent ? undefined : `index cache not readable, rebuilt: ${String(error)}`;
    return { cache: new FactCache(), note };
  }
}

/** Undefined if it is damaged: it must not show revisions that are not there, so that no line counts unless all are as written. */
async function readCache(file: string): Promise<FactCache | undefined> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const end = size - lastLine('').length;
    const head = await readAt(handle, 0, HEADER.length);
    if (!head.equals(HEADER)) return undefined;
    const cache = new FactCache();
    const sum = createHash('sha256').update(head);
    let rest: Buffer = Buffer.alloc(0);
    for (let at = HEADER.length; at < end; ) {
      const chunk = await readAt(handle, at, Math.min(CHUNK, end - at));
      if (chunk.length === 0) return undefined;
      at += chunk.length;
      sum.update(chunk);
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const lines = data.lastIndexOf('\n') + 1;
      if (!putLines(cache, data.subarray(0, lines))) return undefined;
      rest = data.subarray(lines);
    }
    const last = await readAt(handle, end, size - end);
    return rest.length === 0 && last.toString('latin1') === lastLine(sum.digest('hex')) ? cache : undefined;
  } finally {
    await handle.close();
  }
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.allocUnsafe(length), position, length });
  return buffer.subarray(0, bytesRead);
}

/** Takes whole lines in; false if one is none. */
function putLines(cache: FactCache, data: Buffer): boolean {
  for (let start = 0; start < data.length; ) {
    const stop = data.indexOf('\n', start);
    if (data[start] === KPTFILE) {
      const json = start + 1 + OID_LENGTH;
      const blob = data.toString('latin1', start + 1, json);
      cache.kptfiles.set(blob, KptfileFact.ofJson(data.subarray(json, stop)));
    } else if (!put(cache, data.toString('utf8', start, stop))) return false;
    start = stop + 1;
  }
  return true;
}

/** The checksum of all before, with a line of its own. */
function lastLine(sum: string): string {
  return `sum ${sum.padEnd(64)}\n`;
}

function put(cache: FactCache, text: string): boolean {
  let line: Line;
  try {
    line = JSON.parse(text) as Line;
  } catch {
    // The checksum would say so too, at the end.
    return false;
  }
  switch (line[0]) {
    case 'c':
      cache.commits.set(line[1], line[2]);
      break;
    case 'p':
      cache.kptfiles.set(line[1], KptfileFact.ofProblem(line[2]));
      break;
    case 'r':
      cache.records.set(line[1], line[2]);
      break;
    case 'f':
      cache.folders.set(line[1], line[2]);
      break;
  }
  return true;
}

function* linesOf(cache: FactCache): Generator<string> {
  const line = (...parts: Line) => JSON.stringify(parts);
  for (const [key, value] of cache.commits) yield line('c', key, value);
  for (const [key, { json, problem = '' }] of cache.kptfiles)
    yield json === undefined ? line('p', key, problem) : `k${key}${json.toString('utf8')}`;
  for (const [key, value] of cache.records) yield line('r', key, value);
  for (const [key, value] of cache.folders) yield line('f', key, value);
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
        chunk += `${line}\n`;
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
