import type { Ref } from '../../git-repository.ts';
import { type Capabilities, refOf } from './advertisement.ts';
import { DELIMITER, FLUSH, PktLineParser, pktLine, textOf } from './pkt-line.ts';
import { ProtocolError } from './protocol-error.ts';

const MAX_LIST_BYTES = 256 * 1024 * 1024;

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

/** The refs of an answer, without HEAD; the server decides about their order, and may return more than were requested. */
export async function readRefs(pieces: AsyncIterable<Uint8Array>): Promise<Ref[]> {
  const parser = new PktLineParser();
  const refs: Ref[] = [];
  let size = 0;
  let ended = false;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > MAX_LIST_BYTES) throw new ProtocolError(`its list of refs has more than ${MAX_LIST_BYTES} bytes`);
    for (const packet of parser.push(piece)) {
      if (packet === 'flush') ended = true;
      if (typeof packet === 'string') continue;
      const ref = refOf(textOf(packet));
      if (ref !== undefined) refs.push(ref);
    }
  }
  parser.end();
  if (!ended) throw new ProtocolError('its list of refs is cut off');
  return refs;
}
