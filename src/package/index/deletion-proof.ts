import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';
import { parseRecord, type ReadRecord } from '../record.ts';
import { parsePublicationDigest, publicationScope } from '../trust/publication-mark.ts';
import type { RepositoryTrust, Signer } from '../trust/repository-trust.ts';
import { payloadOf, statementDigest } from '../trust/statement.ts';

/** What a deletion leaves in the place of a tag. */
export interface Tombstone {
  readonly oid: Oid;
  /** Full path of the package. */
  readonly path: string;
  /** Of the deleted publication, `v<N>`. */
  readonly version: string;
  /** An operator adopted it as it is. */
  readonly isAdopted: boolean;
}

/**
 * Whether a publication whose tag is gone was deleted through Sluice: its last record, which the deletion leaves behind, says so, and a
 * trusted key signed it or an operator adopted it. Any user who may push can remove a tag and copy a record, so that the record has to
 * name the version, and `commit` where it is known which one was published.
 */
export async function provesDeletion(
  { git, trust }: { readonly git: GitRepository; readonly trust: RepositoryTrust },
  tombstone: Tombstone,
  commit: Oid | undefined,
): Promise<boolean> {
  const { oid, path, version, isAdopted } = tombstone;
  const read = await recordAt(git, oid);
  if (read === undefined || (commit !== undefined && read.record.commit !== commit)) return false;
  // Earlier versions have the version in the name of the ref alone, and an operator adopts an object at a ref.
  if (isAdopted) return (read.record.deleted ?? version) === version;
  const { signed } = read;
  if (signed === undefined || read.record.deleted !== version) return false;
  const { statement } = signed;
  const signer = await trust.signerOf(signed);
  const fact = { head: statement, digest: statementDigest(payloadOf(statement)), signer };
  const distrust = trust.distrustOfRecord(fact, { package: path, workspace: statement.workspace });
  if (distrust === undefined) return true;
  // The workspace may have been used again since.
  return distrust.reason === 'RolledBack' && commit !== undefined && isFromBefore(trust, signer, tombstone, commit);
}

/** False for what a key signed that is revoked, unless the ledger knew of the deletion before. */
function isFromBefore(trust: RepositoryTrust, signer: Signer, { path, version }: Tombstone, commit: Oid): boolean {
  const revocation = trust.revocationOf(signer);
  if (revocation === undefined) return true;
  const mark = trust.mark(publicationScope(path, version));
  if (mark === undefined || mark.order > revocation.order) return false;
  const known = parsePublicationDigest(mark.digest);
  return known.isDeleted && known.commit === commit;
}

async function recordAt(git: GitRepository, oid: Oid): Promise<ReadRecord | undefined> {
  try {
    return parseRecord((await git.readCommit(oid)).message);
  } catch (error) {
    // Any object can be pushed there.
    if (isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}
