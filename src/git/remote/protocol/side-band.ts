import { cleanText, toOneLine } from '../../../foundation/text/clean-text.ts';
import { ProtocolError } from './protocol-error.ts';

const DATA = 1;
const PROGRESS = 2;
const FATAL = 3;
const MAX_PROGRESS_CHARACTERS = 64 * 1024;

/** Splits the channels of a side-band: it returns the data, and keeps the server's messages up to a bound. */
export class SideBand {
  #words = '';

  /** The data of a packet; undefined if it has none. Throws ProtocolError if the server reports an error. */
  dataOf(packet: Buffer): Buffer | undefined {
    const rest = packet.subarray(1);
    switch (packet[0]) {
      case DATA:
        return rest;
      case PROGRESS:
        if (this.#words.length < MAX_PROGRESS_CHARACTERS) this.#words += rest.toString('utf8');
        return undefined;
      case FATAL:
        throw new ProtocolError(`it reports: ${cleanText(rest.toString('utf8'), 500)}`);
      default:
        throw new ProtocolError(`it uses the side-band channel ${packet[0]}, which does not exist`);
    }
  }

  /** The server's messages as one cleaned line. */
  get words(): string {
    return toOneLine(this.#words.split('\n'));
  }
}
