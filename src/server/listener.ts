import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { SluiceError } from '../foundation/sluice-error.ts';

/** PEM texts. Clients may show certificates; who they are is for the authenticator to judge. */
export interface ListenerTls {
  readonly key: string;
  readonly cert: string;
  /** Who signs client certificates. */
  readonly clientCa: string;
}

export interface ListenOptions {
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  readonly tls?: ListenerTls;
  readonly handle: RequestListener;
  /** Told when a connection could not be taken, for want of file handles for instance. */
  readonly onError: (error: unknown) => void;
  /** Called once when the listener stops, before it waits for what is under way; ends what would last. */
  readonly onStop?: () => void;
  /** Connections of all clients. Default 10,000. */
  readonly maxConnections?: number;
  /** How long peers may take; `DEFAULT_PEER_TIMEOUTS` where one is left out. */
  readonly timeouts?: Partial<PeerTimeouts>;
}

/** Milliseconds that a peer may take before its connection is closed. */
export interface PeerTimeouts {
  /** For TLS to be agreed on. */
  readonly handshake: number;
  /** For the head of a request. */
  readonly head: number;
  /** For a whole request. */
  readonly request: number;
  /** How often heads and requests are looked at; they may take this much longer. */
  readonly check: number;
}

const DEFAULT_PEER_TIMEOUTS: PeerTimeouts = { handshake: 10_000, head: 20_000, request: 90_000, check: 5000 };

export interface Listener {
  readonly host: string;
  readonly port: number;
  /** `https://127.0.0.1:6443` */
  readonly url: string;
  /** Takes no more requests, lets those under way end, and after `grace` milliseconds (default 8,000) cuts them off. */
  stop(grace?: number): Promise<void>;
}

/**
 * HTTP/1.1 only. HTTP/2 of Node would also come with its own rules for timeouts, bodies and closing, each with another door for
 * idle peers, and clients of Kubernetes are as content with connections.
 */
const HTTP: ServerOptions = {
  // Label selectors may be long.
  maxHeaderSize: 64 * 1024,
  // Longer than clients keep idle connections (90 s), so that it is never us who close one that is about to be used.
  keepAliveTimeout: 120_000,
};

/** Listens, and resolves when requests can come. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { host, port, tls, handle, onError, onStop, maxConnections = 10_000 } = options;
  const timeouts = { ...DEFAULT_PEER_TIMEOUTS, ...options.timeouts };
  const settings: ServerOptions = {
    ...HTTP,
    // A peer that sends its head or its body by the drop is cut off.
    headersTimeout: timeouts.head,
    requestTimeout: timeouts.request,
    connectionsCheckingInterval: timeouts.check,
  };
  const server: Server =
    tls === undefined
      ? createServer(settings)
      : createSecureServer({
          ...settings,
          ...{ key: tls.key, cert: tls.cert, ca: tls.clientCa },
          ...{
            requestCert: true,
            rejectUnauthorized: false,
            minVersion: 'TLSv1.2',
            handshakeTimeout: timeouts.handshake,
          },
        });
  server.maxConnections = maxConnections;
  const connections = new OpenConnections(server, tls === undefined ? 'connection' : 'secureConnection');
  server.on('request', handle);
  await opened(server, host, port);
  server.on('error', onError);
  // A listening TCP server has an address of this form.
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    host: bound.address,
    port: bound.port,
    url: `${tls === undefined ? 'http' : 'https'}://${shown}:${bound.port}`,
    stop: (grace = 8000) => closed(server, connections, onStop, grace),
  };
}

/** Throws Unavailable unless the port can be listened on now: before work is started that would have to be stopped again. */
export async function requireFreePort(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const server = createServer();
  await opened(server, host, port);
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

function opened(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? 'the port is in use; end the process that holds it, or choose another port (0 takes a free one)'
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

function closed(
  server: Server,
  connections: OpenConnections,
  onStop: (() => void) | undefined,
  grace: number,
): Promise<void> {
  return new Promise((resolve) => {
    const cutOff = setTimeout(() => connections.destroy(), grace);
    server.close(() => {
      clearTimeout(cutOff);
      resolve();
    });
    onStop?.();
    connections.endIdle();
  });
}

/**
 * Which connections have a request under way. Node itself keeps those open on which none has come yet, and clients like to have one
 * of these at hand.
 */
class OpenConnections {
  /** All of them, also those that are still about to agree on keys. */
  readonly #raw = new Set<Socket>();
  /** Those that can carry requests, with how many of them are under way. */
  readonly #requests = new Map<Socket, number>();
  #ending = false;

  constructor(server: Server, ready: 'connection' | 'secureConnection') {
    server.on('connection', (socket: Socket) => {
      this.#raw.add(socket);
      socket.once('close', () => this.#raw.delete(socket));
    });
    server.on(ready, (socket: Socket) => {
      this.#requests.set(socket, 0);
      socket.once('close', () => this.#requests.delete(socket));
    });
    server.on('request', ({ socket }, response) => {
      this.#count(socket, 1);
      response.once('close', () => this.#count(socket, -1));
    });
  }

  /** Closes what is idle now, and every other as soon as it is. */
  endIdle(): void {
    this.#ending = true;
    for (const [socket, count] of this.#requests) if (count === 0) socket.destroySoon();
  }

  destroy(): void {
    for (const socket of this.#raw) socket.destroy();
  }

  #count(socket: Socket, change: number): void {
    const count = this.#requests.get(socket);
    if (count === undefined) return;
    this.#requests.set(socket, count + change);
    if (this.#ending && count + change === 0) socket.destroySoon();
  }
}
