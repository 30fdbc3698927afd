import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { openTrust } from '../../src/app/trust/open-trust.ts';
import { type Clock, systemClock } from '../../src/foundation/time/clock.ts';
import type { GitRemote, GitRepository } from '../../src/git/git-repository.ts';
import { generateSshKey } from '../../src/git/signing/generate-ssh-key.ts';
import type { RepositoryLayout } from '../../src/package/model/identity/layout.ts';
import { MIRROR_REFSPECS } from '../../src/package/model/identity/mirror-refspecs.ts';
import {
  type OpenedTrust,
  openRepositoryTrust,
  type ServerTrust,
} from '../../src/package/store/opening/open-repository-trust.ts';
import { MemoryTrustLedger } from '../../src/package/trust/ledger/memory-trust-ledger.ts';
import type { StatementSigner } from '../../src/package/trust/statement/statement-signature.ts';
import { statementSigner } from '../../src/package/trust/statement/statement-signer.ts';
import { verifySignature } from '../../src/package/trust/statement/verify-signature.ts';

export const MAIN_LAYOUT: RepositoryLayout = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };

/** A signer with a new ed25519 key. */
export function newSigner(): StatementSigner {
  const { privateKey } = generateKeyPairSync('ed25519');
  return statementSigner(`${privateKey.export({ type: 'pkcs8', format: 'pem' })}`);
}

/** A server of its own: a new key, and an empty ledger. */
export function newServerTrust(signer = newSigner(), ledger = new MemoryTrustLedger()): ServerTrust {
  const { fingerprint, publicKey } = signer;
  ledger.addKey({ fingerprint, publicKey, comment: 'test', origin: 'own', addedAt: '2026-01-01T00:00:00Z' });
  return { signer: () => signer, verify: verifySignature, ledger };
}

/** One server for all stores of a test file, so that they are like processes on one data folder. */
export const serverTrust: ServerTrust = newServerTrust();

/** The trust of a process on a data folder, whose key and ledger outlive it. */
export async function folderTrust(folder: string, keyFile?: string): Promise<ServerTrust> {
  await mkdir(folder, { recursive: true });
  if (keyFile !== undefined)
    await writeFile(keyFile, generateSshKey('test'), { mode: 0o600, flag: 'wx' }).catch(ifThere);
  return openTrust(folder, keyFile === undefined ? {} : { key: { file: keyFile } });
}

function ifThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

/** What a repository at a path trusts, as `openPackageRepository` finds it out. */
export function trustOf(
  git: GitRepository,
  address: string,
  layout: RepositoryLayout = MAIN_LAYOUT,
  server: ServerTrust = serverTrust,
  remote?: GitRemote,
  clock: Clock = systemClock,
): Promise<OpenedTrust> {
  return openRepositoryTrust({
    ...{ git, remote, layout, address, server, clock },
    identity: { name: 'sluice', email: 'sluice@localhost' },
    trustedKeys: () => new Map(server.ledger.keys().map((key) => [key.fingerprint, key])),
    refetch: async () => {
      if (remote !== undefined) await git.fetch(remote, { refspecs: MIRROR_REFSPECS, prune: true });
    },
  });
}
