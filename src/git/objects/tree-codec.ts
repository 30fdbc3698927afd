import { SluiceError } from '../../foundation/sluice-error.ts';
import type { FileMode, Oid, TreeEntry } from '../git-repository.ts';

/** One entry as stored. The name is kept as bytes (in a latin1 string), because a name need not be UTF-8. */
export interface RawTreeEntry {
  readonly mode: FileMode;
  /** One UTF-16 code unit for each byte of the name. */
  readonly rawName: string;
  readonly oid: Oid;
  /** The stored bytes of the entry, so that unchanged entries are written back as they were. */
  readonly bytes: Buffer;
}

/**
 * Modes that Git reads, and what they mean. `100664` was written by very old versions of Git, `040000` by some other
 * implementations; both are still found in real history.
 */
const MODES = new Map<string, FileMode>([
  ['40000', '040000'],
  ['040000', '040000'],
  ['100644', '100644'],
  ['100664', '100644'],
  ['100755', '100755'],
  ['120000', '120000'],
  ['160000', '160000'],
]);

const SPACE = 0x20;
const OID_BYTES = 20;
const MAX_MODE_DIGITS = 6;

/**
 * The entries of a tree object. Throws Corrupt for anything Git itself would not write: unknown modes, empty names, names with
 * `/`, duplicates, wrong order, truncation. Any other name is data, also `..`, `.git` and names with line feeds or escapes.
 */
export function parseTree(data: Buffer, oid: Oid): RawTreeEntry[] {
  return Array.from(placesIn(data, oid), (place) => entryAt(data, place));
}

/** The place of an entry. The same object is reused for each. */
interface Place {
  mode: FileMode;
  rawName: string;
  start: number;
  end: number;
}

function* placesIn(data: Buffer, oid: Oid): Generator<Readonly<Place>, void> {
  const place: Place = { mode: '100644', rawName: '', start: 0, end: 0 };
  /** Files that a folder of the same name can still come after, the longest last: the names between them begin with theirs. */
  const files: string[] = [];
  for (let at = 0; at < data.length; at = place.end) {
    const space = data.indexOf(SPACE, at);
    const end = space < 0 || space - at > MAX_MODE_DIGITS ? -1 : data.indexOf(0, space);
    if (end < 0 || end + OID_BYTES >= data.length) throw corrupt(oid, 'it is cut off or has a malformed entry');
    const storedMode = data.toString('latin1', at, space);
    const mode = MODES.get(storedMode);
    const rawName = data.toString('latin1', space + 1, end);
    if (mode === undefined) throw corrupt(oid, `${shown(rawName)} has the mode ${shown(storedMode)}`);
    if (rawName === '' || rawName.includes('/')) throw corrupt(oid, `${shown(rawName)} is not a name`);
    if (at > 0 && !isBefore(place, { mode, rawName })) throw corrupt(oid, `${shown(rawName)} is not in order`);
    while (files.length > 0 && !rawName.startsWith(files.at(-1) ?? '')) files.pop();
    if (files.at(-1) === rawName) throw corrupt(oid, `${shown(rawName)} occurs twice`);
    if (mode !== '040000') files.push(rawName);
    place.mode = mode;
    place.rawName = rawName;
    place.start = at;
    place.end = end + 1 + OID_BYTES;
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
      const mode = MODES.get(bytes.toString('latin1', at, name - 1));
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

function corrupt(oid: Oid, why: string): SluiceError {
  return new SluiceError('Corrupt', `tree ${oid} is damaged: ${why}. Run "git fsck" in the repository`);
}
