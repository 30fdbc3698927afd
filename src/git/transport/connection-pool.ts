import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { isLoopback } from '../remote-url.ts';

/** The server may be silent for long while it checks a push; how long a whole call may take is limited by its caller. */
const LIMITS = {
  // A connection for every request: one that is stalled holds up no other.
  allowH2: false,
  connectTimeout: 10_000,
  headersTimeout: 0,
  bodyTimeout: 60_000,
} as const;

/** Connections to one server, kept open between calls. Proxies are taken from the usual variables, never for this machine itself. */
export function openPool(url: string): Dispatcher {
  return isLoopback(new URL(url).hostname) ? new Agent(LIMITS) : new EnvHttpProxyAgent(LIMITS);
}
