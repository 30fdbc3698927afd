/** A commit object without its signature, which is what was signed, and the signature as text. */
export interface SignedCommit {
  readonly payload: Buffer;
  readonly signature: string;
}

const HEADER = Buffer.from('gpgsig ');
const LINE_FEED = 0x0a;
const SPACE = 0x20;

/**
 * Splits a commit object into what was signed and the signature. Undefined if it is not signed, and where more than one header holds
 * a signature: git takes several out, and which of them counts is not defined.
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

/** Where the line that begins at `from` ends, its line feed included. */
function lineEnd(data: Buffer, from: number, limit: number): number {
  const end = data.indexOf(LINE_FEED, from);
  return end < 0 || end >= limit ? limit : end + 1;
}
