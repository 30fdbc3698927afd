import { cleanText, wordsOf } from '../../network/remote-url.ts';
import { ProtocolError } from './protocol-error.ts';

const DATA = 1;
const PROGRESS = 2;
const FATAL = 3;
const MOST_WORDS = 64 * 1024;

/** Takes the channels of a side-band apart: data is given out, what the server says to people is kept, up to a bound. */
export class SideBand {
  #words = '';

  /** The data of a packet; undefined if it has none. Throws ProtocolError if the server says that it gives up. */
  dataOf(packet: Buffer): Buffer | undefined {
    const rest = packet.subarray(1);
    switch (packet[0]) {
      case DATA:
        return rest;
      case PROGRESS:
        if (this.#words.length < MOST_WORDS) this.#words += rest.toString('utf8');
        return undefined;
      case FATAL:
        throw new ProtocolError(`it says: ${cleanText(rest.toString('utf8')).slice(0, 500)}`);
      default:
        throw new ProtocolError(`it uses the side-band channel ${packet[0]}, which there is not`);
    }
  }

  /** What the server said, one line after the other, cleaned. */
  get words(): string {
    return wordsOf(this.#words.split('\n'));
  }
}
