import { cleanText } from '../../../foundation/text/clean-text.ts';

/**
 * A server violated the Git protocol. Callers turn it into a SluiceError that names the server. Messages quote only
 * text that the protocol defines as human-readable: other bytes may come from an internal service and must not be
 * shown.
 */
export class ProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtocolError';
  }
}

/** Throws ProtocolError for the line with which a server reports an error. */
export function throwOnErrorLine(line: string): void {
  if (line.startsWith('ERR ')) throw new ProtocolError(`it reports: ${cleanText(line.slice(4, 504))}`);
}
