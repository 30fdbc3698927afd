import type { RequestListener, Server } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** The authorities with which a connection began; a property, since HTTP/2 shows the socket through a proxy. */
const AUTHORITIES = Symbol('authorities');

interface Marked {
  [AUTHORITIES]?: string;
}

/**
 * Finds connections whose client certificate was refused in the handshake by authorities that are no longer the current ones: before the
 * authorities of a cluster were known, or before one of them was replaced. TLS verifies a certificate once, so only a new connection can
 * prove the client.
 */
export class OutdatedConnections {
  #current: string;
  /** Of connections in their handshake, by the address of the peer: Node does not report which socket is the one below. */
  readonly #handshakes = new Map<string, string>();

  constructor(server: Server, authorities: string) {
    this.#current = authorities;
    server.on('connection', (socket: Socket) => {
      const peer = peerOf(socket);
      this.#handshakes.set(peer, this.#current);
      socket.once('close', () => this.#handshakes.delete(peer));
    });
    server.on('secureConnection', (socket: TLSSocket & Marked) => {
      socket[AUTHORITIES] = this.#handshakes.get(peerOf(socket)) ?? '';
    });
  }

  setAuthorities(authorities: string): void {
    this.#current = authorities;
  }

  /** Calls `refuse` in place of `handle` for requests on such connections, and closes these after the response. */
  around(handle: RequestListener, refuse: RequestListener): RequestListener {
    return (request, response) => {
      if (!this.#isOutdated(request.socket)) return handle(request, response);
      const session =
        request.httpVersionMajor === 2 ? (request as unknown as Http2ServerRequest).stream.session : undefined;
      if (session === undefined) response.setHeader('connection', 'close');
      refuse(request, response);
      // Other requests in progress end first.
      session?.close();
    };
  }

  #isOutdated(socket: Socket & Marked): boolean {
    if (!(socket instanceof TLSSocket) || socket.authorized) return false;
    return (socket as Marked)[AUTHORITIES] !== this.#current && socket.getPeerX509Certificate() !== undefined;
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? ''}`;
}
