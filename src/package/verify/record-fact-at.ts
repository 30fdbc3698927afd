import type { GitRepository, Oid } from '../../git/git-repository.ts';
import { readRecordAt } from '../model/record/read-record.ts';
import type { RepositoryTrust, StatementFact } from '../trust/repository-trust.ts';
import { payloadOf, statementDigest } from '../trust/statement/statement.ts';

/** Returns the statement of a record with its signature checked; undefined if it is not a signed record. */
export async function recordFactAt(
  git: GitRepository,
  oid: Oid,
  trust: RepositoryTrust,
): Promise<StatementFact | undefined> {
  const signed = (await readRecordAt(git, oid))?.signed;
  if (signed === undefined) return undefined;
  const digest = statementDigest(payloadOf(signed.statement));
  return { head: signed.statement, digest, signer: await trust.signerOf(signed) };
}
