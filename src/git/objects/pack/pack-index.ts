import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid } from '../../git-repository.ts';

/** The first bytes of a file of version 2. */
const HEADER = Buffer.from([0xff, 0x74, 0x4f, 0x63, 0, 0, 0, 2]);
const CHECKSUM_BYTES = 20;
/** From this size on, offsets would need the table for 64-bit offsets. */
const MAX_PACK_BYTES = 2 ** 31;

/**
 * The index of a pack: the ids in order, and for each the checksum of its entry and where that begins. `offsets` are those of the
 * objects, in the order in which they are in the pack. Throws LimitExceeded from 2 GiB on.
 */
export function encodePackIndex(
  objects: readonly { readonly oid: Oid }[],
  pack: Buffer,
  offsets: readonly number[],
): Buffer {
  if (pack.length >= MAX_PACK_BYTES)
    throw new SluiceError('LimitExceeded', `a pack of ${pack.length} bytes is too large`);
  const entries = objects
    .map(({ oid }, position) => {
      const offset = offsets[position] ?? 0;
      return { oid, offset, crc: crc32(pack.subarray(offset, offsets[position + 1] ?? pack.length - CHECKSUM_BYTES)) };
    })
    .sort((a, b) => (a.oid < b.oid ? -1 : 1));
  const fanOut = Buffer.alloc(256 * 4);
  const ids = Buffer.alloc(entries.length * 20);
  const checksums = Buffer.alloc(entries.length * 4);
  const places = Buffer.alloc(entries.length * 4);
  const upTo = new Uint32Array(256);
  for (const [position, { oid, offset, crc }] of entries.entries()) {
    ids.write(oid, position * 20, 'hex');
    checksums.writeUInt32BE(crc, position * 4);
    places.writeUInt32BE(offset, position * 4);
    upTo[ids[position * 20] ?? 0] = position + 1;
  }
  let count = 0;
  for (const [byte, last] of upTo.entries()) {
    count = Math.max(count, last);
    fanOut.writeUInt32BE(count, byte * 4);
  }
  const index = Buffer.concat([HEADER, fanOut, ids, checksums, places, pack.subarray(-CHECKSUM_BYTES)]);
  return Buffer.concat([index, createHash('sha1').update(index).digest()]);
}
