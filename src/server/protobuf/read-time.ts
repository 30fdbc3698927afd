import { WireType } from '@bufbuild/protobuf/wire';
import { malformed, WireReader } from './wire-reader.ts';

/** 0001-01-01 and 9999-12-31, in seconds since 1970: what RFC 3339 can write. */
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;

/**
 * Reads a time as RFC 3339 in UTC, to the second or to the microsecond as Go's encoder writes it. An empty message means no
 * time, which is null in JSON.
 */
export function readTime(bytes: Uint8Array, precision: 'time' | 'microTime'): string | null {
  if (bytes.length === 0) return null;
  const { seconds, nanos } = parts(bytes);
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS || nanos < 0 || nanos > 999_999_999)
    throw malformed('a time is out of range');
  const upToSeconds = new Date(seconds * 1000).toISOString().slice(0, 19);
  if (precision === 'time') return `${upToSeconds}Z`;
  return `${upToSeconds}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z`;
}

function parts(bytes: Uint8Array): { seconds: number; nanos: number } {
  const reader = new WireReader(bytes);
  let seconds = 0;
  let nanos = 0;
  while (!reader.atEnd) {
    const { number, wireType } = reader.tag();
    if (number > 2) reader.skip(wireType);
    else if (wireType !== WireType.Varint) throw malformed('a time must consist of numbers');
    else if (number === 1) seconds = reader.int64();
    else nanos = reader.int32();
  }
  return { seconds, nanos };
}
