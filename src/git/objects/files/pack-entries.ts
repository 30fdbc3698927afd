import { inflateSync } from 'node:zlib';
import { messageOf } from '../../../foundation/sluice-error.ts';
import type { ObjectType, Oid } from '../../git-repository.ts';
import { MAX_OBJECT_BYTES } from '../object-source.ts';

const TYPES: Readonly<Record<number, ObjectType>> = { 1: 'commit', 2: 'tree', 3: 'blob', 4: 'tag' };
const OFFSET_DELTA = 6;
const REF_DELTA = 7;
const OID_BYTES = 20;
const MAX_ZLIB_HEADER_BYTES = 64;

/** The pack violates its format, or a limit. The message completes a sentence that begins with "the pack". */
export class PackFormatError extends Error {
  /** True for an object that may be well formed, and is above MAX_OBJECT_BYTES. */
  readonly isTooLarge: boolean;

  constructor(message: string, isTooLarge = false) {
    super(message);
    this.isTooLarge = isTooLarge;
  }
}

function tooLarge(): PackFormatError {
  return new PackFormatError(`has an object of more than ${MAX_OBJECT_BYTES} bytes`, true);
}

/** One entry of a pack, without its content: that is inflated when it is needed, so that not all of it is in memory at once. */
export interface PackEntry {
  readonly offset: number;
  /** Start and end of the compressed content. */
  readonly start: number;
  readonly end: number;
  /** Bytes of the inflated content. */
  readonly size: number;
  /** The type of a whole object, or what a delta applies to: the offset of an entry before, or an object id. */
  readonly kind: ObjectType | { readonly offset: number } | { readonly oid: Oid };
}

/** Reads the entry at `offset`. `limit` is where the entries of the pack end. Throws PackFormatError. */
export function readEntry(pack: Buffer, offset: number, limit: number): { entry: PackEntry; content: Buffer } {
  const reader = new ByteReader(pack, offset, limit);
  const first = reader.next();
  const type = (first >> 4) & 7;
  let size = first & 0x0f;
  let more = first & 0x80;
  for (let scale = 16; more !== 0; scale *= 128) {
    const byte = reader.next();
    size += (byte & 0x7f) * scale;
    more = byte & 0x80;
    // Also ends the loop for a size that has no end.
    if (size > MAX_OBJECT_BYTES || scale > MAX_OBJECT_BYTES) throw tooLarge();
  }
  let kind: PackEntry['kind'] | undefined = TYPES[type];
  if (type === OFFSET_DELTA) kind = { offset: offset - reader.distance(offset) };
  if (type === REF_DELTA) kind = { oid: reader.oid() };
  if (kind === undefined) throw new PackFormatError(`has an entry of the unknown type ${type} at byte ${offset}`);
  const { content, consumed } = inflate(pack.subarray(reader.at, limit), size, offset);
  const end = reader.at + consumed;
  return { entry: { offset, start: reader.at, end, size, kind }, content };
}

/** The content of an entry that was read before. */
export function contentOf(pack: Buffer, { start, end, size, offset }: PackEntry): Buffer {
  return inflate(pack.subarray(start, end), size, offset).content;
}

/** Applies a delta in Git's format. Throws PackFormatError, also for a result above MAX_OBJECT_BYTES. */
export function applyDelta(base: Buffer, delta: Buffer): Buffer {
  const reader = new ByteReader(delta, 0, delta.length);
  const baseSize = reader.number();
  const size = reader.number();
  if (baseSize !== base.length) throw new PackFormatError('has a delta for an object of another size');
  if (size > MAX_OBJECT_BYTES) throw tooLarge();
  const result = Buffer.allocUnsafe(size);
  let at = 0;
  while (reader.at < delta.length) {
    const command = reader.next();
    const isCopy = (command & 0x80) !== 0;
    const from = isCopy ? reader.masked(command & 0x0f) : reader.at;
    const length = isCopy ? reader.masked((command >> 4) & 0x07) || 0x10000 : command;
    const source = isCopy ? base : delta;
    if (length === 0 || at + length > size || from + length > source.length)
      throw new PackFormatError('has a delta that copies what does not exist');
    source.copy(result, at, from, from + length);
    at += length;
    if (!isCopy) reader.at += length;
  }
  if (at !== size) throw new PackFormatError('has a delta that ends too early');
  return result;
}

function inflate(data: Buffer, size: number, offset: number): { content: Buffer; consumed: number } {
  try {
    // No more is inflated than was announced: a small entry cannot fill the memory. `info` also returns how much was read.
    const { buffer, engine } = inflateSync(data.subarray(0, size * 2 + 4096 + MAX_ZLIB_HEADER_BYTES), {
      maxOutputLength: Math.max(size, 1),
      info: true,
    }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
    if (buffer.length === size) return { content: buffer, consumed: engine.bytesWritten };
  } catch (error) {
    throw new PackFormatError(`has an entry at byte ${offset} that cannot be inflated (${messageOf(error)})`);
  }
  throw new PackFormatError(`has an entry at byte ${offset} of another size than it announces`);
}

class ByteReader {
  at: number;
  readonly #data: Buffer;
  readonly #limit: number;

  constructor(data: Buffer, at: number, limit: number) {
    this.#data = data;
    this.at = at;
    this.#limit = limit;
  }

  next(): number {
    const byte = this.at < this.#limit ? this.#data[this.at] : undefined;
    if (byte === undefined) throw new PackFormatError('ends in the middle of an entry');
    this.at += 1;
    return byte;
  }

  /** Seven bits in each byte, the lowest first. */
  number(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.next();
      value += (byte & 0x7f) * scale;
      if ((byte & 0x80) === 0) return value;
      if (scale > MAX_OBJECT_BYTES) throw tooLarge();
    }
  }

  /** One byte, the lowest first, for each bit that is set. */
  masked(bits: number): number {
    let value = 0;
    for (let bit = 0; bit < 4; bit += 1) if ((bits & (1 << bit)) !== 0) value += this.next() * 2 ** (8 * bit);
    return value;
  }

  /**
   * Reads the distance from a delta back to its base: seven bits in each byte, the highest first, plus one for each further
   * byte.
   */
  distance(offset: number): number {
    let byte = this.next();
    let value = byte & 0x7f;
    while ((byte & 0x80) !== 0) {
      byte = this.next();
      value = (value + 1) * 128 + (byte & 0x7f);
      if (value > offset) break;
    }
    if (value <= 0 || value >= offset) throw new PackFormatError('has a delta whose base is not in the pack');
    return value;
  }

  oid(): Oid {
    const oid = this.#data.toString('hex', this.at, this.at + OID_BYTES);
    this.at += OID_BYTES;
    if (this.at > this.#limit) throw new PackFormatError('ends in the middle of an entry');
    return oid;
  }
}
