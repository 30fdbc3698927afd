import { commonPrefix, commonSuffix } from './common-bytes.ts';

const MAX_INSERT_BYTES = 127;
const MAX_COPY_BYTES = 0xff_ff_ff;

/**
 * Creates a delta in Git's format for bytes that differ in one range, as trees with one changed entry do: copy the bytes before it,
 * insert the new ones, copy the bytes after it.
 */
export function spliceDelta(base: Uint8Array, target: Uint8Array): Buffer {
  const most = Math.min(base.length, target.length);
  const before = commonPrefix(base, target, most);
  const behind = commonSuffix(base, target, most - before);
  const parts = [variableLength(base.length), variableLength(target.length)];
  pushCopies(parts, 0, before);
  const end = target.length - behind;
  for (let at = before; at < end; at += MAX_INSERT_BYTES) {
    const next = Math.min(at + MAX_INSERT_BYTES, end);
    parts.push(Buffer.from([next - at]), Buffer.from(target.subarray(at, next)));
  }
  pushCopies(parts, base.length - behind, behind);
  return Buffer.concat(parts);
}

function pushCopies(parts: Buffer[], from: number, size: number): void {
  for (let offset = from, left = size; left > 0; ) {
    const length = Math.min(left, MAX_COPY_BYTES);
    const copy = Buffer.alloc(8, 0xff);
    copy.writeUInt32LE(offset, 1);
    copy.writeUIntLE(length, 5, 3);
    parts.push(copy);
    offset += length;
    left -= length;
  }
}

function variableLength(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  do {
    const more = rest > 0x7f;
    bytes.push((rest & 0x7f) | (more ? 0x80 : 0));
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  return Buffer.from(bytes);
}
