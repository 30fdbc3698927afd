import { SluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository } from '../../git/git-repository.ts';
import { type RepositoryLayout, recordRef } from '../model/identity/layout.ts';
import { type LastStatement, lastStatements } from '../trust/ledger/last-statements.ts';
import type { TrustLedger } from '../trust/ledger/trust-ledger.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import { recordFactAt } from '../verify/record-fact-at.ts';
import type { PackageRepository } from './package-repository.ts';

export interface MirrorParts {
  readonly repository: Pick<PackageRepository, 'index'>;
  readonly trust: RepositoryTrust;
  readonly ledger: TrustLedger;
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  readonly address: string;
}

/**
 * Refuses a mirror that lacks a statement of the ledger: another process wrote and acknowledged it after the mirror was fetched, and what it is
 * about would look deleted, or not yet approved. Throws Unavailable. The cost is proportional to the revisions of the repository.
 */
export async function expectCurrentMirror({
  repository,
  trust,
  ledger,
  git,
  layout,
  address,
}: MirrorParts): Promise<void> {
  const expected = lastStatements(ledger, trust.repository);
  if (expected.length === 0) return;
  const there = new Map<string, number>();
  for (const { path, key, statement, tip } of repository.index.all()) {
    const sequence = Math.max(statement?.head.sequence ?? 0, tip.facts.statement?.statement.sequence ?? 0);
    const name = nameOf({ package: path, workspace: key.workspace });
    there.set(name, Math.max(sequence, there.get(name) ?? 0));
  }
  for (const one of expected) {
    if ((there.get(nameOf(one)) ?? 0) >= one.sequence) continue;
    // Its branch may have been deleted by another writer.
    const oid = await git.resolveRef(recordRef(layout, one.package, one.workspace));
    const record = oid === undefined ? undefined : await recordFactAt(git, oid, trust);
    if ((record?.head.sequence ?? 0) >= one.sequence) continue;
    throw new SluiceError(
      'Unavailable',
      `the mirror of ${address} lacks the last write of ${one.package}/${one.workspace}, and is used again once the remote can be read`,
    );
  }
}

function nameOf({ package: path, workspace }: Pick<LastStatement, 'package' | 'workspace'>): string {
  return JSON.stringify([path, workspace]);
}
