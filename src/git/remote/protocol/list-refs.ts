import { createPacer } from '../../../foundation/concurrency/in-slices.ts';
import type { Ref } from '../../git-repository.ts';
import { type Capabilities, refOf } from './advertisement.ts';
import { DELIMITER, FLUSH, PktLineParser, pktLine, textOf } from './pkt-line.ts';
import { ProtocolError } from './protocol-error.ts';
import { MAX_REF_LIST_BYTES, MAX_REMOTE_REFS, tooManyRefs } from './ref-list-limit.ts';

/** A request for the refs whose names begin with one of the prefixes; servers drop prefixes where there are tens of thousands. */
export function encodeListRefs(prefixes: readonly string[], offered: Capabilities): Buffer {
  return Buffer.concat([
    pktLine('command=ls-refs\n'),
    ...commandCapabilities(offered),
    DELIMITER,
    ...prefixes.map((prefix) => pktLine(`ref-prefix ${prefix}\n`)),
    FLUSH,
  ]);
}

/** The capabilities of every command of version 2. */
export function commandCapabilities(offered: Capabilities): Buffer[] {
  return [
    ...(offered.has('agent') ? [pktLine('agent=sluice')] : []),
    ...(offered.has('object-format') ? [pktLine('object-format=sha1')] : []),
  ];
}

/**
 * The refs of an answer of the server at `url`, without HEAD; the server decides about their order, and may return more than were
 * requested. Throws LimitExceeded for a list that is too long, and reads no more of it.
 */
export async function readRefs(pieces: AsyncIterable<Uint8Array>, url: string): Promise<Ref[]> {
  const parser = new PktLineParser();
  const refs: Ref[] = [];
  let size = 0;
  let ended = false;
  // Pieces that have arrived already follow each other without a turn of the event loop.
  const pause = createPacer();
  for await (const piece of pieces) {
    size += piece.length;
    if (size > MAX_REF_LIST_BYTES) throw tooManyRefs(url);
    for (const packet of parser.push(piece)) {
      if (packet === 'flush') ended = true;
      if (typeof packet === 'string') continue;
      const ref = refOf(textOf(packet));
      if (ref !== undefined) refs.push(ref);
      if (refs.length > MAX_REMOTE_REFS) throw tooManyRefs(url);
      const turn = pause();
      if (turn !== undefined) await turn;
    }
  }
  parser.end();
  if (!ended) throw new ProtocolError('its list of refs is cut off');
  return refs;
}
