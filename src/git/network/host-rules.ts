import { promises as dns, type LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { isLocalAddress } from './local-address.ts';

/** The option of the command line that permits a host. */
export const ALLOW_OPTION = '--allow-git-host';
/** The same for commands that run without a server. */
const ALLOW_VARIABLE = 'SLUICE_ALLOW_GIT_HOST';

const ENTRY = /^(\[[0-9a-fA-F:.]+\]|[^:/@\s[\]]+)(?::(\d{1,5}))?$/;
const MAX_ENTRIES = 1000;

/** The endpoint of a remote. */
export interface Endpoint {
  /** The address of the remote, for messages. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
}

export interface HostRulesOptions {
  /** The addresses of a name. Default: as the system resolves names. */
  readonly resolve?: (host: string) => Promise<LookupAddress[]>;
  /** Default: isLocalAddress. */
  readonly isLocal?: (address: string) => boolean;
}

/**
 * The hosts that Sluice may connect to for Git. A user who may register a repository chooses an address, and the server connects to
 * it from inside its network; so a host at a local address is refused with any scheme, unless the operator permits it. A name is
 * resolved once for each connection, and the connection goes to the address that was checked.
 */
export class HostRules {
  readonly #allowed = new Set<string>();
  readonly #resolve: (host: string) => Promise<LookupAddress[]>;
  readonly #isLocal: (address: string) => boolean;

  /**
   * `entries` are `HOST` or `HOST:PORT`; a host without a port is permitted with every port. Throws InvalidInput for
   * other entries.
   */
  constructor(entries: readonly string[] = [], options: HostRulesOptions = {}) {
    this.#resolve = options.resolve ?? ((host) => dns.lookup(host, { all: true }));
    this.#isLocal = options.isLocal ?? isLocalAddress;
    if (entries.length > MAX_ENTRIES)
      throw new SluiceError('InvalidInput', `${ALLOW_OPTION} takes at most ${MAX_ENTRIES} hosts`);
    for (const entry of entries) this.#allowed.add(entryKey(entry));
  }

  /** True for a host that the operator permits: at any address, and over plain http. */
  isAllowed(host: string, port: number): boolean {
    const name = plainHost(host);
    return this.#allowed.has(name) || this.#allowed.has(`${name}:${port}`);
  }

  /**
   * True for a host whose text alone shows that it is local: an IP address, or `localhost`. Other names are to be resolved and checked;
   * see `addresses`.
   */
  isRefused(host: string, port: number): boolean {
    const name = plainHost(host);
    if (this.isAllowed(host, port)) return false;
    return isIP(name) === 0 ? /^(.*\.)?localhost$/.test(name) : this.#isLocal(name);
  }

  /**
   * The addresses to connect to, all of them checked; undefined for a host that the operator permits, which is connected to by name.
   * Throws Refused if one of them is local, and Unavailable if there is none.
   */
  async addresses(endpoint: Endpoint): Promise<readonly LookupAddress[] | undefined> {
    const { host, port } = endpoint;
    if (this.isAllowed(host, port)) return undefined;
    const name = plainHost(host);
    const family = isIP(name);
    const found = family === 0 ? await this.#lookUp(name, endpoint) : [{ address: name, family }];
    if (found.some(({ address }) => this.#isLocal(address))) throw localHostError(endpoint);
    return found;
  }

  async #lookUp(name: string, { url }: Endpoint): Promise<LookupAddress[]> {
    let found: LookupAddress[];
    try {
      found = await this.#resolve(name);
    } catch (error) {
      const message = `cannot connect to remote ${url}: cannot resolve its host (${messageOf(error)}); check the name`;
      throw new SluiceError('Unavailable', message, { cause: error });
    }
    if (found.length > 0) return found;
    throw new SluiceError('Unavailable', `cannot connect to remote ${url}: its host has no address; check the name`);
  }
}

/** For use as a library: repositories on this machine are permitted. */
export const LOOPBACK_ALLOWED = new HostRules(['localhost', '127.0.0.1', '[::1]']);

/** The error for a remote whose host is local and not permitted. */
export function localHostError(endpoint: Endpoint): SluiceError {
  const why = 'its host is at a local address, which may be a service that trusts this network';
  return new SluiceError('Refused', `cannot connect to remote ${endpoint.url}: ${why}; ${permitHint(endpoint)}`);
}

/** Returns the next step for a host that is not permitted, for messages. */
export function permitHint(endpoint: Endpoint): string {
  return `use a public https:// or ssh:// address, or permit the host: start the server ("sluice up", or "sluice serve" in its Deployment) with ${ALLOW_OPTION} ${entryOf(endpoint)}, or set ${permittingVariable(endpoint)} for commands that run without it`;
}

/** The variable, with its value, that permits a host to commands which run without a server. */
export function permittingVariable(endpoint: Endpoint): string {
  return `${ALLOW_VARIABLE}=${entryOf(endpoint)}`;
}

function entryOf({ host, port }: Endpoint): string {
  const name = plainHost(host);
  return `${isIP(name) === 6 ? `[${name}]` : name}:${port}`;
}

function entryKey(entry: string): string {
  const [, host, port] = ENTRY.exec(entry) ?? [];
  const url = host === undefined ? null : URL.parse(`http://${host}/`);
  if (url === null || (port !== undefined && !(Number(port) >= 1 && Number(port) <= 65_535)))
    throw new SluiceError(
      'InvalidInput',
      `${ALLOW_OPTION} ${JSON.stringify(entry.slice(0, 200))} must be HOST or HOST:PORT, such as gitea:3000`,
    );
  const name = plainHost(url.hostname);
  return port === undefined ? name : `${name}:${Number(port)}`;
}

/** Lower case, without brackets and without the dot at the end of a full name. */
function plainHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
}
