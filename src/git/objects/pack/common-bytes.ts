const BLOCK = 4096;

/** Returns the length of the common prefix in bytes, `most` at most. Compares blocks natively, then byte by byte. */
export function commonPrefix(a: Uint8Array, b: Uint8Array, most: number): number {
  let at = 0;
  while (at + BLOCK <= most && Buffer.compare(a.subarray(at, at + BLOCK), b.subarray(at, at + BLOCK)) === 0)
    at += BLOCK;
  while (at < most && a[at] === b[at]) at += 1;
  return at;
}

/** Returns the length of the common suffix in bytes, `most` at most. */
export function commonSuffix(a: Uint8Array, b: Uint8Array, most: number): number {
  const blocksEqual = (from: number) =>
    Buffer.compare(
      a.subarray(a.length - from - BLOCK, a.length - from),
      b.subarray(b.length - from - BLOCK, b.length - from),
    ) === 0;
  let length = 0;
  while (length + BLOCK <= most && blocksEqual(length)) length += BLOCK;
  while (length < most && a[a.length - 1 - length] === b[b.length - 1 - length]) length += 1;
  return length;
}
