import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { ClusterAccess, Proof } from '../access/cluster-access.ts';

/** What a proof can have instead of what is in the access. */
export interface PoolCertificates {
  readonly certificate: Proof['certificate'] | undefined;
  readonly ca: string | undefined;
}

/** A pool of connections to one server, with another client certificate and other authorities than those of the access if they are given. */
export function openPool(
  { tls, proxy, lookup }: ClusterAccess,
  { certificate, ca }: PoolCertificates,
  connectTimeout: number,
): Dispatcher {
  const { insecure, serverName, ...files } = tls;
  const secure = {
    ...files,
    ...certificate,
    ...(ca === undefined ? {} : { ca }),
    rejectUnauthorized: !insecure,
    timeout: connectTimeout,
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(lookup === undefined ? {} : { lookup }),
  };
  // HTTP/1.1: one connection for each watch, so that a stalled one delays no other request.
  const allowH2 = false;
  if (proxy !== undefined) return new ProxyAgent({ uri: proxy, allowH2, requestTls: secure, connectTimeout });
  return new Agent({ allowH2, connect: { ...secure, keepAlive: true, keepAliveInitialDelay: 30_000 } });
}
