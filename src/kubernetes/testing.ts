import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { systemClock } from '../foundation/clock.ts';
import { ERROR_CODES, isSluiceError, messageOf } from '../foundation/sluice-error.ts';
import { EventLog } from '../resource/event-log.ts';
import { labelSelector } from '../resource/label-selector.ts';
import { MemoryStorage } from '../resource/memory-storage.ts';
import { applyMergePatch } from '../resource/patch/merge-patch.ts';
import type { RequestContext } from '../resource/request-context.ts';
import { type Widget, widgetKind } from '../resource/testing.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import { HttpClient } from './http-client.ts';

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Handler = (request: Received, response: ServerResponse) => void | Promise<void>;

/** A real HTTP or HTTPS server on loopback that answers as its handler says and remembers what it was asked. */
export class WireServer {
  readonly received: Received[] = [];
  /** All connections that were ever made. */
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
      // Clients break connections off here, which is the point of most tests.
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
    return {
      server: `${this.#scheme}://127.0.0.1:${this.#port}`,
      source: 'context "test" of /kubeconfig',
      user: 'anna',
      namespace: 'default',
      tls: { insecure: false },
      credentials: { proof: async () => ({ headers: { authorization: 'Bearer secret' } }), forget: () => undefined },
      ...changes,
    };
  }

  /** A connection whose retries do not take long, and a client on it. */
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

const CONTEXT: RequestContext = { actor: { name: 'test' }, face: 'api' };

/** Widgets in a namespace behind a WireServer, by the Kubernetes API as far as a client needs it. */
export class WidgetApi {
  readonly storage: MemoryStorage<Widget>;
  readonly handle: Handler;
  /** Stands in for the next watches, lists and so on, in order, as long as there are any that take the request. */
  readonly faults: { readonly takes: (request: Received) => boolean; readonly handle: Handler }[] = [];

  constructor(window?: number) {
    const log = new EventLog({
      clock: systemClock,
      bookmarkInterval: 1000,
      ...(window === undefined ? {} : { window }),
    });
    this.storage = new MemoryStorage<Widget>(widgetKind, { clock: systemClock, log });
    this.handle = async (request, response) => {
      const [fault] = this.faults;
      if (fault?.takes(request) !== true) return this.serve(request, response);
      this.faults.shift();
      return fault.handle(request, response);
    };
  }

  async serve({ method, path, query, body }: Received, response: ServerResponse): Promise<void> {
    const [, namespace, name, subResource] =
      /^\/apis\/test\.sluice\.dev\/v1(?:\/namespaces\/([^/]+))?\/widgets(?:\/([^/]+)(?:\/([^/]+))?)?$/.exec(path) ?? [];
    const selector = query.get('labelSelector');
    const selection = { namespace, labelSelector: selector === null ? undefined : labelSelector(selector) };
    if (method === 'GET' && query.get('watch') === 'true') return this.#watch(response, query, selection);
    if (method === 'GET' && name === undefined) {
      const limit = Number(query.get('limit') ?? 0) || undefined;
      const { items, ...metadata } = await this.storage.list(CONTEXT, {
        ...selection,
        limit,
        continue: query.get('continue') ?? undefined,
      });
      return sendJson(response, 200, { kind: 'WidgetList', apiVersion: widgetKind.apiVersion, metadata, items });
    }
    const object = body === '' ? {} : JSON.parse(body);
    if (method === 'POST')
      return sendJson(response, 201, await this.storage.create(CONTEXT, widgetKind.complete(object)));
    const key = { namespace, name: name ?? '' };
    const old = await this.storage.get(CONTEXT, key);
    if (method === 'GET') return sendJson(response, 200, old);
    if (method === 'DELETE') {
      await this.storage.delete(CONTEXT, key, object.preconditions);
      return sendJson(response, 200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
    }
    const next = widgetKind.complete(method === 'PATCH' ? (applyMergePatch(old, object) as Widget) : object);
    const stored =
      subResource === undefined
        ? await this.storage.update(CONTEXT, next)
        : await this.storage.updateSubResource(CONTEXT, subResource, next);
    sendJson(response, 200, stored);
  }

  async #watch(response: ServerResponse, query: URLSearchParams, selection: object): Promise<void> {
    const end = new AbortController();
    response.on('close', () => end.abort());
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    try {
      const resourceVersion = query.get('resourceVersion') ?? '';
      for await (const event of this.storage.watch(CONTEXT, { ...selection, resourceVersion, signal: end.signal })) {
        // A test that has ended the answer itself.
        if (response.writableEnded) return;
        response.write(
          eventLine(event.type, event.type === 'BOOKMARK' ? bookmark(event.resourceVersion) : event.object),
        );
      }
      response.end();
    } catch (error) {
      const code = isSluiceError(error, 'Expired') ? 410 : 500;
      const reason = code === 410 ? 'Expired' : 'InternalError';
      response.end(eventLine('ERROR', { kind: 'Status', status: 'Failure', message: messageOf(error), reason, code }));
    }
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
