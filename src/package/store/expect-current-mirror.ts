import { SluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository } from '../../git/git-repository.ts';
import { type RepositoryLayout, recordRef } from '../model/identity/layout.ts';
import type { LastStatement } from '../trust/ledger/last-statements.ts';
import type { RepositoryTrust, StatementFact } from '../trust/repository-trust.ts';
import { payloadOf, statementDigest } from '../trust/statement/statement.ts';
import { recordFactAt } from '../verify/record-fact-at.ts';
import type { PackageRepository } from './package-repository.ts';

export interface MirrorParts {
  readonly repository: Pick<PackageRepository, 'index'>;
  readonly trust: RepositoryTrust;
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  readonly address: string;
}

/**
 * Refuses a mirror that lacks a statement of the ledger: another process wrote and acknowledged it after the mirror was fetched, and what it is
 * about would look deleted, or not yet approved. Throws Unavailable. The cost is proportional to the revisions of the repository.
 */
export async function expectCurrentMirror({ repository, trust, git, layout, address }: MirrorParts): Promise<void> {
  const expected = trust.lastStatements();
  if (expected.length === 0) return;
  const there = new Map<string, Pick<StatementFact, 'head' | 'digest'>[]>();
  for (const { path, key, statement, tip } of repository.index.all()) {
    const published = tip.facts.statement;
    const found = [
      ...(statement === undefined ? [] : [statement]),
      ...(published === undefined
        ? []
        : [{ head: published.statement, digest: statementDigest(payloadOf(published.statement)) }]),
    ];
    if (found.length > 0) there.set(nameOf({ package: path, workspace: key.workspace }), found);
  }
  for (const one of expected) {
    if (there.get(nameOf(one))?.some((fact) => isAsNew(fact, one)) === true) continue;
    // Its branch may have been deleted by another writer.
    const oid = await git.resolveRef(recordRef(layout, one.package, one.workspace));
    const record = oid === undefined ? undefined : await recordFactAt(git, oid, trust);
    if (record !== undefined && isAsNew(record, one)) continue;
    throw new SluiceError(
      'Unavailable',
      `the mirror of ${address} lacks the last write of ${one.package}/${one.workspace}, and is used again once the remote can be read`,
    );
  }
}

function isAsNew({ head, digest }: Pick<StatementFact, 'head' | 'digest'>, expected: LastStatement): boolean {
  return 'digest' in expected ? digest === expected.digest : head.sequence >= expected.sequence;
}

function nameOf({ package: path, workspace }: Pick<LastStatement, 'package' | 'workspace'>): string {
  return JSON.stringify([path, workspace]);
}
