import { messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { ApiServer } from '../../server/api-server.ts';
import { type Listener, listen } from '../../server/listener.ts';
import type { PathHandler } from '../../server/request/path-handler.ts';
import type { RequestRecord } from '../../server/request/request-record.ts';
import type { ListenAddress } from './listen-address.ts';

export interface ServeWebhooksOptions {
  readonly address: ListenAddress;
  readonly clock: Clock;
  readonly handle: PathHandler;
  readonly onRequest: (record: RequestRecord) => void;
  readonly warn: (subject: string, message: string) => void;
}

/** Serves webhooks without TLS, for an ingress in front of it. It refuses every other request: it authenticates no users. */
export function serveWebhooks({ address, clock, handle, onRequest, warn }: ServeWebhooksOptions): Promise<Listener> {
  const server = new ApiServer({
    registry: new Registry(),
    clock,
    authenticator: { authenticate: () => undefined },
    authorizer: { authorize: async () => ({ allowed: false, reason: 'only webhooks are served here' }) },
    webhooks: handle,
    onRequest,
    onError: (error, where) => warn(where, messageOf(error)),
  });
  return listen({
    host: address.host,
    port: address.port,
    handle: (request, response) => void server.handle(request, response),
    onError: (error) => warn('connections', messageOf(error)),
  });
}
