import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { yieldToEventLoop } from '../../../foundation/concurrency/in-slices.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { RecordStatement, RevisionRecord } from '../../model/record/record.ts';
import type { Signer } from '../../trust/repository-trust.ts';
import type { SignedStatement } from '../../trust/statement/statement.ts';
import type { Origin } from './candidate.ts';
import { FactCache, type FolderFact } from './fact-cache.ts';
import { KptfileFact } from './kptfile-fact.ts';
import { LazyJson } from './lazy-json.ts';
import { RecordFact } from './record-fact.ts';
import { TipFact } from './tip-fact.ts';

/** Changes with the format and with the rules for publications; files of another version are not read. */
const VERSION = 'sluice-index 7';
/** Bytes that are written or read before yielding: a few milliseconds of work. */
const CHUNK = 256 * 1024;
/** A file of this size would be of a million revisions. */
const MAX_BYTES = 2 ** 31 - 1;

/**
 * A line begins with a letter for its type. Most lines are Kptfiles and refs; only their fixed-width fields are parsed, and their
 * JSON stays unparsed in the file buffer until it is needed.
 */
const KPTFILE = 'k'.charCodeAt(0);
const SHOWN = 's'.charCodeAt(0);
const MAIN = 'm'.charCodeAt(0);
const TAB = '\t'.charCodeAt(0);
const OID_LENGTH = 40;
const UID_LENGTH = 36;
const NO_OID = '-'.repeat(OID_LENGTH);

interface SavedRecord {
  /** Of a record without a statement. */
  readonly record?: RevisionRecord;
  readonly signed?: SignedStatement<RecordStatement>;
  readonly digest?: string | undefined;
  readonly signer?: string | null;
}

type Line = ['p', Oid, string] | ['r', Oid, SavedRecord | null] | ['f', FolderFact];

/** Reads a cache file; an absent or damaged one, or one of another place, gives an empty cache and the reason. */
export async function loadFactCache(
  file: string,
  origin: Origin,
): Promise<{ cache: FactCache; note: string | undefined }> {
  try {
    const cache = await readCache(file, headerOf(origin));
    if (cache !== undefined) return { cache, note: undefined };
    return { cache: new FactCache(), note: 'index cache of another version or damaged, rebuilt' };
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const note = absent ? undefined : `index cache not readable, rebuilt: ${String(error)}`;
    return { cache: new FactCache(), note };
  }
}

/** The facts are valid for this location only. */
function headerOf({ repository, namespace, layout, repositoryId }: Origin): string {
  return `${VERSION} ${JSON.stringify([repository, namespace, layout.branch, layout.directory, repositoryId])}\n`;
}

/**
 * Undefined if it is damaged: a damaged file must not produce revisions that do not exist, so no line counts unless the checksum
 * matches.
 */
async function readCache(file: string, header: string): Promise<FactCache | undefined> {
  const data = await readWhole(file);
  const start = Buffer.byteLength(header);
  const end = (data?.length ?? 0) - lastLine('').length;
  if (data === undefined || end < start || data.toString('utf8', 0, start) !== header) return undefined;
  const sum = createHash('sha256').update(data.subarray(0, start));
  const cache = new FactCache();
  for (let at = start; at < end; ) {
    const stop = Math.min(end, data.indexOf('\n', at + CHUNK) + 1 || end);
    sum.update(data.subarray(at, stop));
    if (!putLines(cache, data, at, stop)) return undefined;
    at = stop;
    await yieldToEventLoop();
  }
  return data.toString('latin1', end) === lastLine(sum.digest('hex')) ? cache : undefined;
}

/** In one piece, since what is read of it stays in use. */
async function readWhole(file: string): Promise<Buffer | undefined> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    if (size > MAX_BYTES) return undefined;
    const data = Buffer.allocUnsafeSlow(size);
    for (let at = 0; at < size; ) {
      const { bytesRead } = await handle.read(data, at, size - at, at);
      if (bytesRead === 0) return undefined;
      at += bytesRead;
    }
    return data;
  } finally {
    await handle.close();
  }
}

/** Takes whole lines in; false if one is none. */
function putLines(cache: FactCache, data: Buffer, start: number, end: number): boolean {
  try {
    for (let at = start; at < end; ) {
      const stop = data.indexOf('\n', at);
      if (stop === -1) return false;
      putLine(cache, data, at, stop);
      at = stop + 1;
    }
    return true;
  } catch {
    // The checksum would show it too, at the end.
    return false;
  }
}

