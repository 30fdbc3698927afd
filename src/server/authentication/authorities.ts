import { X509Certificate } from 'node:crypto';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

const MAX_AUTHORITIES = 100;

/** A certificate that authorities vouch for. */
export interface VerifiedCertificate {
  /** As `getPeerCertificate` returns it, with the parts of its subject. */
  readonly legacy: PeerCertificate;
  readonly fingerprint256: string;
  /** The time in which it and its authority are valid. Milliseconds since the epoch. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Trusted certificate authorities, of which the order does not matter. */
export class Authorities {
  /** As they were read, for the TLS handshake. */
  readonly pem: string;
  readonly #certificates: readonly X509Certificate[];

  private constructor(pem: string, certificates: readonly X509Certificate[]) {
    this.pem = pem;
    this.#certificates = certificates;
  }

  static readonly NONE = new Authorities('', []);

  /** Reads the certificates of a PEM text; other text between them is a comment. InvalidInput if one cannot be read. */
  static parse(pem: string): Authorities {
    const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    if (blocks.length > MAX_AUTHORITIES)
      throw new SluiceError('InvalidInput', `more than ${MAX_AUTHORITIES} certificate authorities`);
    try {
      return new Authorities(
        blocks.map((block) => `${block}\n`).join(''),
        blocks.map((block) => new X509Certificate(block)),
      );
    } catch (error) {
      throw new SluiceError('InvalidInput', `a certificate authority cannot be read: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  get isEmpty(): boolean {
    return this.#certificates.length === 0;
  }

  /** True if an authority is in both. */
  overlaps(other: Authorities): boolean {
    return this.#certificates.some((own) => other.#certificates.some((one) => one.publicKey.equals(own.publicKey)));
  }

  /**
   * Returns the client certificate of a connection if one of these authorities issued it. The TLS handshake has verified it (key usages, path
   * lengths, times) against the authorities of the listener at that time, which may be more, and others by now; so both must accept it.
   * An intermediate authority must be among these: Node does not expose those that a client sends.
   */
  verify(socket: unknown): VerifiedCertificate | undefined {
    if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return undefined;
    const authority = this.#certificates.find((one) => hasIssued(one, certificate));
    if (authority === undefined) return undefined;
    return {
      legacy: certificate.toLegacyObject(),
      fingerprint256: certificate.fingerprint256,
      fromMs: Math.max(certificate.validFromDate.getTime(), authority.validFromDate.getTime()),
      untilMs: Math.min(certificate.validToDate.getTime(), authority.validToDate.getTime()),
    };
  }
}

function hasIssued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}
