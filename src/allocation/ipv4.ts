import ipaddr from 'ipaddr.js';

/** A block of IPv4 addresses: `base` (unsigned 32-bit) is aligned to `length` (0 to 32 leading bits). */
export interface Range {
  readonly base: number;
  readonly length: number;
}

/** A prefix as written: the address may have host bits (`10.0.0.1/24`), `range` has none. */
export interface Prefix {
  readonly address: number;
  readonly range: Range;
}

/**
 * Reads `a.b.c.d/n`, or `a.b.c.d` as a /32. Four decimal parts without leading zeros only: forms such as `10.1` or `010.0.0.1`
 * mean different things to different readers and are refused.
 */
export function parsePrefix(text: string): Prefix | undefined {
  const [address, length, ...rest] = text.split('/');
  if (address === undefined || rest.length > 0) return undefined;
  if (!ipaddr.IPv4.isValidFourPartDecimal(address) || !ipaddr.IPv4.isValid(address)) return undefined;
  if (length !== undefined && !/^(?:\d|[12]\d|3[0-2])$/.test(length)) return undefined;
  const value = numberOf(ipaddr.IPv4.parse(address).octets);
  return { address: value, range: rangeOf(value, length === undefined ? 32 : Number(length)) };
}

/** The block of the given length that contains an address. */
export function rangeOf(address: number, length: number): Range {
  const size = 2 ** (32 - length);
  return { base: address - (address % size), length };
}

/** Number of addresses in a block of this length. */
export function sizeOf(length: number): number {
  return 2 ** (32 - length);
}

/** True if `inner` lies inside `outer` or is the same block. */
export function contains(outer: Range, inner: Range): boolean {
  return inner.length >= outer.length && rangeOf(inner.base, outer.length).base === outer.base;
}

export function formatAddress(address: number): string {
  return new ipaddr.IPv4([24, 16, 8, 0].map((shift) => (address >>> shift) & 255)).toString();
}

export function formatRange(range: Range): string {
  return `${formatAddress(range.base)}/${range.length}`;
}

/** A key for maps, one for one with blocks. */
export function rangeKey(range: Range): number {
  return range.base * 64 + range.length;
}

function numberOf(octets: readonly number[]): number {
  let value = 0;
  for (const octet of octets) value = value * 256 + octet;
  return value;
}
