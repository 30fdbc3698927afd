import { cleanText } from '../../network/remote-url.ts';

/**
 * A server sent what the Git protocol does not have at that place. Callers turn it into a SluiceError that names the server. Messages
 * quote only what the protocol has for people: other bytes may be the answer of a service that is not meant to be shown.
 */
export class ProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtocolError';
  }
}

/** Throws ProtocolError for the line with which a server says that it gives up. */
export function throwIfGivenUp(line: string): void {
  if (line.startsWith('ERR ')) throw new ProtocolError(`it says: ${cleanText(line.slice(4, 504))}`);
}
