import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { DamageError, HOW_TO_REPAIR } from '../errors.ts';
import type { FileMode, Oid, TreeEntry } from '../git-repository.ts';
import { hashObject } from './object-id.ts';

/** One entry as stored. The name is kept as bytes (in a latin1 string), because a name need not be UTF-8. */
export interface RawTreeEntry {
  readonly mode: FileMode;
  /** One UTF-16 code unit for each byte of the name. */
  readonly rawName: string;
  readonly oid: Oid;
  /** The stored bytes of the entry, so that unchanged entries are written back as they were. */
  readonly bytes: Buffer;
}

/** Modes that Git writes, and one of other implementations. */
const MODES = new Map<string, FileMode>([
  ['40000', '040000'],
  ['040000', '040000'],
  ['100644', '100644'],
  ['100755', '100755'],
  ['120000', '120000'],
  ['160000', '160000'],
]);

const SPACE = 0x20;
const OID_BYTES = 20;
/** Git reads modes with any number of leading zeros. */
const MAX_MODE_DIGITS = 12;

/**
 * What a stored mode means, as Git reads it (`canon_mode` in its cache.h): a regular file is executable or not by the bit of its owner, and
 * what is neither file, link nor folder is a submodule. Git does not write `100664` or `100640`, yet servers accept it, also those that check
 * objects. Undefined for a text that is no mode.
 *
 * The stored bytes of an entry stay as they are wherever a tree is copied or edited beside it: a package keeps the id of its tree from its
 * draft to its publication, which proposals, approvals and statements name.
 */
function modeOf(stored: string): FileMode | undefined {
  const known = MODES.get(stored);
  if (known !== undefined || !/^[0-7]+$/.test(stored)) return known;
  const mode = Number.parseInt(stored.slice(-6), 8);
  switch (mode & 0o170000) {
    case 0o100000:
      return (mode & 0o100) === 0 ? '100644' : '100755';
    case 0o120000:
      return '120000';
    case 0o040000:
      return '040000';
    default:
      return '160000';
  }
}

/**
 * The entries of a tree object. Throws Corrupt for what Git would not write and tools read in different ways: no modes, empty names, names with
 * `/`, duplicates, wrong order, truncation. Any other name is data, also `..`, `.git` and names with line feeds or escapes. `oid` is empty
 * for a part of a tree: if the data is not that of its id, the error is a DamageError.
 */
export function parseTree(data: Buffer, oid: Oid): RawTreeEntry[] {
  return Array.from(placesIn(data, oid), (place) => entryAt(data, place));
}

/**
 * The objects that a tree refers to, in any order and under any name: what a pack must contain or the repository have. The commit of a
 * submodule is in another repository. Throws Corrupt for data that is no tree.
 */
export function linksOfTree(data: Buffer, oid: Oid): Oid[] {
  const links: Oid[] = [];
  for (const { mode, end } of storedPlaces(data, oid))
    if (mode !== '160000') links.push(data.toString('hex', end - OID_BYTES, end));
  return links;
}

/** The place of an entry. The same object is reused for each. */
interface Place {
  mode: FileMode;
  rawName: string;
  start: number;
  end: number;
}

/** The entries as they are stored. */
function* storedPlaces(data: Buffer, oid: Oid): Generator<Readonly<Place>, void> {
  const place: Place = { mode: '100644', rawName: '', start: 0, end: 0 };
  for (let at = 0; at < data.length; at = place.end) {
    const space = data.indexOf(SPACE, at);
    const end = space < 0 || space - at > MAX_MODE_DIGITS ? -1 : data.indexOf(0, space);
    if (end < 0 || end + OID_BYTES >= data.length) throw corrupt(data, oid, 'it is cut off or has a malformed entry');
    const storedMode = data.toString('latin1', at, space);
    const mode = modeOf(storedMode);
    const rawName = data.toString('latin1', space + 1, end);
    if (mode === undefined) throw corrupt(data, oid, `${shown(rawName)} has the mode ${shown(storedMode)}`);
    place.mode = mode;
    place.rawName = rawName;
    place.start = at;
    place.end = end + 1 + OID_BYTES;
    yield place;
  }
}

function* placesIn(data: Buffer, oid: Oid): Generator<Readonly<Place>, void> {
  const before = { mode: '100644' as FileMode, rawName: '' };
  /** Files that a folder of the same name can still come after, the longest last: the names between them begin with theirs. */
  const files: string[] = [];
  for (const place of storedPlaces(data, oid)) {
    const { mode, rawName } = place;
    if (rawName === '' || rawName.includes('/')) throw corrupt(data, oid, `${shown(rawName)} is not a name`);
    if (place.start > 0 && !isBefore(before, place)) throw corrupt(data, oid, `${shown(rawName)} is not in order`);
    while (files.length > 0 && !rawName.startsWith(files.at(-1) ?? '')) files.pop();
    if (files.at(-1) === rawName) throw corrupt(data, oid, `${shown(rawName)} occurs twice`);
    if (mode !== '040000') files.push(rawName);
    before.mode = mode;
    before.rawName = rawName;
    yield place;
  }
}

function entryAt(data: Buffer, { mode, rawName, start, end }: Place): RawTreeEntry {
  return { mode, rawName, oid: data.toString('hex', end - OID_BYTES, end), bytes: data.subarray(start, end) };
}

