/** A commit object without its signature, which is what was signed, and the signature as text. */
export interface SignedCommit {
  readonly payload: Buffer;
  readonly signature: string;
}

const HEADER = Buffer.from('gpgsig ');
const LINE_FEED = 0x0a;
const SPACE = 0x20;

/**
 * Splits a commit object into the signed payload and the signature. Undefined if it is not signed, or if more than one header
 * contains a signature: git removes several, and which of them counts is undefined.
 */
export function signedCommit(data: Buffer): SignedCommit | undefined {
  const end = data.indexOf('\n\n');
  const headers = end < 0 ? data.length : end + 1;
  let found: { from: number; to: number } | undefined;
  for (let at = 0; at < headers; ) {
    const to = lineEnd(data, at, headers);
    if (data.subarray(at, to).indexOf('gpgsig') === 0) {
      if (found !== undefined || data.subarray(at, at + HEADER.length).compare(HEADER) !== 0) return undefined;
      let last = to;
      while (last < headers && data[last] === SPACE) last = lineEnd(data, last, headers);
      found = { from: at, to: last };
      at = last;
    } else at = to;
  }
  if (found === undefined) return undefined;
  const header = data.subarray(found.from + HEADER.length, found.to).toString('latin1');
  return {
    payload: Buffer.concat([data.subarray(0, found.from), data.subarray(found.to)]),
    signature: header.replaceAll('\n ', '\n').trim(),
  };
}

/** Returns the end of the line that begins at `from`, including its line feed. */
function lineEnd(data: Buffer, from: number, limit: number): number {
  const end = data.indexOf(LINE_FEED, from);
  return end < 0 || end >= limit ? limit : end + 1;
}
