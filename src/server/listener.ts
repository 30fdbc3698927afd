import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createSecureServer, Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { SluiceError } from '../foundation/sluice-error.ts';
import { DISCARD_TIMEOUT_MS } from './http/answer.ts';
import { Http2Connections } from './http2-connections.ts';
import { OpenConnections } from './open-connections.ts';
import { OutdatedConnections } from './outdated-connections.ts';

/** Certificate and key as PEM text. Clients may present certificates, which the authenticator verifies. */
export interface ListenerTls {
  readonly key: string;
  readonly cert: string;
  /** The authorities of client certificates; empty for none. */
  readonly clientCa: string;
}

export interface ListenOptions {
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  readonly tls?: ListenerTls;
  readonly handle: RequestListener;
  /**
   * Called in place of `handle` for requests on connections whose client certificate other authorities than the present ones have refused;
   * the connection is closed after the response. Default: `handle`.
   */
  readonly refuseOutdated?: RequestListener;
  /** Called when a connection could not be accepted, for instance for lack of file handles. */
  readonly onError: (error: unknown) => void;
  /** Called once when the listener stops, before it waits for requests in progress; ends watches. */
  readonly onStop?: () => void;
  /** Connections of all clients; see `OpenConnections` for what happens beyond. */
  readonly maxConnections?: number;
  /** Timeouts for peers; `DEFAULT_PEER_TIMEOUTS` for absent ones. */
  readonly timeouts?: Partial<PeerTimeouts>;
}

/** Milliseconds that a peer may take before its connection is closed. */
export interface PeerTimeouts {
  /** For the TLS handshake. */
  readonly handshakeMs: number;
  /** For the head of a request. */
  readonly headMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** For reading a response that was written, over HTTP/2. */
  readonly readMs: number;
  /** For the rest of a body after its response, over HTTP/2. */
  readonly discardMs: number;
  /** Milliseconds between checks of headers and requests; timeouts are exceeded by up to this much. */
  readonly checkIntervalMs: number;
}

const MAX_CONNECTIONS = 10_000;

const DEFAULT_PEER_TIMEOUTS: PeerTimeouts = {
  handshakeMs: 10_000,
  headMs: 20_000,
  requestMs: 90_000,
  readMs: 60_000,
  discardMs: DISCARD_TIMEOUT_MS,
  checkIntervalMs: 5000,
};

export interface Listener {
  readonly host: string;
  readonly port: number;
  /** `https://127.0.0.1:6443` */
  readonly url: string;
  /**
   * Stops accepting requests, waits for those in progress, and closes their connections after `graceMs` (default 8,000).
   */
  stop(graceMs?: number): Promise<void>;
  /** Replaces certificate and authorities for the connections from now on; those that are open remain. Only with TLS. */
  setTls(tls: ListenerTls): void;
}

/** Label selectors may be long. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Longer than clients keep idle connections (90 s), so that the server never closes one that a client is about to use. */
const IDLE_MS = 120_000;

/** Listens, and resolves when clients can connect. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { host, port, tls, onError, onStop, maxConnections = MAX_CONNECTIONS } = options;
  const timeouts = { ...DEFAULT_PEER_TIMEOUTS, ...options.timeouts };
  const settings: ServerOptions = {
    maxHeaderSize: MAX_HEAD_BYTES,
    keepAliveTimeout: IDLE_MS,
    // A peer that sends its head or its body too slowly is disconnected.
    headersTimeout: timeouts.headMs,
    requestTimeout: timeouts.requestMs,
    connectionsCheckingInterval: timeouts.checkIntervalMs,
  };
  const server: Server =
    tls === undefined
      ? createServer(settings)
      : createSecureServer({
          ...settings,
          ...secureContext(tls),
          ...{
            requestCert: true,
            rejectUnauthorized: false,
            ALPNProtocols: ['h2', 'http/1.1'],
            handshakeTimeout: timeouts.handshakeMs,
          },
        });
  const serveHttp1 = takeSecureListeners(server);
  const connections = new OpenConnections(server, { isTls: tls !== undefined, maxConnections });
  const outdated = new OutdatedConnections(server, tls?.clientCa ?? '');
  const { refuseOutdated } = options;
  const handle = refuseOutdated === undefined ? options.handle : outdated.around(options.handle, refuseOutdated);
  server.on('request', handle);
  const { headMs, requestMs, readMs, discardMs } = timeouts;
  const http2 = new Http2Connections({
    ...{ handle, connections, maxHeadBytes: MAX_HEAD_BYTES, headMs, requestMs, readMs, discardMs },
    idleMs: IDLE_MS,
  });
  // After OpenConnections, which knows the connection then.
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.destroyed) return;
    if (socket.alpnProtocol === 'h2') http2.accept(socket);
    else serveHttp1(socket);
  });
  await startListening(server, host, port);
  server.on('error', onError);
  // A listening TCP server has an address of this form.
  const bound = server.address() as AddressInfo;
  const hostText = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    host: bound.address,
    port: bound.port,
    url: `${tls === undefined ? 'http' : 'https'}://${hostText}:${bound.port}`,
    stop: (graceMs = 8000) => stopListening(server, [connections, http2], onStop, graceMs),
    setTls(changed) {
      if (!(server instanceof SecureServer)) throw new Error('this listener does not use TLS');
      server.setSecureContext(secureContext(changed));
      outdated.setAuthorities(changed.clientCa);
    },
  };
}

/** The settings that the connections of one certificate share. Without an authority, Node would trust those of the public web. */
function secureContext({ key, cert, clientCa }: ListenerTls): SecureContextOptions {
  return { key, cert, ca: clientCa === '' ? [] : clientCa, minVersion: 'TLSv1.2' };
}

/** Unavailable unless the port is free, so that a caller can fail before it starts work that it would have to stop again. */
export async function requireFreePort(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const server = createServer();
  await startListening(server, host, port);
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

function startListening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? 'the port is in use; stop the process that uses it, or choose another port (0 takes a free one)'
          : error.message;
      reject(new SluiceError('Unavailable', `cannot listen on ${host}:${port}: ${why}`, { cause: error }));
    };
    server.once('error', failed);
    server.listen({ host, port }, () => {
      server.removeListener('error', failed);
      resolve();
    });
  });
}

/** Removes what Node serves HTTP/1 with after a TLS handshake, and returns it: the protocol is chosen in the handshake. */
function takeSecureListeners(server: Server): (socket: TLSSocket) => void {
  const listeners = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection');
  return (socket) => {
    for (const listener of listeners) listener.call(server, socket);
  };
}

function stopListening(
  server: Server,
  [connections, http2]: readonly [OpenConnections, Http2Connections],
  onStop: (() => void) | undefined,
  graceMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    const cutOff = setTimeout(() => connections.destroy(), graceMs);
    server.close(() => {
      clearTimeout(cutOff);
      resolve();
    });
    onStop?.();
    connections.endIdle();
    http2.endIdle();
  });
}
