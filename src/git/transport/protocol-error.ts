/** A server sent what the Git protocol does not have at that place. Callers turn it into a SluiceError that names the server. */
export class ProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtocolError';
  }
}
