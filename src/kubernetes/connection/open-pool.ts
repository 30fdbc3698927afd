import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { ClusterAccess, Proof } from '../access/cluster-access.ts';

/** A pool of connections to one server, with another client certificate than that of the access if one is given. */
export function openPool(
  { tls, proxy }: ClusterAccess,
  certificate: Proof['certificate'],
  connectTimeout: number,
): Dispatcher {
  const { insecure, serverName, ...files } = tls;
  const secure = {
    ...files,
    ...certificate,
    rejectUnauthorized: !insecure,
    timeout: connectTimeout,
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
  // HTTP/1.1: one connection for each watch, so that a stalled one delays no other request.
  const allowH2 = false;
  if (proxy !== undefined) return new ProxyAgent({ uri: proxy, allowH2, requestTls: secure, connectTimeout });
  return new Agent({ allowH2, connect: { ...secure, keepAlive: true, keepAliveInitialDelay: 30_000 } });
}
