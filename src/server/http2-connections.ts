import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { constants, createServer, type ServerHttp2Session, type ServerOptions } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { onAuthenticated } from './authentication/authenticated-requests.ts';
import { Http2Request, Http2Response } from './http2-messages.ts';
import type { ConnectionUse, OpenConnections } from './open-connections.ts';

export interface Http2Options {
  readonly handle: RequestListener;
  readonly connections: OpenConnections;
  /** Bytes of the head of a request. */
  readonly maxHeadBytes: number;
  /** Milliseconds from the handshake to the first request. */
  readonly headMs: number;
  /** Milliseconds for a whole request. */
  readonly requestMs: number;
  /** Milliseconds for reading a response after it was written: the buffers of the connection need not take it. */
  readonly readMs: number;
  /** Milliseconds for which the rest of a body is dropped after the response. */
  readonly discardMs: number;
  /** Milliseconds for which a connection may have no request. */
  readonly idleMs: number;
}

/** Requests in progress on one connection, with watches; clients of Kubernetes open another connection for more. */
const MAX_STREAMS = 100;
/** Header lines of a request, as many as HTTP/1 reads: an aggregator sends one for each group of the user. */
const MAX_HEADER_LINES = 2000;
/**
 * Limits of one connection. `maxSessionMemory`, in mebibytes, is what it may hold in buffers, beyond which new requests are refused. `streamReset…`
 * are requests that a client may cancel at once, and per second after that; a client that cancels more is disconnected ("rapid reset").
 */
const LIMITS: ServerOptions = { maxSessionMemory: 32, streamResetBurst: 200, streamResetRate: 33 };
/**
 * The same for a connection with a verified client certificate: an aggregator sends the requests of many users over one, and none of them may
 * have it ended or refused for the others. What each user holds in memory is limited by `OpenRequests`.
 */
const CERTIFIED_LIMITS: ServerOptions = { maxSessionMemory: 1024, streamResetBurst: 10_000, streamResetRate: 1000 };
/** Milliseconds for which a client whose credentials were refused may read the response. */
const REFUSED_MS = 1000;

/** A connection after its handshake. */
interface Connection {
  readonly socket: Socket;
  readonly use: ConnectionUse;
  /** Requests in progress. */
  streams: number;
  isAuthenticated: boolean;
}

/**
 * HTTP/2 for connections whose TLS handshake chose it, with the limits that HTTP/1 has. The handler gets requests and responses of Node's
 * compatibility API, which have all that it uses of those of HTTP/1.
 *
 * Requests on one connection end alone: cancelling, a late body or a response that is not read resets their stream. A connection ends when
 * it has no request for too long, and after a response 401, since a client without credentials must not keep many streams open.
 */
export class Http2Connections {
  readonly #server: ReturnType<typeof createServer>;
  /** For connections with a verified client certificate. */
  readonly #certifiedServer: ReturnType<typeof createServer>;
  readonly #options: Http2Options;
  readonly #open = new Map<ServerHttp2Session, Connection>();
  #isEnding = false;

  constructor(options: Http2Options) {
    this.#options = options;
    this.#server = this.#createServer(LIMITS);
    this.#certifiedServer = this.#createServer(CERTIFIED_LIMITS);
  }

  #createServer(limits: ServerOptions): ReturnType<typeof createServer> {
    const { handle, maxHeadBytes, readMs } = this.#options;
    const server = createServer({
      ...settingsFor(maxHeadBytes),
      ...limits,
      Http2ServerRequest: Http2Request,
      Http2ServerResponse: Http2Response,
    });
    server.on('request', (request: Http2Request, response: Http2Response) => {
      response.readMs = readMs;
      this.#limitRequest(request);
      this.#countRequest(request, response);
      // What the server uses of a request and a response, those of HTTP/2 have as well; tests run over both.
      handle(
        request as unknown as IncomingMessage,
        response as unknown as ServerResponse<IncomingMessage> & { req: IncomingMessage },
      );
    });
    return server;
  }

  /** Serves a connection after its TLS handshake. */
  accept(socket: TLSSocket): void {
    if (socket.destroyed) return;
    const server = socket.authorized ? this.#certifiedServer : this.#server;
    // Emitted before `emit` returns.
    server.once('session', (session) => this.#follow(session, socket));
    server.emit('connection', socket);
  }

  /** Closes each idle connection, and every other one when its requests have ended. */
  endIdle(): void {
    this.#isEnding = true;
    for (const [session, { streams }] of this.#open)
      if (streams === 0) session.destroy();
      else session.close();
  }

  #follow(session: ServerHttp2Session, socket: Socket): void {
    const end = () => {
      // A session that is closed already waits for the peer to close the connection.
      if (session.destroyed) socket.destroy();
      else session.destroy();
    };
    let timer = setTimeout(end, this.#options.headMs);
    const connection = { socket, use: this.#options.connections.adopt(socket), streams: 0, isAuthenticated: false };
    this.#open.set(session, connection);
    const count = (change: 1 | -1) => {
      connection.streams += change;
      clearTimeout(timer);
      if (connection.streams > 0) return;
      if (!socket.destroyed) timer = setTimeout(end, this.#options.idleMs);
      if (this.#isEnding) session.close();
    };
    // Before the listener of Node, which handles the request.
    session.prependListener('stream', (stream) => {
      count(1);
      stream.once('close', () => count(-1));
    });
    // The peer has left or has broken the protocol; both end the connection.
    session.on('error', () => undefined);
    session.once('close', () => this.#open.delete(session));
    socket.once('close', () => clearTimeout(timer));
  }

  #limitRequest(request: Http2Request): void {
    const { stream } = request;
    const timer = setTimeout(() => {
      if (!request.complete) stream.close(constants.NGHTTP2_CANCEL);
    }, this.#options.requestMs);
    stream.once('close', () => clearTimeout(timer));
    stream.once('finish', () => {
      // Node resets a stream whose body nothing has read. Of one that was read in part the rest is dropped, until clients notice the response.
      if (request.complete || stream.destroyed || request.readableFlowing === null) return;
      request.resume();
      setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), this.#options.discardMs).unref();
    });
  }

  /** Counts a request until its response is written: a client that does not read the response must not hold its connection with that. */
  #countRequest(request: Http2Request, response: Http2Response): void {
    const { stream } = request;
    const { session } = stream;
    const connection = session === undefined ? undefined : this.#open.get(session as ServerHttp2Session);
    if (session === undefined || connection === undefined) return;
    const { use } = connection;
    let isCounted = true;
    const release = () => {
      if (isCounted) use.count(-1);
      isCounted = false;
    };
    use.count(1);
    stream.once('close', release);
    onAuthenticated(request, () => {
      connection.isAuthenticated = true;
      use.authenticate();
    });
    response.onEnd = () => {
      release();
      if (response.statusCode === 401) endRefused(session as ServerHttp2Session, connection);
    };
  }
}

/**
 * Ends a connection after a response 401. One that has served an authenticated request ends when all its requests have; another one ends
 * soon, also if the client reads no response.
 */
function endRefused(session: ServerHttp2Session, connection: Connection): void {
  session.close();
  const { socket } = connection;
  const timer = setTimeout(() => {
    if (connection.isAuthenticated) return;
    session.destroy();
    // A session that was closed before waits for the client to close the connection.
    socket.destroy();
  }, REFUSED_MS);
  socket.once('close', () => clearTimeout(timer));
}

function settingsFor(maxHeadBytes: number): ServerOptions {
  return {
    settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: maxHeadBytes, enablePush: false },
    maxHeaderListPairs: MAX_HEADER_LINES,
  };
}
