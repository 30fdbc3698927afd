import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { ERROR_CODES, isSluiceError, messageOf } from '../foundation/sluice-error.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { createWidget, startTestServer, type TestServer, WIDGETS } from '../server/testing.ts';
import type { ClusterAccess } from './access/cluster-access.ts';
import { Connection, type ConnectionOptions } from './connection/connection.ts';
import { HttpClient } from './http-client.ts';

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Handler = (request: Received, response: ServerResponse) => void | Promise<void>;

/** The access to a server as the user with a token, as `changes` says. */
export function fixedAccess(server: string, token: string, changes: Partial<ClusterAccess> = {}): ClusterAccess {
  return {
    server,
    source: 'context "test" of /kubeconfig',
    user: 'anna',
    namespace: 'default',
    tls: { insecure: false },
    credentials: { proof: async () => ({ headers: { authorization: `Bearer ${token}` } }), forget: () => undefined },
    ...changes,
  };
}

/** A real HTTP or HTTPS server on loopback that responds by its handler and records the requests. */
export class WireServer {
  readonly received: Received[] = [];
  /** Number of all connections since the start. */
  connections = 0;
  handle: Handler = (_request, response) => sendStatus(response, 500, 'InternalError', 'no handler');
  readonly #server: ReturnType<typeof createServer>;
  readonly #sockets = new Set<Socket>();
  readonly #scheme: string;
  #port = 0;

  constructor(tls?: ServerOptions) {
    const listener = (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response);
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener);
    this.#server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      // Clients abort connections here, which is the purpose of most tests.
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    });
  }

  /** Listens; after a stop on the same port as before. */
  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  access(changes: Partial<ClusterAccess> = {}): ClusterAccess {
    return fixedAccess(`${this.#scheme}://127.0.0.1:${this.#port}`, 'secret', changes);
  }

  /** A connection with short retries, and a client on it. */
  client(options: ConnectionOptions & { readonly silenceLimit?: number } = {}) {
    const { silenceLimit, ...rest } = options;
    const connection = new Connection(this.access(), { random: () => 0, ...rest });
    const client = new HttpClient({ connection, face: 'cli', ...(silenceLimit === undefined ? {} : { silenceLimit }) });
    return { connection, client };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const received: Received = {
      method: request.method ?? '',
      path: pathname,
      query: searchParams,
      headers: request.headers,
      body: Buffer.concat(pieces).toString('utf8'),
    };
    this.received.push(received);
    try {
      await this.handle(received, response);
    } catch (error) {
      const { reason, status } = ERROR_CODES[isSluiceError(error) ? error.code : 'Internal'];
      sendStatus(response, status, reason, messageOf(error), { name: 'a' });
    }
  }
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

export function sendStatus(
  response: ServerResponse,
  code: number,
  reason: string,
  message: string,
  details: unknown = {},
): void {
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, details, code };
  sendJson(response, code, body);
}

/** A widget as a server sends it. */
export function wireWidget(name: string, resourceVersion = '1', more: object = {}): Record<string, unknown> {
  const metadata = {
    name,
    namespace: 'default',
    uid: name,
    resourceVersion,
    creationTimestamp: '2026-01-01T00:00:00Z',
  };
  return { apiVersion: widgetKind.apiVersion, kind: 'Widget', metadata, spec: { size: 1 }, ...more };
}

/** The real server of widgets, behind a WireServer that forwards requests to it. */
export class WidgetApi {
  readonly #api: TestServer;
  /** Faults that respond instead of the server, in order, each to the first request that it takes. */
  readonly faults: { readonly takes: (request: Received) => boolean; readonly handle: Handler }[] = [];

  private constructor(api: TestServer) {
    this.#api = api;
  }

  static async start(): Promise<WidgetApi> {
    return new WidgetApi(await startTestServer());
  }

  readonly handle: Handler = (request, response) => {
    const [fault] = this.faults;
    if (fault?.takes(request) !== true) return this.serve(request, response);
    this.faults.shift();
    return fault.handle(request, response);
  };

  /** Forwards a request as the administrator; resolves when the head of the response has been returned. */
  serve({ method, path, query, headers, body }: Received, response: ServerResponse): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const url = `${this.#api.listener.url}${path}?${query}`;
    const onward = request(url, { method, headers: { ...headers, authorization: 'Bearer admin' } }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers).flushHeaders();
      // A test may have ended the response itself.
      answer.on('data', (piece: Buffer) => response.writableEnded || response.write(piece));
      answer.on('end', () => response.end());
      resolve();
    });
    // The client, or the test, aborted the response.
    response.on('close', () => onward.destroy());
    onward.on('error', reject);
    onward.end(body);
    return promise;
  }

  async create(name: string): Promise<void> {
    await createWidget(this.#api, name);
  }

  async delete(name: string): Promise<void> {
    await this.#api.fetch(`${WIDGETS}/${name}`, { method: 'DELETE' });
  }

  async stop(): Promise<void> {
    await this.#api.stop();
  }
}

/** True for requests that watch, or for those that list. */
export const isWatch = ({ query }: Received) => query.get('watch') === 'true';
export const isList = ({ method, query, path }: Received) =>
  method === 'GET' && query.get('watch') === null && path.endsWith('/widgets');

export function eventLine(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}

export function bookmark(resourceVersion: string): object {
  return { apiVersion: widgetKind.apiVersion, kind: 'Widget', metadata: { resourceVersion, creationTimestamp: null } };
}
