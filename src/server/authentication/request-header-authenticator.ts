import type { Clock } from '../../foundation/time/clock.ts';
import type { AuthenticationRequest, Authenticator } from './authenticator.ts';
import type { VerifiedCertificate } from './authorities.ts';
import type { RequestHeaderTrust } from './cluster-trust.ts';
import type { User } from './user.ts';

type Headers = AuthenticationRequest['headersDistinct'];

interface Judged {
  readonly trust: RequestHeaderTrust;
  /** Undefined: the connection is not that of the proxy. */
  readonly proof: VerifiedCertificate | undefined;
}

/**
 * Authenticates the users of requests that the aggregator of a kube-apiserver forwards, by its `X-Remote-…` headers. Only a connection whose
 * client certificate an authority of the trust issued, for an allowed name, has its headers read; on every other one they are ignored.
 * The trust is that of the present moment, also for connections that are open longer.
 */
export class RequestHeaderAuthenticator implements Authenticator {
  readonly #clock: Clock;
  readonly #trust: () => RequestHeaderTrust | undefined;
  readonly #judged = new WeakMap<object, Judged>();

  constructor(clock: Clock, trust: () => RequestHeaderTrust | undefined) {
    this.#clock = clock;
    this.#trust = trust;
  }

  authenticate({ socket, headersDistinct }: AuthenticationRequest): User | undefined {
    const trust = this.#trust();
    if (trust === undefined) return undefined;
    let judged = this.#judged.get(socket);
    if (judged?.trust !== trust) {
      judged = { trust, proof: proxyOf(socket, trust) };
      this.#judged.set(socket, judged);
    }
    const { proof } = judged;
    const now = this.#clock.now();
    if (proof === undefined || now < proof.fromMs || now >= proof.untilMs) return undefined;
    return userOf(headersDistinct, trust);
  }
}

function proxyOf(socket: unknown, trust: RequestHeaderTrust): VerifiedCertificate | undefined {
  const certificate = trust.authorities.verify(socket);
  if (certificate === undefined || trust.allowedNames.length === 0) return certificate;
  // A certificate with several common names is that of none of them.
  const name = certificate.legacy.subject?.CN as string | readonly string[] | undefined;
  return typeof name === 'string' && trust.allowedNames.includes(name) ? certificate : undefined;
}

/** The user that headers name; undefined if they name none, or several. */
function userOf(headers: Headers, trust: RequestHeaderTrust): User | undefined {
  const name = single(headers, trust.usernameHeaders);
  const uid = single(headers, trust.uidHeaders);
  const groups = trust.groupHeaders.flatMap((header) => headers[header] ?? []).filter((group) => group !== '');
  const extra = extraOf(headers, trust.extraPrefixes);
  try {
    if (name === undefined || uid === undefined || name === '') return undefined;
    return {
      name: decodeUtf8(name),
      groups: [...new Set(groups.map(decodeUtf8))],
      ...(uid === '' ? {} : { uid: decodeUtf8(uid) }),
      ...(extra.size === 0 ? {} : { extra: decodedExtra(extra) }),
    };
  } catch {
    // Text that is not UTF-8 must not become another name that reads alike.
    return undefined;
  }
}

/** The value of the first of these headers that has one; empty if none has; undefined if it is repeated. */
function single(headers: Headers, names: readonly string[]): string | undefined {
  const values = names.map((name) => headers[name] ?? []).find((found) => found.some((value) => value !== ''));
  if (values === undefined) return '';
  return values.length === 1 ? values[0] : undefined;
}

function extraOf(headers: Headers, prefixes: readonly string[]): Map<string, readonly string[]> {
  const extra = new Map<string, readonly string[]>();
  for (const prefix of prefixes)
    for (const [header, values = []] of Object.entries(headers)) {
      if (!header.startsWith(prefix)) continue;
      const key = unescapeKey(header.slice(prefix.length));
      extra.set(key, [...(extra.get(key) ?? []), ...values]);
    }
  return extra;
}

/** By entries, so that a key such as __proto__ is a key like any other. */
function decodedExtra(extra: ReadonlyMap<string, readonly string[]>): Record<string, readonly string[]> {
  return Object.fromEntries([...extra].map(([key, values]) => [key, values.map(decodeUtf8)]));
}

/** The aggregator encodes the characters that a header name cannot have. */
function unescapeKey(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Node reads headers as Latin-1; the aggregator sends UTF-8. */
function decodeUtf8(value: string): string {
  return utf8.decode(Buffer.from(value, 'latin1'));
}
