import { type DetailedPeerCertificate, type PeerCertificate, TLSSocket } from 'node:tls';
import type { Clock } from '../../foundation/time/clock.ts';
import type { AuthenticationRequest, Authenticator } from './authenticator.ts';
import type { Authorities } from './authorities.ts';
import type { User } from './user.ts';

interface Proof {
  readonly user: User;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly until: number;
}

interface Judged {
  readonly authorities: Authorities | undefined;
  readonly proof: Proof | undefined;
}

/** Names the certificate of a user in the reviews and the audit log of a cluster. */
const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id';

/**
 * Authenticates users by client certificates that TLS has verified: the common name is the user, the organisations are the groups, as in
 * Kubernetes. The server must request certificates and must not refuse connections without a valid one, since there are other credentials.
 * The validity is checked with every request, for connections (and resumed sessions) that outlive a certificate.
 *
 * Without `authorities`, the authority of the listener issues certificates of users only. With them, it must be one of these, which may change
 * while a connection is open.
 */
export class CertificateAuthenticator implements Authenticator {
  readonly #clock: Clock;
  readonly #authorities: (() => Authorities) | undefined;
  readonly #judged = new WeakMap<TLSSocket, Judged>();

  constructor(clock: Clock, authorities?: () => Authorities) {
    this.#clock = clock;
    this.#authorities = authorities;
  }

  authenticate({ socket }: AuthenticationRequest): User | undefined {
    if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
    const authorities = this.#authorities?.();
    let judged = this.#judged.get(socket);
    if (judged === undefined || judged.authorities !== authorities) {
      judged = { authorities, proof: authorities === undefined ? ownProof(socket) : proofBy(authorities, socket) };
      this.#judged.set(socket, judged);
    }
    const { proof } = judged;
    if (proof === undefined) return undefined;
    const now = this.#clock.now();
    return now >= proof.from && now < proof.until ? proof.user : undefined;
  }
}

function ownProof(socket: TLSSocket): Proof | undefined {
  const certificate = socket.getPeerCertificate() as PeerCertificate | DetailedPeerCertificate | null;
  const user = userOf(certificate);
  if (certificate === null || user === undefined) return undefined;
  const from = Date.parse(certificate.valid_from);
  const until = Date.parse(certificate.valid_to);
  return Number.isNaN(from) || Number.isNaN(until) ? undefined : { user, from, until };
}

function proofBy(authorities: Authorities, socket: TLSSocket): Proof | undefined {
  const certificate = authorities.verify(socket);
  const user = certificate === undefined ? undefined : userOf(certificate.legacy);
  if (certificate === undefined || user === undefined) return undefined;
  const id = `X509SHA256=${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`;
  return { user: { ...user, extra: { [CREDENTIAL_ID]: [id] } }, from: certificate.fromMs, until: certificate.untilMs };
}

function userOf(certificate: PeerCertificate | DetailedPeerCertificate | null): User | undefined {
  const names = certificate?.subject?.CN as string | string[] | undefined;
  // A certificate with several common names claims to be several users.
  if (certificate === null || typeof names !== 'string' || names === '') return undefined;
  const organisations = (certificate.subject.O ?? []) as string | string[];
  const groups = typeof organisations === 'string' ? [organisations] : organisations;
  return { name: names, groups: [...new Set(groups)] };
}
