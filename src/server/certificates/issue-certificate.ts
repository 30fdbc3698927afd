import { createPrivateKey, KeyObject } from 'node:crypto';
import { isIP } from 'node:net';

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

export interface CertificateRequest {
  readonly commonName: string;
  readonly organisations?: readonly string[];
  /** `authority` signs other certificates, `server` and `client` are for one side of TLS. */
  readonly usage: 'authority' | 'server' | 'client';
  /** DNS names and IP addresses. */
  readonly names?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly notBefore: number;
  readonly notAfter: number;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Creates an ECDSA P-256 key and a certificate for it, signed by `issuer`, or self-signed without one. */
export async function issueCertificate(request: CertificateRequest, issuer?: KeyPair): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const authority = issuer === undefined ? undefined : new x509.X509Certificate(issuer.certificate);
  const subject = new x509.Name([
    { CN: [request.commonName] },
    ...(request.organisations ?? []).map((organisation) => ({ O: [organisation] })),
  ]);
  const signs = request.usage === 'authority';
  const { clientAuth, serverAuth } = x509.ExtendedKeyUsage;
  const { digitalSignature, keyCertSign, cRLSign } = x509.KeyUsageFlags;
  const names = (request.names ?? []).map(
    (value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }) satisfies { type: 'dns' | 'ip'; value: string },
  );
  const certificate = await x509.X509CertificateGenerator.create({
    subject,
    issuer: authority?.subjectName ?? subject,
    notBefore: new Date(request.notBefore),
    notAfter: new Date(request.notAfter),
    publicKey: keys.publicKey,
    signingKey:
      issuer === undefined ? keys.privateKey : createPrivateKey(issuer.key).toCryptoKey(ALGORITHM, false, ['sign']),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(signs, signs ? 0 : undefined, true),
      new x509.KeyUsagesExtension(signs ? keyCertSign | cRLSign : digitalSignature, true),
      ...(signs ? [] : [new x509.ExtendedKeyUsageExtension([request.usage === 'client' ? clientAuth : serverAuth])]),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(authority?.publicKey ?? keys.publicKey),
    ],
  });
  return {
    certificate: `${certificate.toString('pem').trim()}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/**
 * The certificate library, loaded when a certificate is issued: loading takes a tenth of a second. Its dependency injection reads decorator
 * metadata, of which there is none here, so that two functions that return none suffice.
 */
async function loadX509() {
  const metadata = Reflect as { getMetadata?: () => undefined; getOwnMetadata?: () => undefined };
  metadata.getMetadata ??= () => undefined;
  metadata.getOwnMetadata ??= () => undefined;
  return import('@peculiar/x509');
}