/** Reads the entries with some names; skips all others, of which there may be tens of thousands. */
export function pickEntries(
  data: Buffer,
  oid: Oid,
  names: { has(rawName: string): boolean },
): Map<string, RawTreeEntry> {
  const found = new Map<string, RawTreeEntry>();
  for (const place of placesIn(data, oid)) if (names.has(place.rawName)) found.set(place.rawName, entryAt(data, place));
  return found;
}

/**
 * The entry with a name. Undefined in a malformed tree too: Git does not find all of its entries, and only its writer can repair it. Throws
 * DamageError if the data is not that of its id.
 */
export function entryIn(data: Buffer, oid: Oid, rawName: string): RawTreeEntry | undefined {
  try {
    return pickEntries(data, oid, new Set([rawName])).get(rawName);
  } catch (error) {
    if (error instanceof DamageError || !isSluiceError(error, 'Corrupt')) throw error;
    return undefined;
  }
}

/** Replaces, adds or (undefined) removes entries of a tree, by name. All other entries are copied unchanged. */
export function spliceTree(data: Buffer, oid: Oid, changes: ReadonlyMap<string, RawTreeEntry | undefined>): Buffer {
  const added = [...changes.values()].filter((entry) => entry !== undefined).sort((a, b) => (isBefore(a, b) ? -1 : 1));
  const parts: Uint8Array[] = [];
  let kept = 0;
  let next = added[0];
  let count = 0;
  for (const place of placesIn(data, oid)) {
    for (; next !== undefined && isBefore(next, place); next = added[++count]) {
      parts.push(data.subarray(kept, place.start), next.bytes);
      kept = place.start;
    }
    if (!changes.has(place.rawName)) continue;
    parts.push(data.subarray(kept, place.start));
    kept = place.end;
  }
  parts.push(data.subarray(kept), ...added.slice(count).map(({ bytes }) => bytes));
  return Buffer.concat(parts);
}

/** One entry of a tree that is known to be well formed, found without parsing all of it. */
export function findEntry(data: Uint8Array, rawName: string): Pick<RawTreeEntry, 'mode' | 'oid'> | undefined {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
  const wanted = Buffer.from(rawName, 'latin1');
  for (let at = 0; at < bytes.length; ) {
    const name = bytes.indexOf(SPACE, at) + 1;
    const end = bytes.indexOf(0, name);
    const next = end + 1 + OID_BYTES;
    if (end - name === wanted.length && bytes.compare(wanted, 0, wanted.length, name, end) === 0) {
      const mode = modeOf(bytes.toString('latin1', at, name - 1));
      return mode === undefined ? undefined : { mode, oid: bytes.toString('hex', end + 1, next) };
    }
    at = next;
  }
  return undefined;
}

/** An entry made from its parts. */
export function rawEntry(mode: FileMode, rawName: string, oid: Oid): RawTreeEntry {
  const head = Buffer.from(`${mode === '040000' ? '40000' : mode} ${rawName}\0`, 'latin1');
  return { mode, rawName, oid, bytes: Buffer.concat([head, Buffer.from(oid, 'hex')]) };
}

/** A tree object from entries in any order. Names must be unique; the caller has checked them. */
export function encodeTree(entries: Iterable<RawTreeEntry>): Buffer {
  return spliceTree(Buffer.alloc(0), '', new Map(Array.from(entries, (entry) => [entry.rawName, entry])));
}

/**
 * Converts an entry for callers. A name that is not UTF-8 contains replacement characters, so it cannot be looked up by
 * its path.
 */
export function decodeEntry(entry: RawTreeEntry): TreeEntry {
  return { mode: entry.mode, name: decodeName(entry.rawName), oid: entry.oid };
}

export function decodeName(rawName: string): string {
  return isAscii(rawName) ? rawName : Buffer.from(rawName, 'latin1').toString('utf8');
}

export function encodeName(name: string): string {
  return isAscii(name) ? name : Buffer.from(name, 'utf8').toString('latin1');
}

/** Git sorts entries by their bytes, and folders as if their name ended with a slash. */
function isBefore(a: Pick<Place, 'mode' | 'rawName'>, b: Pick<Place, 'mode' | 'rawName'>): boolean {
  // The slash counts only where one name begins with the other.
  if (a.rawName < b.rawName ? !b.rawName.startsWith(a.rawName) : !a.rawName.startsWith(b.rawName))
    return a.rawName < b.rawName;
  return sortKey(a) < sortKey(b);
}

function sortKey({ mode, rawName }: Pick<Place, 'mode' | 'rawName'>): string {
  return mode === '040000' ? `${rawName}/` : rawName;
}

function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text);
}

function shown(rawName: string): string {
  return JSON.stringify(decodeName(rawName).slice(0, 200));
}

/** Data of another id was damaged where it is stored; data of its id was made so by its writer, as any user who may push can. */
function corrupt(data: Buffer, oid: Oid, why: string): SluiceError {
  if (oid !== '' && hashObject('tree', data) !== oid)
    return new DamageError(`tree ${oid} is damaged: ${why}. ${HOW_TO_REPAIR}`);
  const what = oid === '' ? 'a tree' : `tree ${oid}`;
  return new SluiceError('Corrupt', `${what} is malformed: ${why}. Commit its files again with git`);
}
