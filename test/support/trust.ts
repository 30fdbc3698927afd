import { generateKeyPairSync } from 'node:crypto';
import { systemClock } from '../../src/foundation/clock.ts';
import type { GitRepository } from '../../src/git/git-repository.ts';
import type { RepositoryLayout } from '../../src/package/layout.ts';
import { type OpenedTrust, openRepositoryTrust, type ServerTrust } from '../../src/package/open-repository-trust.ts';
import { MemoryTrustLedger } from '../../src/package/trust/memory-trust-ledger.ts';
import type { StatementSigner } from '../../src/package/trust/statement-signature.ts';
import { statementSigner } from '../../src/package/trust/statement-signer.ts';
import { verifySignature } from '../../src/package/trust/verify-signature.ts';

export const MAIN_LAYOUT: RepositoryLayout = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };

/** A signer with a new ed25519 key. */
export function newSigner(): StatementSigner {
  const { privateKey } = generateKeyPairSync('ed25519');
  return statementSigner(`${privateKey.export({ type: 'pkcs8', format: 'pem' })}`);
}

/** A server of its own: a new key, and a ledger that knows nothing else. */
export function newServerTrust(signer = newSigner()): ServerTrust {
  const ledger = new MemoryTrustLedger();
  const { fingerprint, publicKey } = signer;
  ledger.addKey({ fingerprint, publicKey, comment: 'test', origin: 'own', addedAt: '2026-01-01T00:00:00Z' });
  return { signer: () => signer, verify: verifySignature, ledger };
}

/** One server for all stores of a test file, so that they are like processes on one data folder. */
export const serverTrust: ServerTrust = newServerTrust();

/** What a repository at a path trusts, as `openPackageRepository` finds it out. */
export function trustOf(
  git: GitRepository,
  address: string,
  layout: RepositoryLayout = MAIN_LAYOUT,
  server: ServerTrust = serverTrust,
): Promise<OpenedTrust> {
  return openRepositoryTrust({
    ...{ git, remote: undefined, layout, address, server, clock: systemClock },
    identity: { name: 'sluice', email: 'sluice@localhost' },
    trustedKeys: () => new Map(server.ledger.keys().map((key) => [key.fingerprint, key])),
    refetch: async () => undefined,
  });
}
