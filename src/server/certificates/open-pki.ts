import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, timestamp } from '../../foundation/time/clock.ts';
import { DNS_SUBDOMAIN, followsRule } from '../../resource/object/name-rules.ts';
import { issueCertificate, type KeyPair } from './issue-certificate.ts';
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './private-file.ts';

export interface PkiOptions {
  /** Folder of the keys; created with mode 0700. */
  readonly folder: string;
  /** DNS names and IP addresses under which the server is reached; see `serverNames`. */
  readonly names: readonly string[];
  readonly clock: Clock;
  /** Called with what an operator should know: a replaced authority, a clock that cannot be right. */
  readonly onNote: (note: string) => void;
}

/** The server's own certificate authority and its certificate. */
export interface Pki {
  /** The certificate of the authority, PEM: what clients must trust. */
  readonly authority: string;
  readonly server: KeyPair;
  /**
   * Issues a certificate that authenticates a client as this user, with these groups. `lifetime` in milliseconds, at most
   * that of the authority. InvalidInput for names that a certificate cannot contain.
   */
  issueClient(user: string, groups: readonly string[], lifetime: number): Promise<KeyPair>;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AUTHORITY_LIFETIME_MS = 10 * 365 * DAY_MS;
const SERVER_LIFETIME_MS = 365 * DAY_MS;
const RENEWAL_MARGIN_MS = 30 * DAY_MS;
/** Clocks of other machines may be behind. */
const CLOCK_LEEWAY_MS = HOUR_MS;
const MAX_FILE_BYTES = 64 * 1024;
/** The upper bound of X.520 for common names and organisation names. */
const MAX_NAME_LENGTH = 64;
const MAX_GROUPS = 100;

/**
 * Opens the folder of keys, and creates missing files. `ca.pem` and `server.pem` each contain a certificate and its key, and are
 * replaced atomically. The server's certificate is issued again when it expires within 30 days, lacks a name or cannot be read. The
 * authority, which clients trust, is replaced only when it is missing or expired; one that cannot be read is Corrupt.
 */
export async function openPki(options: PkiOptions): Promise<Pki> {
  const { folder, clock } = options;
  await makePrivateFolder(folder);
  const authority = await openAuthority(join(folder, 'ca.pem'), options);
  const server = await openServer(join(folder, 'server.pem'), authority, options);
  return {
    authority: authority.certificate,
    server,
    async issueClient(user, groups, lifetime) {
      if (groups.length > MAX_GROUPS)
        throw new SluiceError('InvalidInput', `a client certificate has at most ${MAX_GROUPS} groups`);
      for (const name of [user, ...groups])
        if (name === '' || name.length > MAX_NAME_LENGTH || /[\u0000-\u001f\u007f]/.test(name))
          throw new SluiceError(
            'InvalidInput',
            `${JSON.stringify(name)} must have 1 to ${MAX_NAME_LENGTH} printable characters`,
          );
      const request = { commonName: user, organisations: groups, usage: 'client' } as const;
      return issueCertificate({ ...request, ...validity(clock, lifetime, authority) }, authority);
    },
  };
}

/**
 * Returns the names of a server that listens on `host`: those of loopback, of the machine, and the host unless it means all
 * addresses.
 */
export function serverNames(host: string, hostName: string): string[] {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const own = [bare, hostName.toLowerCase()].filter((name) => name !== '0.0.0.0' && name !== '::');
  const usable = own.filter((name) => isIP(name) !== 0 || followsRule(name, DNS_SUBDOMAIN));
  return [...new Set(['localhost', '127.0.0.1', '::1', ...usable])];
}

async function openAuthority(path: string, { clock, onNote }: PkiOptions): Promise<KeyPair> {
  const text = await readPrivateFile(path, MAX_FILE_BYTES);
  if (text !== undefined) {
    const { pair, certificate } = readAuthority(path, text);
    const now = clock.now();
    if (now < certificate.validFromDate.getTime())
      onNote(`the certificate authority in ${path} is valid from ${certificate.validFrom} only; is the clock right?`);
    if (now < certificate.validToDate.getTime()) return pair;
    onNote(
      `the certificate authority in ${path} has expired (${certificate.validTo}) and is replaced; clients need the new kubeconfig`,
    );
  }
  const pair = await issueCertificate({
    // The time distinguishes authorities of one machine; clients that trust both need different names.
    commonName: `sluice-ca ${timestamp(clock.now())}`,
    usage: 'authority',
    ...validity(clock, AUTHORITY_LIFETIME_MS),
  });
  await writePair(path, pair);
  return pair;
}

function readAuthority(path: string, text: string): { pair: KeyPair; certificate: X509Certificate } {
  try {
    const pair = splitPair(text);
    const certificate = new X509Certificate(pair.certificate);
    if (!certificate.ca || !certificate.checkPrivateKey(createPrivateKey(pair.key)))
      throw new Error('the key is not the one of the certificate');
    return { pair, certificate };
  } catch (error) {
    const advice =
      'restore it, or remove it to have a new authority created, after which all clients need the new kubeconfig';
    throw new SluiceError('Corrupt', `${path} contains no certificate authority:  ${messageOf(error)}; ${advice}`, {
      cause: error,
    });
  }
}

async function openServer(path: string, authority: KeyPair, { names, clock }: PkiOptions): Promise<KeyPair> {
  const text = await readPrivateFile(path, MAX_FILE_BYTES);
  const kept = text === undefined ? undefined : usableServer(text, authority, names, clock.now());
  if (kept !== undefined) return kept;
  const request = { commonName: 'sluice', usage: 'server', names } as const;
  const pair = await issueCertificate({ ...request, ...validity(clock, SERVER_LIFETIME_MS, authority) }, authority);
  await writePair(path, pair);
  return pair;
}

/** Undefined if a new one is needed, for any reason: no client keeps a copy of it. */
function usableServer(text: string, authority: KeyPair, names: readonly string[], now: number): KeyPair | undefined {
  try {
    const pair = splitPair(text);
    const certificate = new X509Certificate(pair.certificate);
    const usable =
      certificate.verify(new X509Certificate(authority.certificate).publicKey) &&
      certificate.checkPrivateKey(createPrivateKey(pair.key)) &&
      certificate.validFromDate.getTime() <= now &&
      certificate.validToDate.getTime() - now >= RENEWAL_MARGIN_MS &&
      names.every((name) => (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined);
    return usable ? pair : undefined;
  } catch {
    return undefined;
  }
}

/** From an hour ago, for `lifetime` milliseconds, but not past the end of the authority. */
function validity(clock: Clock, lifetime: number, authority?: KeyPair): { notBefore: number; notAfter: number } {
  const now = clock.now();
  const end =
    authority === undefined
      ? Number.POSITIVE_INFINITY
      : new X509Certificate(authority.certificate).validToDate.getTime();
  return { notBefore: now - CLOCK_LEEWAY_MS, notAfter: Math.min(now + lifetime, end) };
}

async function writePair(path: string, { certificate, key }: KeyPair): Promise<void> {
  await writePrivateFile(path, certificate + key);
}

function splitPair(text: string): KeyPair {
  const [certificate] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(text) ?? [];
  const [key] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n/.exec(text) ?? [];
  if (certificate === undefined || key === undefined)
    throw new Error('expected a certificate and a private key in PEM');
  return { certificate, key };
}
