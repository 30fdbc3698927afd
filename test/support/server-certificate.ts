import { issueCertificate, type KeyPair } from '../../src/server/certificates/issue-certificate.ts';

const DAY_MS = 86_400_000;

export type { KeyPair };

/** A certificate for these names, and that of its authority, which no program knows. */
export async function serverCertificate(
  ...names: readonly string[]
): Promise<{ readonly authority: KeyPair; readonly server: KeyPair }> {
  const times = { notBefore: Date.now() - DAY_MS, notAfter: Date.now() + DAY_MS };
  const authority = await issueCertificate({ commonName: 'authority', usage: 'authority', ...times });
  const server = await issueCertificate({ commonName: 'server', usage: 'server', names, ...times }, authority);
  return { authority, server };
}
