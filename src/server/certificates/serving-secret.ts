import { createPrivateKey, X509Certificate } from 'node:crypto';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Secret, secretText } from '../../resource/kinds/core/secret.ts';
import { caBundleOf, type ServingCertificates } from './serving-certificates.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g;
const KEY = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n/g;

/**
 * The data of a Secret with certificates: those of the type `kubernetes.io/tls`, the authorities to trust, and the keys of those
 * that sign.
 */
export function writeServingSecret(certificates: ServingCertificates): Record<string, string> {
  const { server, authorities } = certificates;
  const texts = {
    'tls.crt': server.certificate,
    'tls.key': server.key,
    'ca.crt': caBundleOf(certificates),
    'ca.key': authorities.map(({ key = '' }) => key).join(''),
  };
  const encoded = Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
  return Object.fromEntries(encoded) as Record<string, string>;
}

/** Reads the certificates of a Secret; undefined if it has none yet. Corrupt if they cannot be read. */
export function readServingSecret(secret: Secret): ServingCertificates | undefined {
  const [certificate, key, bundle, keys] = ['tls.crt', 'tls.key', 'ca.crt', 'ca.key'].map((name) =>
    secretText(secret, name),
  );
  if (!certificate && !key && !bundle && !keys) return undefined;
  try {
    if (!certificate || !key || !bundle || !keys) throw new Error('tls.crt, tls.key, ca.crt and ca.key are required');
    const signing = (keys.match(KEY) ?? []).map((text) => ({ text, key: createPrivateKey(text) }));
    const authorities = (bundle.match(CERTIFICATE) ?? []).map((text) => {
      const authority = new X509Certificate(text);
      if (!authority.ca) throw new Error('ca.crt contains a certificate that is not one of an authority');
      const own = signing.find((one) => authority.checkPrivateKey(one.key));
      return { certificate: text, ...(own === undefined ? {} : { key: own.text }) };
    });
    if (authorities.length === 0) throw new Error('ca.crt contains no certificate in PEM');
    const server = new X509Certificate(certificate);
    if (!server.checkPrivateKey(createPrivateKey(key))) throw new Error('tls.key is not the key of tls.crt');
    return { server: { certificate, key }, authorities };
  } catch (error) {
    const { namespace, name } = secret.metadata;
    // The cause could contain a part of a key.
    const cause = error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
    throw new SluiceError(
      'Corrupt',
      `Secret ${namespace}/${name} contains no certificates of a server: ${cause}; Sluice issues new ones`,
    );
  }
}
