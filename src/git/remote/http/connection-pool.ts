import { promises as dns } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { createSecureContext } from 'node:tls';
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { trustedAuthorities } from '../../network/certificate-authorities.ts';
import type { GitNetwork } from '../../network/git-network.ts';
import { type Endpoint, localHostError } from '../../network/host-rules.ts';
import { usesProxy } from '../../network/proxies.ts';
import { endpointOf, isLoopback } from '../../network/remote-url.ts';

/** The server may be silent for long while it checks a push; how long a whole call may take is limited by its caller. */
const LIMITS = {
  // A connection for every request: a stalled one blocks no other.
  allowH2: false,
  connectTimeout: 10_000,
  headersTimeout: 0,
  bodyTimeout: 60_000,
} as const;

/**
 * Connections to one server, kept open between calls, and opened again when other authorities are trusted. Each goes to an address that
 * the rules on hosts permit. Proxies are taken from the usual variables, never for this machine itself.
 */
export class ConnectionPool {
  readonly #isLocal: boolean;
  readonly #endpoint: Endpoint;
  readonly #network: GitNetwork;
  readonly #open = new Set<Dispatcher>();
  #current: { readonly authorities: string | undefined; readonly dispatcher: Dispatcher } | undefined;

  constructor(url: string, network: GitNetwork) {
    this.#endpoint = endpointOf(new URL(url));
    this.#network = network;
    this.#isLocal = isLoopback(this.#endpoint.host);
  }

  /**
   * To be called before each request. A proxy resolves names itself, so all that can be done is to resolve them here too: one that
   * leads to a local address is refused, and one that is only known to the proxy is left to its rules. Throws Refused.
   */
  async checkHost(): Promise<void> {
    const { hosts } = this.#network;
    const { host, port } = this.#endpoint;
    if (hosts.isRefused(host, port)) throw localHostError(this.#endpoint);
    if (this.#isLocal || !usesProxy()) return;
    try {
      await hosts.addresses(this.#endpoint);
    } catch (error) {
      if (!isSluiceError(error, 'Unavailable')) throw error;
    }
  }

  /** `authorities` are certificates in PEM of those that are trusted besides the usual ones. Throws InvalidInput for others. */
  for(authorities: string | undefined): Dispatcher {
    if (this.#current !== undefined && this.#current.authorities === authorities) return this.#current.dispatcher;
    const dispatcher = this.#openDispatcher(authorities);
    const previous = this.#current?.dispatcher;
    this.#open.add(dispatcher);
    this.#current = { authorities, dispatcher };
    // Requests in progress may end on the old connections.
    if (previous !== undefined) void previous.close().finally(() => this.#open.delete(previous));
    return dispatcher;
  }

  /** Closes all connections; requests in progress fail. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((dispatcher) => dispatcher.destroy()));
    this.#open.clear();
  }

  #openDispatcher(authorities: string | undefined): Dispatcher {
    // Made once: to read a hundred authorities for each connection takes longer than the connection.
    const trusted = trustedAuthorities(authorities, this.#network.authorities);
    const tls = trusted === undefined ? {} : { secureContext: createSecureContext({ ca: trusted }) };
    // The proxy itself is chosen by the operator, so its name is resolved as any other.
    const connect = { ...tls, lookup: this.#lookup };
    return this.#isLocal
      ? new Agent({ ...LIMITS, connect })
      : new EnvHttpProxyAgent({ ...LIMITS, connect, requestTls: tls, proxyTls: tls });
  }

  /** Resolves once and checks; the connection goes to what this returns, even if the name resolves otherwise a moment later. */
  readonly #lookup: LookupFunction = (host, options, callback) => {
    const { hosts } = this.#network;
    void hosts
      .addresses(this.#endpoint)
      .then((checked) => checked ?? dns.lookup(host, { all: true }))
      .then(
        (addresses) => {
          const { family } = options;
          const wanted = family === 4 || family === 6 ? addresses.filter((one) => one.family === family) : addresses;
          const [first] = wanted.length > 0 ? wanted : addresses;
          if (options.all === true) callback(null, [...addresses]);
          else callback(null, first?.address ?? '', first?.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, '', 0),
      );
  };
}
