import { ProtocolError } from './protocol-error.ts';

/** The frames of Git's protocol: four hex digits with the length, themselves included, then the content. */
export type Packet = Buffer | 'flush' | 'delimiter' | 'response-end';

export const FLUSH = Buffer.from('0000');
export const DELIMITER = Buffer.from('0001');

const HEADER_BYTES = 4;
const MAX_LINE_BYTES = 65_520;
const SPECIAL = ['flush', 'delimiter', 'response-end'] as const;

export function pktLine(content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
  const length = bytes.length + HEADER_BYTES;
  if (length > MAX_LINE_BYTES) throw new ProtocolError(`a line of ${bytes.length} bytes is too long to be sent`);
  return Buffer.concat([Buffer.from(length.toString(16).padStart(HEADER_BYTES, '0'), 'latin1'), bytes]);
}

/** Parses a stream in pieces of any size. Packets may share memory with the pieces. */
export class PktLineParser {
  /** The pieces since the last complete packet, which are joined only when the next one is complete. */
  #pieces: Buffer[] = [];
  #size = 0;
  #needed = HEADER_BYTES;

  /** All packets that are complete with this piece. Throws ProtocolError for other data. */
  push(piece: Uint8Array): Packet[] {
    this.#pieces.push(Buffer.from(piece.buffer, piece.byteOffset, piece.length));
    this.#size += piece.length;
    if (this.#size < this.#needed) return [];
    const [only, ...more] = this.#pieces;
    const data = only !== undefined && more.length === 0 ? only : Buffer.concat(this.#pieces);
    const packets: Packet[] = [];
    let at = 0;
    this.#needed = HEADER_BYTES;
    while (at + HEADER_BYTES <= data.length) {
      const length = lengthAt(data, at);
      if (length < HEADER_BYTES) {
        packets.push(specialPacket(length));
        at += HEADER_BYTES;
        continue;
      }
      if (at + length > data.length) {
        this.#needed = length;
        break;
      }
      packets.push(data.subarray(at + HEADER_BYTES, at + length));
      at += length;
    }
    this.#size = data.length - at;
    this.#pieces = this.#size === 0 ? [] : [data.subarray(at)];
    return packets;
  }

  /** Call when the stream has ended. Throws ProtocolError if it was cut off within a packet. */
  end(): void {
    if (this.#size > 0) throw new ProtocolError('it is cut off');
  }
}

/** The text of a line, without the line feed that may end it. */
export function textOf(packet: Buffer): string {
  const end = packet.at(-1) === 0x0a ? packet.length - 1 : packet.length;
  return packet.toString('utf8', 0, end);
}

function lengthAt(data: Buffer, at: number): number {
  let length = 0;
  for (let index = at; index < at + HEADER_BYTES; index++) {
    const digit = hexDigit(data[index] ?? 0);
    if (digit < 0) throw new ProtocolError('a line does not begin with its length');
    length = length * 16 + digit;
  }
  if (length > MAX_LINE_BYTES) throw new ProtocolError(`a line of ${length} bytes is longer than the protocol allows`);
  return length;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function specialPacket(length: number): Packet {
  const packet = SPECIAL[length];
  if (packet === undefined) throw new ProtocolError('a line has the length 3, which means nothing');
  return packet;
}
