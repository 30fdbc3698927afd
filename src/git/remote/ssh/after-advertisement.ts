import { ProtocolError } from '../protocol/protocol-error.ts';

const LENGTH_DIGITS = 4;
/** An advertisement of all refs, which a server sends before each push. */
const MAX_ADVERTISEMENT_BYTES = 256 * 1024 * 1024;

/**
 * Yields the output of a server after its initial advertisement. Calls `begin` at the end of the advertisement, when the server
 * starts to read, with its bytes if they are to be kept. Throws ProtocolError if it does not end.
 */
export async function* afterAdvertisement(
  pieces: AsyncIterable<Uint8Array>,
  keep: boolean,
  begin: (advertisement: Buffer) => void,
): AsyncGenerator<Uint8Array> {
  const kept: Uint8Array[] = [];
  let digits = '';
  let left = 0;
  let size = 0;
  let isOver = false;
  for await (const piece of pieces) {
    if (isOver) {
      yield piece;
      continue;
    }
    size += piece.length;
    if (size > MAX_ADVERTISEMENT_BYTES) throw new ProtocolError('its list of refs does not end');
    for (let at = 0; at < piece.length && !isOver; ) {
      if (left > 0) {
        const skipped = Math.min(left, piece.length - at);
        left -= skipped;
        at += skipped;
        continue;
      }
      digits += String.fromCharCode(piece[at] ?? 0);
      at += 1;
      if (digits.length < LENGTH_DIGITS) continue;
      if (!/^[0-9a-f]{4}$/i.test(digits)) throw new ProtocolError('it does not begin as Git does');
      const length = Number.parseInt(digits, 16);
      digits = '';
      if (length === 0) {
        isOver = true;
        begin(Buffer.concat(keep ? [...kept, piece.subarray(0, at)] : []));
        if (at < piece.length) yield piece.subarray(at);
      } else if (length > LENGTH_DIGITS) left = length - LENGTH_DIGITS;
    }
    if (keep && !isOver) kept.push(piece);
  }
  if (!isOver) throw new ProtocolError('it ends before the service begins');
}
