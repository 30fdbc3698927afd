import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { packagePath, tombstoneRef } from '../../src/package/layout.ts';
import type { PackageRepository } from '../../src/package/package-repository.ts';
import { parseRecord, type RecordStatement } from '../../src/package/record.ts';
import { payloadOf, type SignedStatement, statementDigest } from '../../src/package/trust/statement.ts';

/**
 * Whether a published revision whose tag is gone was deleted through Sluice: its last record, which the deletion leaves behind, says
 * so, and a trusted key signed it. Any user who may push can remove a tag and copy a record, so that the record has to name the
 * version, and `commit` where it is known which one was delivered.
 */
export async function wasDeleted(
  { git, index, layout, trust }: Pick<PackageRepository, 'git' | 'index' | 'layout' | 'trust'>,
  revision: { readonly package: string; readonly revision: number },
  commit: Oid | undefined,
): Promise<boolean> {
  const version = `v${revision.revision}`;
  const oid = index.ref(tombstoneRef(layout, revision.package, version));
  if (oid === undefined) return false;
  let signed: SignedStatement<RecordStatement> | undefined;
  try {
    signed = parseRecord((await git.readCommit(oid)).message).signed;
  } catch (error) {
    // Any object can be pushed there.
    if (isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound')) return false;
    throw error;
  }
  if (signed === undefined || signed.statement.record.deleted !== version) return false;
  const { statement } = signed;
  if (commit !== undefined && statement.record.commit !== commit) return false;
  const fact = {
    head: statement,
    digest: statementDigest(payloadOf(statement)),
    signer: await trust.signerOf(signed),
  };
  const scope = { package: packagePath(layout, revision.package), workspace: statement.workspace };
  const distrust = trust.distrustOfRecord(fact, scope);
  // The workspace may have been used again since.
  return distrust === undefined || (distrust.reason === 'RolledBack' && commit !== undefined);
}
