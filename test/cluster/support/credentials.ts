import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { issueCertificate, type KeyPair } from '../../../src/server/certificates/issue-certificate.ts';

const HOUR_MS = 3_600_000;

/** The authorities and keys of one control plane, as files in a folder. */
export interface Credentials {
  /** Signs the certificates of the server and of users. */
  readonly caFile: string;
  readonly serverCertificateFile: string;
  readonly serverKeyFile: string;
  /** Signs the certificate with which the aggregator vouches for its users. */
  readonly frontProxyCaFile: string;
  /** For tests that issue other certificates of it. */
  readonly frontProxyCaKeyFile: string;
  readonly frontProxyCertificateFile: string;
  readonly frontProxyKeyFile: string;
  /** Verifies the tokens of service accounts. */
  readonly serviceAccountPublicFile: string;
  readonly serviceAccountKeyFile: string;
  /** Issues a client certificate. */
  issueUser(name: string, groups?: readonly string[]): Promise<KeyPair>;
}

/** The common name of the aggregator. */
export const FRONT_PROXY_NAME = 'front-proxy-client';

export async function createCredentials(folder: string): Promise<Credentials> {
  const valid = { notBefore: Date.now() - HOUR_MS, notAfter: Date.now() + 24 * HOUR_MS };
  const ca = await issueCertificate({ ...valid, commonName: 'cluster', usage: 'authority' });
  const frontProxyCa = await issueCertificate({ ...valid, commonName: 'front-proxy', usage: 'authority' });
  const names = ['127.0.0.1', 'localhost', 'kubernetes.default.svc'];
  const server = await issueCertificate({ ...valid, commonName: 'kube-apiserver', usage: 'server', names }, ca);
  const proxy = await issueCertificate({ ...valid, commonName: FRONT_PROXY_NAME, usage: 'client' }, frontProxyCa);
  const accounts = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const file = async (name: string, content: string) => {
    const path = join(folder, name);
    await writeFile(path, content, { mode: 0o600 });
    return path;
  };
  return {
    caFile: await file('ca.crt', ca.certificate),
    serverCertificateFile: await file('apiserver.crt', server.certificate),
    serverKeyFile: await file('apiserver.key', server.key),
    frontProxyCaFile: await file('front-proxy-ca.crt', frontProxyCa.certificate),
    frontProxyCaKeyFile: await file('front-proxy-ca.key', frontProxyCa.key),
    frontProxyCertificateFile: await file('front-proxy-client.crt', proxy.certificate),
    frontProxyKeyFile: await file('front-proxy-client.key', proxy.key),
    serviceAccountPublicFile: await file('service-accounts.pub', accounts.publicKey),
    serviceAccountKeyFile: await file('service-accounts.key', accounts.privateKey),
    issueUser: (name, groups = []) =>
      issueCertificate({ ...valid, commonName: name, organisations: groups, usage: 'client' }, ca),
  };
}
