import { type DetailedPeerCertificate, type PeerCertificate, TLSSocket } from 'node:tls';
import type { Clock } from '../../foundation/time/clock.ts';
import type { AuthenticationRequest, Authenticator } from './authenticator.ts';
import type { User } from './user.ts';

interface Proof {
  readonly user: User;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly until: number;
}

/**
 * Authenticates users by client certificates that TLS has verified against our own authority: the common name is the user, the
 * organisations are the groups, as in Kubernetes. The server must request certificates and must not refuse connections without a valid one,
 * since there are other credentials. The validity is checked with every request, for connections (and resumed sessions) that outlive a
 * certificate.
 */
export class CertificateAuthenticator implements Authenticator {
  readonly #clock: Clock;
  readonly #proofs = new WeakMap<TLSSocket, Proof | 'none'>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  authenticate({ socket }: AuthenticationRequest): User | undefined {
    if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
    let proof = this.#proofs.get(socket);
    if (proof === undefined) {
      proof = proofOf(socket.getPeerCertificate()) ?? 'none';
      this.#proofs.set(socket, proof);
    }
    if (proof === 'none') return undefined;
    const now = this.#clock.now();
    return now >= proof.from && now < proof.until ? proof.user : undefined;
  }
}

function proofOf(certificate: PeerCertificate | DetailedPeerCertificate | null): Proof | undefined {
  const names = certificate?.subject?.CN as string | string[] | undefined;
  // A certificate with several common names claims to be several users.
  if (certificate === null || typeof names !== 'string' || names === '') return undefined;
  const organisations = (certificate.subject.O ?? []) as string | string[];
  const groups = typeof organisations === 'string' ? [organisations] : organisations;
  const from = Date.parse(certificate.valid_from);
  const until = Date.parse(certificate.valid_to);
  if (Number.isNaN(from) || Number.isNaN(until)) return undefined;
  return { user: { name: names, groups: [...new Set(groups)] }, from, until };
}
