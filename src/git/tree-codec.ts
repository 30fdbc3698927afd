import { SluiceError } from '../foundation/sluice-error.ts';
import type { FileMode, Oid, TreeEntry } from './git-repository.ts';

/** One entry as stored. The name is kept as bytes (in a latin1 string), because a name need not be UTF-8. */
export interface RawTreeEntry {
  readonly mode: FileMode;
  /** One UTF-16 code unit for each byte of the name. */
  readonly rawName: string;
  readonly oid: Oid;
  /** The stored bytes of the entry, so that entries nobody edits are written back as they were. */
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
const LONGEST_MODE = 6;

/**
 * The entries of a tree object. Throws Corrupt for anything Git itself would not write: unknown modes, empty names, names with
 * `/`, duplicates, wrong order, truncation. Any other name is data, also `..`, `.git` and names with line feeds or escapes.
 */
export function parseTree(data: Buffer, oid: Oid): RawTreeEntry[] {
  const entries: RawTreeEntry[] = [];
  const names = new Set<string>();
  let previous = '';
  let at = 0;
  while (at < data.length) {
    const space = data.indexOf(SPACE, at);
    const end = space < 0 || space - at > LONGEST_MODE ? -1 : data.indexOf(0, space);
    if (end < 0 || end + OID_BYTES >= data.length) throw corrupt(oid, 'it is cut off or has a malformed entry');
    const storedMode = data.toString('latin1', at, space);
    const mode = MODES.get(storedMode);
    const rawName = data.toString('latin1', space + 1, end);
    if (mode === undefined) throw corrupt(oid, `${shown(rawName)} has the mode ${shown(storedMode)}`);
    if (rawName === '' || rawName.includes('/')) throw corrupt(oid, `${shown(rawName)} is not a name`);
    const key = sortKey(mode, rawName);
    if (names.has(rawName)) throw corrupt(oid, `${shown(rawName)} is there twice`);
    if (key <= previous) throw corrupt(oid, `${shown(rawName)} is not in order`);
    names.add(rawName);
    previous = key;
    const next = end + 1 + OID_BYTES;
    entries.push({ mode, rawName, oid: data.toString('hex', end + 1, next), bytes: data.subarray(at, next) });
    at = next;
  }
  return entries;
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
  const sorted = [...entries].sort((a, b) => (sortKey(a.mode, a.rawName) < sortKey(b.mode, b.rawName) ? -1 : 1));
  return Buffer.concat(sorted.map((entry) => entry.bytes));
}

/** The entry for callers. A name that is not UTF-8 gets replacement characters, so it cannot be looked up by its path. */
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
function sortKey(mode: FileMode, rawName: string): string {
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
