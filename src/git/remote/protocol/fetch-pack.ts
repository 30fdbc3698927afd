import type { Oid } from '../../git-repository.ts';
import type { Capabilities } from './advertisement.ts';
import { commandCapabilities } from './list-refs.ts';
import { DELIMITER, FLUSH, PktLineParser, pktLine, textOf } from './pkt-line.ts';
import { ProtocolError, throwOnErrorLine } from './protocol-error.ts';
import { SideBand } from './side-band.ts';

/** The wanted objects, the existing ones, and whether the pack may contain deltas against the latter. */
export interface FetchRequest {
  readonly wants: readonly Oid[];
  readonly haves: readonly Oid[];
  readonly thin: boolean;
}

/** A request for objects in one round. */
export function encodeFetch({ wants, haves, thin }: FetchRequest, offered: Capabilities): Buffer {
  return Buffer.concat([
    pktLine('command=fetch'),
    ...commandCapabilities(offered),
    DELIMITER,
    ...(thin ? [pktLine('thin-pack')] : []),
    ...['no-progress', 'ofs-delta'].map(pktLine),
    ...wants.map((oid) => pktLine(`want ${oid}\n`)),
    ...haves.map((oid) => pktLine(`have ${oid}\n`)),
    pktLine('done\n'),
    FLUSH,
  ]);
}

/** The pack of an answer, as it arrives. Throws ProtocolError if there is none or the answer ends before it does. */
export async function* readPack(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const parser = new PktLineParser();
  const band = new SideBand();
  let inPack = false;
  let ended = false;
  for await (const piece of pieces) {
    for (const packet of parser.push(piece)) {
      if (packet === 'flush') ended = true;
      if (typeof packet === 'string') continue;
      if (inPack) {
        const data = band.dataOf(packet);
        if (data !== undefined) yield data;
        continue;
      }
      const text = textOf(packet);
      throwOnErrorLine(text);
      inPack = text === 'packfile';
    }
  }
  parser.end();
  if (!inPack || !ended) throw new ProtocolError('it contains no pack, or an incomplete one');
}
