import { createSecureContext } from 'node:tls';
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { trustedAuthorities } from '../certificate-authorities.ts';
import { isLoopback } from '../remote-url.ts';

/** The server may be silent for long while it checks a push; how long a whole call may take is limited by its caller. */
const LIMITS = {
  // A connection for every request: one that is stalled holds up no other.
  allowH2: false,
  connectTimeout: 10_000,
  headersTimeout: 0,
  bodyTimeout: 60_000,
} as const;

/**
 * Connections to one server, kept open between calls, and made anew when other authorities are trusted. Proxies are taken from the
 * usual variables, never for this machine itself.
 */
export class ConnectionPool {
  readonly #isLocal: boolean;
  readonly #open = new Set<Dispatcher>();
  #current: { readonly authorities: string | undefined; readonly dispatcher: Dispatcher } | undefined;

  constructor(url: string) {
    this.#isLocal = isLoopback(new URL(url).hostname);
  }

  /** `authorities` are certificates in PEM of those that are trusted besides the usual ones. Throws InvalidInput for others. */
  for(authorities: string | undefined): Dispatcher {
    if (this.#current !== undefined && this.#current.authorities === authorities) return this.#current.dispatcher;
    const dispatcher = this.#openDispatcher(authorities);
    const previous = this.#current?.dispatcher;
    this.#open.add(dispatcher);
    this.#current = { authorities, dispatcher };
    // What is under way on the old connections may end there.
    if (previous !== undefined) void previous.close().finally(() => this.#open.delete(previous));
    return dispatcher;
  }

  /** Closes all connections; what is under way fails. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((dispatcher) => dispatcher.destroy()));
    this.#open.clear();
  }

  #openDispatcher(authorities: string | undefined): Dispatcher {
    // Made once: to read a hundred authorities for each connection takes longer than the connection.
    const tls =
      authorities === undefined ? {} : { secureContext: createSecureContext({ ca: trustedAuthorities(authorities) }) };
    return this.#isLocal
      ? new Agent({ ...LIMITS, connect: tls })
      : new EnvHttpProxyAgent({ ...LIMITS, connect: tls, requestTls: tls, proxyTls: tls });
  }
}
