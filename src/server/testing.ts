import { systemClock } from '../foundation/time/clock.ts';
import type { Kind } from '../resource/schema/kind.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { MemoryStorage } from '../resource/storage/memory/memory-storage.ts';
import { Registry } from '../resource/storage/registry.ts';
import { EventLog, type EventLogOptions } from '../resource/watch/event-log.ts';
import { ApiServer } from './api-server.ts';
import type { ApiServerOptions } from './api-server-options.ts';
import { AUTHENTICATED_GROUP, MASTERS_GROUP } from './authentication/user.ts';
import { type Listener, type ListenerTls, type ListenOptions, listen } from './listener.ts';

/** A server on loopback for tests: widgets in memory, and users whose token is their name. */
export interface TestServer {
  readonly listener: Listener;
  readonly server: ApiServer;
  readonly registry: Registry;
  readonly log: EventLog;
  /** Internal errors that the server reported. */
  readonly errors: unknown[];
  /** Sends a request as a user; `admin` may do everything. */
  fetch(path: string, init?: RequestInit, user?: string): Promise<Response>;
  stop(): Promise<void>;
}

export async function startTestServer(
  options: Partial<ApiServerOptions> = {},
  kinds: readonly Kind[] = [widgetKind as Kind],
  tls?: ListenerTls,
  logOptions: Partial<EventLogOptions> = {},
  listenOptions: Partial<ListenOptions> = {},
): Promise<TestServer> {
  const clock = systemClock;
  const log = new EventLog({ clock, ...logOptions });
  const registry = new Registry();
  for (const kind of kinds) registry.register(new MemoryStorage(kind, { clock, log }));
  const errors: unknown[] = [];
  const server = new ApiServer({
    registry,
    clock,
    authenticator: {
      authenticate: ({ headers }) => {
        const name = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1];
        const groups = [AUTHENTICATED_GROUP, ...(name === 'admin' ? [MASTERS_GROUP] : [])];
        return name === undefined ? undefined : { name, groups };
      },
    },
    authorizer: { authorize: async ({ user }) => ({ allowed: user.groups.includes(MASTERS_GROUP), reason: '' }) },
    onError: (error) => errors.push(error),
    ...options,
  });
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    ...(tls === undefined ? {} : { tls }),
    handle: (request, response) => void server.handle(request, response),
    onError: (error) => errors.push(error),
    onStop: () => server.endWatches(),
    ...listenOptions,
  });
  return {
    ...{ listener, server, registry, log, errors },
    fetch: (path, init = {}, user = 'admin') =>
      fetch(`${listener.url}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${user}`, ...(init.headers as Record<string, string> | undefined) },
      }),
    stop: async () => {
      log.close();
      await listener.stop(1000);
    },
  };
}

export const WIDGETS = '/apis/test.sluice.dev/v1/namespaces/default/widgets';
export const MERGE_PATCH = 'application/merge-patch+json';

/** A widget as a client writes it. */
export function widgetBody(name: string, spec: object = { size: 1 }, metadata: object = {}) {
  return { apiVersion: 'test.sluice.dev/v1', kind: 'Widget', metadata: { name, ...metadata }, spec };
}

/** An object in a response. */
export interface WidgetAnswer {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly managedFields?: readonly { readonly manager: string; readonly operation: string }[];
  };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Sends a body as JSON, or a text as it is. */
export function send(
  api: TestServer,
  method: string,
  path: string,
  body: unknown,
  contentType = 'application/json',
): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return api.fetch(path, { method, headers: { 'content-type': contentType }, body: text });
}

/** Creates a widget and returns it. */
export async function createWidget(
  api: TestServer,
  name: string,
  spec?: object,
  metadata?: object,
): Promise<WidgetAnswer> {
  const response = await send(api, 'POST', WIDGETS, widgetBody(name, spec, metadata));
  if (response.status !== 201) throw new Error(await response.text());
  return (await response.json()) as WidgetAnswer;
}

/** One line of a watch. */
export interface WatchLine {
  readonly type: string;
  readonly object: Record<string, unknown> & { readonly metadata: Record<string, unknown> };
}

/** Opens a watch and reads it line by line; `next` is undefined when it has ended. */
export async function openWatch(
  api: TestServer,
  query = 'watch=true',
  headers: Record<string, string> = {},
): Promise<{ next(): Promise<WatchLine | undefined>; close(): Promise<void> }> {
  const response = await api.fetch(`${WIDGETS}?${query}`, { headers });
  if (response.status !== 200) throw new Error(await response.text());
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  return {
    async next() {
      for (;;) {
        const end = rest.indexOf('\n');
        if (end >= 0) {
          const line = rest.slice(0, end);
          rest = rest.slice(end + 1);
          return JSON.parse(line) as WatchLine;
        }
        const chunk = await reader?.read();
        if (chunk === undefined || chunk.done) return undefined;
        rest += chunk.value;
      }
    },
    close: async () => reader?.cancel(),
  };
}
