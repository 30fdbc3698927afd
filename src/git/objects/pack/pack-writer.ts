import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import type { ObjectType, Oid } from '../../git-repository.ts';
import { spliceDelta } from './splice-delta.ts';

export interface PackedObject {
  readonly type: ObjectType;
  readonly data: Uint8Array;
  /** An object of the same type that the reader has, or that comes before in the pack. */
  readonly base?: { readonly oid: Oid; readonly data: Uint8Array } | undefined;
}

const TYPES: Readonly<Record<ObjectType, number>> = { commit: 1, tree: 2, blob: 3, tag: 4 };
const REF_DELTA = 7;
const VERSION = 2;
/** Speed matters more than size. */
const LEVEL = 1;
/** Bytes that compressed data of any length may exceed the data by, mostly. */
const OVERHEAD_BYTES = 64;
const MAX_CHUNK_BYTES = 64 * 1024;

/** A pack, and where in it the entry of each object begins. */
export interface WrittenPack {
  readonly bytes: Buffer;
  readonly offsets: readonly number[];
}

/** Writes a pack, thin where objects have a base. The caller limits its size, since it is created in memory. */
export async function writePack(objects: readonly PackedObject[]): Promise<WrittenPack> {
  const header = Buffer.from('PACK\0\0\0\0\0\0\0\0', 'latin1');
  header.writeUInt32BE(VERSION, 4);
  header.writeUInt32BE(objects.length, 8);
  const parts: Buffer[] = [header];
  const offsets: number[] = [];
  let end = header.length;
  const add = (...entry: readonly Buffer[]) => {
    offsets.push(end);
    for (const part of entry) end += part.length;
    parts.push(...entry);
  };
  await inSlices(objects, ({ type, data, base }) => {
    const delta = base === undefined ? undefined : spliceDelta(base.data, data);
    if (base !== undefined && delta !== undefined && delta.length < data.length / 2)
      add(entryHeader(REF_DELTA, delta.length), Buffer.from(base.oid, 'hex'), compress(delta));
    else add(entryHeader(TYPES[type], data.length), compress(data));
  });
  const hash = createHash('sha1');
  for (const part of parts) hash.update(part);
  parts.push(hash.digest());
  return { bytes: Buffer.concat(parts), offsets };
}

/** By default each result would hold 16 KiB of memory, also for a tree of one entry, and allocating that takes longer than compressing. */
function compress(data: Uint8Array): Buffer {
  const chunkSize = Math.min(data.length + OVERHEAD_BYTES, MAX_CHUNK_BYTES);
  return deflateSync(data, { level: LEVEL, chunkSize });
}

/** Type and size: four bits of the size in the first byte, seven in each further one. */
function entryHeader(type: number, size: number): Buffer {
  const bytes: number[] = [];
  let byte = (type << 4) | (size & 0x0f);
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(byte | 0x80);
    byte = rest & 0x7f;
  }
  bytes.push(byte);
  return Buffer.from(bytes);
}
