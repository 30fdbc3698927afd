import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { onAuthenticated } from './authentication/authenticated-requests.ts';

export interface ConnectionLimits {
  /** True if connections begin with a TLS handshake. */
  readonly isTls: boolean;
  /** Connections that may be open, in whatever state. */
  readonly maxConnections: number;
}

/** Milliseconds that a TLS handshake may take when the server stops: its client gets no response any more. */
const LAST_HANDSHAKE_MS = 1000;

/** What reports the requests of one connection. */
export interface ConnectionUse {
  /** Called with 1 when a request begins, and with -1 when its response is written. */
  readonly count: (change: 1 | -1) => void;
  /** Called when credentials have proved the sender of a request. */
  readonly authenticate: () => void;
}

/**
 * The connections of a server, and the requests in progress on each.
 *
 * Every client that reaches the port can open connections, before any authentication, and hold them: without a request, or with requests
 * whose responses it does not read. Therefore a new connection is refused only if every other one has an authenticated request in progress.
 * Else it displaces one: the oldest on which no request has been authenticated yet, whatever is in progress on it, then the one that has
 * been idle for the longest time. A genuine client authenticates its first request within milliseconds, so an attacker must open
 * `maxConnections` connections in that time to displace it.
 *
 * It also ends a server in order: Node keeps connections open on which no request has come yet, and clients often hold one of these.
 */
export class OpenConnections {
  readonly #maxConnections: number;
  readonly #isTls: boolean;
  readonly #open = new Set<Connection>();
  /** Those on which no request has been authenticated yet, the oldest first. */
  readonly #unknown = new Set<Connection>();
  /** Those of authenticated clients between two requests, the one that has been idle for the longest time first. */
  readonly #idle = new Set<Connection>();
  /** By the socket that carries the requests, and by the one below it. */
  readonly #bySocket = new WeakMap<Socket, Connection>();
  /** Those in their TLS handshake, by the address of the peer: Node does not report which socket is the one below. */
  readonly #handshakes = new Map<string, Connection>();
  #isEnding = false;

  constructor(server: Server, { isTls, maxConnections }: ConnectionLimits) {
    this.#maxConnections = maxConnections;
    this.#isTls = isTls;
    server.on('connection', (socket: Socket) => this.#begin(socket));
    if (isTls) server.on('secureConnection', (socket: Socket) => this.#secure(socket));
    server.on('request', (request, response) => {
      const { socket } = request;
      this.#count(socket, 1);
      onAuthenticated(request, () => this.#authenticate(socket));
      response.once('close', () => this.#count(socket, -1));
    });
  }

  /** Closes each idle connection, and every other one as soon as it is idle. A TLS handshake has a second to end. */
  endIdle(): void {
    this.#isEnding = true;
    const handshakes = new Set(this.#handshakes.values());
    for (const one of this.#open)
      if (one.requests === 0 && !handshakes.has(one) && !one.endsItself) one.socket.destroySoon();
    setTimeout(() => {
      for (const { socket } of this.#handshakes.values()) socket.destroy();
    }, LAST_HANDSHAKE_MS).unref();
  }

  /**
   * For HTTP/2, which ends its connections itself: returns what reports the requests of a connection. Call it after the TLS handshake.
   */
  adopt(socket: Socket): ConnectionUse {
    const connection = this.#bySocket.get(socket);
    if (connection !== undefined) connection.endsItself = true;
    return { count: (change) => this.#count(socket, change), authenticate: () => this.#authenticate(socket) };
  }

  destroy(): void {
    for (const { socket } of this.#open) socket.destroy();
  }

  #begin(socket: Socket): void {
    if (this.#open.size >= this.#maxConnections && !this.#displace()) {
      socket.destroy();
      return;
    }
    const connection = { socket, peer: peerOf(socket), requests: 0, endsItself: false };
    this.#bySocket.set(socket, connection);
    this.#open.add(connection);
    this.#unknown.add(connection);
    if (this.#isTls) this.#handshakes.set(connection.peer, connection);
    socket.once('close', () => this.#forget(connection));
  }

  #secure(socket: Socket): void {
    const peer = peerOf(socket);
    const connection = this.#handshakes.get(peer);
    if (connection === undefined) {
      // It is closed already.
      socket.destroy();
      return;
    }
    this.#handshakes.delete(peer);
    connection.socket = socket;
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#forget(connection));
    // Whatever the client sends gets no response any more.
    if (this.#isEnding) socket.destroy();
  }

  /** Ends a connection that may be displaced; false if there is none. */
  #displace(): boolean {
    const [connection] = this.#unknown.size > 0 ? this.#unknown : this.#idle;
    if (connection === undefined) return false;
    connection.socket.destroy();
    // Its event comes later, and the next connection may come before.
    this.#forget(connection);
    return true;
  }

  #forget(connection: Connection): void {
    this.#open.delete(connection);
    this.#unknown.delete(connection);
    this.#idle.delete(connection);
    if (this.#handshakes.get(connection.peer) === connection) this.#handshakes.delete(connection.peer);
  }

  #count(socket: Socket, change: number): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || !this.#open.has(connection)) return;
    connection.requests += change;
    if (connection.requests > 0) this.#idle.delete(connection);
    else if (!this.#unknown.has(connection)) this.#idle.add(connection);
    if (this.#isEnding && connection.requests === 0 && !connection.endsItself) connection.socket.destroySoon();
  }

  #authenticate(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || !this.#unknown.delete(connection)) return;
    if (connection.requests === 0) this.#idle.add(connection);
  }
}

interface Connection {
  /** In the end the one that carries the requests. */
  socket: Socket;
  readonly peer: string;
  /** How many are in progress. */
  requests: number;
  /** True for HTTP/2. */
  endsItself: boolean;
}

/** The address of the other end, which no other open connection has. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? ''}`;
}