function putLine(cache: FactCache, data: Buffer, start: number, stop: number): void {
  const first = start + 1;
  if (data[start] === SHOWN) putShown(cache, data, first, stop);
  else if (data[start] === KPTFILE) {
    const json = first + OID_LENGTH;
    cache.kptfiles.set(data.toString('latin1', first, json), KptfileFact.ofJson(new LazyJson(data, json, stop)));
  } else if (data[start] === MAIN)
    cache.main = { tip: tipAt(data, first, first + 3 * OID_LENGTH, stop), folders: new Map() };
  else {
    const line = JSON.parse(data.toString('utf8', start, stop)) as Line;
    if (line[0] === 'f') cache.main?.folders.set(line[1].path, line[1]);
    else if (line[0] === 'r') cache.records.set(line[1], savedRecord(line[2]));
    else cache.kptfiles.set(line[1], KptfileFact.ofProblem(line[2]));
  }
}

function putShown(cache: FactCache, data: Buffer, start: number, stop: number): void {
  const uid = start + OID_LENGTH;
  const tip = uid + UID_LENGTH;
  const ref = tip + 3 * OID_LENGTH;
  const workspace = data.indexOf(TAB, ref) + 1;
  const fault = data.indexOf(TAB, workspace) + 1;
  const signer = data.indexOf(TAB, fault) + 1;
  const text = data.indexOf(TAB, signer) + 1;
  const shown = tipAt(data, tip, text, stop);
  putMemos(shown, data.toString('latin1', signer, text - 1));
  cache.refFacts.set(data.toString('utf8', ref, workspace - 1), {
    oid: data.toString('latin1', start, uid),
    uid: data.toString('latin1', uid, tip),
    workspace: JSON.parse(data.toString('utf8', workspace, fault - 1)) as string,
    outOfBand: fault === signer - 1 ? undefined : new LazyJson(data, fault, signer - 1),
    tip: shown,
  });
}

function saved({ record, signed, digest, signer }: RecordFact): SavedRecord {
  if (signed === undefined) return { record };
  return signer === undefined ? { signed, digest } : { signed, digest, signer };
}

function savedRecord(saved: SavedRecord | null): RecordFact | null {
  const record = saved?.record ?? saved?.signed?.statement.record;
  return record === undefined
    ? null
    : new RecordFact({ record, signed: saved?.signed, digest: saved?.digest }, saved?.signer);
}

/** Encodes the check results of a tip's statement: `+` or `-` for the main branch, then the key, `!` for a bad signature. */
function memosOf({ signer, onMain }: TipFact): string {
  if (signer === undefined) return '';
  return `${onMain === undefined ? '?' : onMain ? '+' : '-'}${signer ?? '!'}`;
}

function putMemos(tip: TipFact, memos: string): void {
  if (memos === '') return;
  const signer: Signer = memos.slice(1) === '!' ? null : memos.slice(1);
  tip.signer = signer;
  if (memos[0] !== '?') tip.onMain = memos[0] === '+';
}

/** The ids of a tip are adjacent, its text follows later. */
function tipAt(data: Buffer, start: number, text: number, stop: number): TipFact {
  const tree = start + OID_LENGTH;
  const kptfile = tree + OID_LENGTH;
  const oid = data.toString('latin1', start, tree);
  return new TipFact(oid, oidAt(data, tree), oidAt(data, kptfile), new LazyJson(data, text, stop));
}

function oidAt(data: Buffer, start: number): Oid | undefined {
  const oid = data.toString('latin1', start, start + OID_LENGTH);
  return oid === NO_OID ? undefined : oid;
}

/** Returns the checksum of all previous lines, as a separate line. */
function lastLine(sum: string): string {
  return `sum ${sum.padEnd(64)}\n`;
}

function* linesOf(cache: FactCache): Generator<string> {
  const line = (...parts: Line) => JSON.stringify(parts);
  const ids = ({ oid, tree = NO_OID, kptfileBlob = NO_OID }: TipFact) => oid + tree + kptfileBlob;
  for (const [key, { json, problem = '' }] of cache.kptfiles)
    yield json === undefined ? line('p', key, problem) : `k${key}${json.text}`;
  for (const [key, fact] of cache.records) yield line('r', key, fact && saved(fact));
  for (const [ref, { oid, uid, workspace, outOfBand, tip }] of cache.refFacts) {
    yield `s${oid}${uid}${ids(tip)}${ref}\t${JSON.stringify(workspace)}\t${outOfBand?.text ?? ''}\t${memosOf(tip)}\t${tip.text.text}`;
  }
  if (cache.main === undefined) return;
  yield `m${ids(cache.main.tip)}${cache.main.tip.text.text}`;
  for (const folder of cache.main.folders.values()) yield line('f', folder);
}

/** Writes the cache beside and renames it into place, so that a reader never sees half of it. It must not change meanwhile. */
export async function saveFactCache(file: string, cache: FactCache, origin: Origin): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      const hash = createHash('sha256');
      let chunk = headerOf(origin);
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
