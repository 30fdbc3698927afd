import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { checkedLookup } from '../../network/checked-lookup.ts';
import type { GitNetwork } from '../../network/git-network.ts';
import { type Endpoint, localHostError } from '../../network/host-rules.ts';
import { usesProxy } from '../../network/proxies.ts';
import { endpointOf, isLoopback } from '../../network/remote-url.ts';
import { secureContextFor } from './secure-contexts.ts';

/** The server may be silent for long while it checks a push; how long a whole call may take is limited by its caller. */
const LIMITS = {
  // A connection for every request: a stalled one blocks no other.
  allowH2: false,
  connectTimeout: 10_000,
  headersTimeout: 0,
  bodyTimeout: 60_000,
} as const;

/**
 * Connections to one server, kept open between calls, and reopened when the trusted authorities change. Each goes to an address that
 * the host rules permit. Proxies come from the standard environment variables, and are never used for this machine itself.
 */
export class ConnectionPool {
  readonly #isLocal: boolean;
  readonly #usesTls: boolean;
  readonly #endpoint: Endpoint;
  readonly #network: GitNetwork;
  readonly #isVerified: boolean;
  readonly #open = new Set<Dispatcher>();
  #current: { readonly authorities: string | undefined; readonly dispatcher: Dispatcher } | undefined;

  /** With `isVerified: false` the certificate of the server is not verified, as a user has requested for it; that of a proxy is. */
  constructor(url: string, network: GitNetwork, { isVerified = true }: { readonly isVerified?: boolean } = {}) {
    const address = new URL(url);
    this.#usesTls = address.protocol === 'https:';
    this.#endpoint = endpointOf(address);
    this.#network = network;
    this.#isVerified = isVerified;
    this.#isLocal = isLoopback(this.#endpoint.host);
  }

  /**
   * Must be called before each request. A proxy resolves names itself, so Sluice can only resolve them as well: it refuses a name
   * with a local address, and leaves a name that only the proxy can resolve to the rules of the proxy. Throws Refused.
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

  /**
   * `authorities` are PEM certificates that are trusted in addition to the default ones. Throws InvalidInput for other text, if TLS is used.
   */
  for(authorities: string | undefined): Dispatcher {
    if (this.#current !== undefined && this.#current.authorities === authorities) return this.#current.dispatcher;
    const dispatcher = this.#openDispatcher(authorities);
    const previous = this.#current?.dispatcher;
    this.#open.add(dispatcher);
    this.#current = { authorities, dispatcher };
    // Requests in progress may end on the old connections. It rejects for those that `close` has ended already.
    if (previous !== undefined) {
      const forget = () => this.#open.delete(previous);
      void previous.close().then(forget, forget);
    }
    return dispatcher;
  }

  /** Closes all connections; requests in progress fail. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((dispatcher) => dispatcher.destroy()));
    this.#open.clear();
  }

  #openDispatcher(authorities: string | undefined): Dispatcher {
    // A proxy may use TLS where the remote does not.
    const mayUseTls = this.#usesTls || (!this.#isLocal && usesProxy());
    const secureContext = mayUseTls ? secureContextFor(authorities, this.#network.authorities) : undefined;
    const tls = secureContext === undefined ? {} : { secureContext };
    // The proxy itself is chosen by the operator, so its name is resolved as any other.
    const serverTls = this.#isVerified ? tls : { ...tls, rejectUnauthorized: false };
    const connect = { ...serverTls, lookup: checkedLookup(this.#network.hosts, this.#endpoint) };
    return this.#isLocal
      ? new Agent({ ...LIMITS, connect })
      : new EnvHttpProxyAgent({ ...LIMITS, connect, requestTls: serverTls, proxyTls: tls });
  }
}
