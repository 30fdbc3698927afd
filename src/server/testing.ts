import { systemClock } from '../foundation/clock.ts';
import { EventLog } from '../resource/event-log.ts';
import type { Kind } from '../resource/kind.ts';
import { MemoryStorage } from '../resource/memory-storage.ts';
import { Registry } from '../resource/registry.ts';
import { widgetKind } from '../resource/testing.ts';
import { ApiServer } from './api-server.ts';
import type { ApiServerOptions } from './api-server-options.ts';
import { AUTHENTICATED_GROUP, MASTERS_GROUP } from './authentication/user.ts';
import { type Listener, type ListenerTls, listen } from './listener.ts';

/** A server on loopback for tests: widgets in memory, and users whose token is their name. */
export interface TestServer {
  readonly listener: Listener;
  readonly server: ApiServer;
  readonly registry: Registry;
  readonly log: EventLog;
  /** What the server blamed on itself. */
  readonly errors: unknown[];
  /** Asks as a user; `admin` may do everything. */
  fetch(path: string, init?: RequestInit, user?: string): Promise<Response>;
  stop(): Promise<void>;
}

export async function startTestServer(
  options: Partial<ApiServerOptions> = {},
  kinds: readonly Kind[] = [widgetKind as Kind],
  tls?: ListenerTls,
): Promise<TestServer> {
  const clock = systemClock;
  const log = new EventLog({ clock });
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
    authorizer: { authorize: ({ user }) => ({ allowed: user.groups.includes(MASTERS_GROUP), reason: '' }) },
    onError: (error) => errors.push(error),
    ...options,
  });
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    ...(tls === undefined ? {} : { tls }),
    handle: (request, response) => void server.handle(request, response),
    onStop: () => server.endWatches(),
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
