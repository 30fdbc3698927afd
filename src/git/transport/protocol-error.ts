/** A server sent what the Git protocol does not have at that place. Callers turn it into a SluiceError that names the server. */
export class ProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtocolError';
  }
}

/** Throws ProtocolError for the line with which a server says that it gives up. */
export function throwIfGivenUp(line: string): void {
  if (line.startsWith('ERR ')) throw new ProtocolError(`it says: ${line.slice(4, 504)}`);
}
