import { SluiceError } from '../../foundation/sluice-error.ts';
import { cleanText } from '../../foundation/text/clean-text.ts';
import { type Endpoint, type HostRules, localHostError, permitHint, permittingVariable } from './host-rules.ts';
import { looksLikeSsh, readSshAddress } from './ssh-address.ts';

export interface RemoteAddress {
  /** The URL for git: normalised, without a password, and without a user except for ssh. */
  readonly url: string;
  /** The one transport that git may use for it. */
  readonly protocol: 'https' | 'http' | 'file' | 'ssh';
  /** Undefined for a file. */
  readonly endpoint: Endpoint | undefined;
}

/**
 * Checks the address of a remote. Throws InvalidInput for everything but https, http (to hosts that the operator permits), file and
 * ssh, which may be written as `user@host:path` too; Refused for a host that is local by its text. A name that leads to a local address
 * is found out when it is connected to.
 */
export function checkRemoteUrl(text: string, hosts: HostRules): RemoteAddress {
  const address = readRemoteUrl(text);
  const { endpoint, protocol } = address;
  if (endpoint === undefined) return address;
  const { host, port } = endpoint;
  if (hosts.isRefused(host, port)) throw localHostError(endpoint);
  if (protocol === 'http' && !hosts.isAllowed(host, port))
    throw refused(text, `http sends everything in clear text; ${permitHint(endpoint)}`);
  return address;
}

/** The same without the rules on hosts. */
export function readRemoteUrl(text: string): RemoteAddress {
  if (looksLikeSsh(text)) {
    const address = readSshAddress(text);
    if ('problem' in address) throw refused(text, `it ${address.problem}`);
    const { url, host, port } = address;
    return { url, protocol: 'ssh', endpoint: { url, host, port } };
  }
  const url = /[\s\x00-\x1f\x7f]/.test(text) ? null : URL.parse(text);
  if (url === null) throw refused(text, 'it is not a URL');
  if (url.username !== '' || url.password !== '')
    throw refused(text, 'it contains a user name or password: put credentials into the Secret in secretRef');
  if (url.search !== '' || url.hash !== '') throw refused(text, 'it has a query or a fragment');
  switch (url.protocol) {
    case 'https:':
      return { url: url.href, protocol: 'https', endpoint: endpointOf(url) };
    case 'http:':
      return { url: url.href, protocol: 'http', endpoint: endpointOf(url) };
    case 'file:':
      if (url.host !== '') throw refused(text, 'a file URL names no host: write file:///path');
      return { url: url.href, protocol: 'file', endpoint: undefined };
    default:
      throw refused(text, 'only https, ssh, http and file are supported');
  }
}

/** Returns the endpoint of an http or https URL. */
export function endpointOf({ href, protocol, hostname, port }: URL): Endpoint {
  const usual = protocol === 'http:' ? 80 : 443;
  return { url: href, host: hostname, port: port === '' ? usual : Number(port) };
}

/** The setting that a command without a server takes to connect to an address that the operator permits; undefined where it needs none. */
export function permittedSetting(text: string, hosts: HostRules): string | undefined {
  if (!text.includes('://') && !looksLikeSsh(text)) return undefined;
  const { endpoint } = readRemoteUrl(text);
  return endpoint !== undefined && hosts.isAllowed(endpoint.host, endpoint.port)
    ? permittingVariable(endpoint)
    : undefined;
}

/** True for the names and addresses by which a machine reaches itself. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function refused(text: string, why: string): SluiceError {
  return new SluiceError('InvalidInput', `remote ${JSON.stringify(cleanText(text, 200))} is refused: ${why}`);
}
