import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { timestamp } from '../../foundation/time/clock.ts';
import { issueCertificate, type KeyPair } from './issue-certificate.ts';

/** An authority of server certificates. Without its key it is still trusted, and signs no more. */
export interface ServingAuthority {
  readonly certificate: string;
  readonly key?: string;
}

/** The certificates of a server to which a cluster connects, all in PEM. */
export interface ServingCertificates {
  readonly server: KeyPair;
  /** In the order in which they were issued. */
  readonly authorities: readonly ServingAuthority[];
}

export interface RenewalOptions {
  /** DNS names and IP addresses under which the cluster reaches the server. */
  readonly names: readonly string[];
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AUTHORITY_LIFETIME_MS = 365 * DAY_MS;
const SERVER_LIFETIME_MS = 90 * DAY_MS;
/** Before its end, an authority has a successor. Longer than any server certificate lasts. */
const SUCCESSION_MARGIN_MS = 120 * DAY_MS;
const SERVER_MARGIN_MS = 30 * DAY_MS;
/** Until a new authority signs: all that connect to the server must trust it by then. */
const ADOPTION_MS = DAY_MS;
/** Clocks of other machines may be behind. */
const CLOCK_LEEWAY_MS = HOUR_MS;

/** The authorities to trust, in PEM: the `caBundle` of an APIService or a webhook, of which the server may present any. */
export function caBundleOf({ authorities }: ServingCertificates): string {
  return authorities.map(({ certificate }) => certificate).join('');
}

/**
 * Returns the certificates with what is due: the same value if nothing is. An authority gets a successor 120 days before its end, which is
 * trusted from then on and signs a day later, so that at any time a client that has the bundle of the last day trusts the server. Expired
 * authorities are removed, and the keys of those that have a signing successor.
 */
export async function renewServingCertificates(
  present: ServingCertificates | undefined,
  { names, nowMs }: RenewalOptions,
): Promise<ServingCertificates> {
  const kept = (present?.authorities ?? []).filter(({ certificate }) => endOf(certificate) > nowMs);
  const all = [...kept];
  let signer: KeyPair | undefined = signerOf(all, nowMs);
  if (signer === undefined) {
    // None is left, and whatever it is replaced by is not trusted yet.
    signer = await issueAuthority(nowMs);
    all.push(signer);
  } else if (all.at(-1) === signer && endOf(signer.certificate) - nowMs < SUCCESSION_MARGIN_MS)
    all.push(await issueAuthority(nowMs));
  const position = all.indexOf(signer);
  const authorities = all.map((one, index) => (index < position ? { certificate: one.certificate } : one));
  const server =
    present !== undefined && isUsable(present.server, signer.certificate, names, nowMs)
      ? present.server
      : await issueServer(signer, names, nowMs);
  const next = { server, authorities };
  return present !== undefined && isEqual(present, next) ? present : next;
}

/** The newest authority that all trust by now, or else the oldest that can sign. */
function signerOf(authorities: readonly ServingAuthority[], nowMs: number): KeyPair | undefined {
  const able = authorities.filter((one): one is KeyPair => one.key !== undefined);
  const trusted = able.filter(({ certificate }) => issuedAt(certificate) + ADOPTION_MS <= nowMs);
  return trusted.at(-1) ?? able[0];
}

function issueAuthority(nowMs: number): Promise<KeyPair> {
  const notBefore = nowMs - CLOCK_LEEWAY_MS;
  // Clients that trust several need different names.
  const commonName = `sluice-serving-ca ${timestamp(nowMs)}`;
  return issueCertificate({ commonName, usage: 'authority', notBefore, notAfter: nowMs + AUTHORITY_LIFETIME_MS });
}

function issueServer(signer: KeyPair, names: readonly string[], nowMs: number): Promise<KeyPair> {
  const notAfter = Math.min(nowMs + SERVER_LIFETIME_MS, endOf(signer.certificate));
  const notBefore = nowMs - CLOCK_LEEWAY_MS;
  return issueCertificate({ commonName: 'sluice', usage: 'server', names, notBefore, notAfter }, signer);
}

function isUsable(server: KeyPair, authority: string, names: readonly string[], nowMs: number): boolean {
  const certificate = new X509Certificate(server.certificate);
  return (
    certificate.verify(new X509Certificate(authority).publicKey) &&
    certificate.checkPrivateKey(createPrivateKey(server.key)) &&
    certificate.validFromDate.getTime() <= nowMs &&
    // One that ends with its authority is as good as its renewal.
    certificate.validToDate.getTime() >= Math.min(nowMs + SERVER_MARGIN_MS, endOf(authority)) &&
    names.every((name) => (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined)
  );
}

function isEqual(left: ServingCertificates, right: ServingCertificates): boolean {
  return (
    left.server === right.server &&
    left.authorities.length === right.authorities.length &&
    left.authorities.every(({ certificate, key }, index) => {
      const other = right.authorities[index];
      return certificate === other?.certificate && key === other.key;
    })
  );
}

function issuedAt(certificate: string): number {
  return new X509Certificate(certificate).validFromDate.getTime() + CLOCK_LEEWAY_MS;
}

function endOf(certificate: string): number {
  return new X509Certificate(certificate).validToDate.getTime();
}
