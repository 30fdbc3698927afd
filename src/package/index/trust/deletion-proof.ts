import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { readRecordAt } from '../../model/record/read-record.ts';
import { type Distrust, revoked } from '../../trust/distrust.ts';
import { parsePublicationDigest, publicationScope } from '../../trust/ledger/publication-mark.ts';
import type { RepositoryTrust, StatementFact } from '../../trust/repository-trust.ts';
import { payloadOf, statementDigest } from '../../trust/statement/statement.ts';

/** The record of a deletion in place of a tag. */
export interface Tombstone {
  readonly oid: Oid;
  /** Full path of the package. */
  readonly path: string;
  /** Of the deleted publication, `v<N>`. */
  readonly version: string;
  /** An operator adopted it as it is. */
  readonly isAdopted: boolean;
}

/** The evaluation of a tombstone. */
export type TombstoneEvaluation =
  /** It does not prove a deletion. */
  | { readonly flaw: Distrust }
  /**
   * The publication at `commit` was deleted in order. `isLast` is false where the workspace was used again since, so that the tombstone
   * may be an earlier one of the same number. `statement` is undefined for one that an operator adopted.
   */
  | {
      readonly flaw: undefined;
      readonly commit: Oid;
      readonly isLast: boolean;
      readonly statement: StatementFact | undefined;
    };

interface Surroundings {
  readonly git: GitRepository;
  readonly trust: RepositoryTrust;
}

/**
 * Evaluates whether a tombstone proves that a publication was deleted through Sluice: it is the last record of the publication, is
 * marked as such, and a trusted key signed it or an operator adopted it. Any user who may push can remove a tag and copy a record, so
 * the record must contain the version.
 */
export async function evaluateTombstone(
  { git, trust }: Surroundings,
  { oid, path, version, isAdopted }: Tombstone,
): Promise<TombstoneEvaluation> {
  const read = await readRecordAt(git, oid);
  const { signed, record } = read ?? {};
  // Earlier versions have the version in the name of the ref alone, and an operator adopts an object at a ref.
  if (record !== undefined && isAdopted && (record.deleted ?? version) === version)
    return { flaw: undefined, commit: record.commit, isLast: true, statement: undefined };
  if (signed === undefined || record === undefined)
    return { flaw: { reason: 'Unsigned', message: 'it carries no signed statement' } };
  const { statement: head } = signed;
  const digest = statementDigest(payloadOf(head));
  const fact = { head, digest, signer: await trust.signerOf(signed) };
  const scope = { package: path, workspace: head.workspace };
  const flaw = trust.distrustOf(fact, scope);
  if (flaw !== undefined) return { flaw };
  if (record.deleted !== version)
    return {
      flaw: { reason: 'OtherRevision', message: `its statement is not about a deletion of ${path}/${version}` },
    };
  const distrust = trust.distrustOfRecord(fact, scope);
  const { commit } = record;
  if (distrust !== undefined) {
    const flaw = revocationOf(trust, fact, { path, version, commit });
    if (flaw !== undefined) return { flaw };
  }
  return { flaw: undefined, commit, isLast: distrust === undefined, statement: fact };
}

/** True if a tombstone proves that the publication at `commit` was deleted; undefined where it is not known which one was published. */
export async function provesDeletion(
  surroundings: Surroundings,
  tombstone: Tombstone,
  commit: Oid | undefined,
): Promise<boolean> {
  const result = await evaluateTombstone(surroundings, tombstone);
  if (result.flaw !== undefined) return false;
  return commit === undefined ? result.isLast : result.commit === commit;
}

/** A tombstone that a revoked key signed counts only if the ledger knew of the deletion before. */
function revocationOf(
  trust: RepositoryTrust,
  { signer }: StatementFact,
  { path, version, commit }: { readonly path: string; readonly version: string; readonly commit: Oid },
): Distrust | undefined {
  const revocation = trust.revocationOf(signer);
  if (revocation === undefined) return undefined;
  const mark = trust.mark(publicationScope(path, version));
  const known = mark === undefined ? undefined : parsePublicationDigest(mark.digest);
  const isFromBefore =
    mark !== undefined && mark.order <= revocation.order && known?.isDeleted === true && known.commit === commit;
  return isFromBefore ? undefined : revoked(revocation.key);
}
