import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';
import type { Distrust } from '../trust/distrust.ts';
import { knowsRepository } from '../trust/ledger/main-heads.ts';
import type { TrustLedger } from '../trust/ledger/trust-ledger.ts';
import { parseRepositoryId, type RepositoryIdStatement } from '../trust/repository-id.ts';
import { RepositoryTrust } from '../trust/repository-trust.ts';
import type { SignedStatement, StatementHead } from '../trust/statement/statement.ts';
import { verifySignature } from '../trust/statement/verify-signature.ts';

/** Trust for one repository without signing. */
export function readOnlyTrust(ledger: TrustLedger, repository: string, branch: string): RepositoryTrust {
  return new RepositoryTrust({
    ...{ repository, branch, ledger, verify: verifySignature },
    signer: () => {
      throw new SluiceError('Internal', 'the verification of a repository signs nothing');
    },
    trustedKeys: () => new Map(ledger.keys().map((key) => [key.fingerprint, key])),
  });
}

export interface FoundId {
  readonly signed: SignedStatement<RepositoryIdStatement> | undefined;
  /** Reason why it does not count; undefined if it does. */
  readonly problem: string | undefined;
}

/** Reads the id of a repository, and whether a trusted key signed it. */
export async function findId(git: GitRepository, oid: Oid, ledger: TrustLedger): Promise<FoundId> {
  let signed: SignedStatement<RepositoryIdStatement>;
  try {
    signed = parseRepositoryId((await git.readCommit(oid)).message);
  } catch (error) {
    if (!isSluiceError(error, 'Corrupt') && !isSluiceError(error, 'NotFound')) throw error;
    return { signed: undefined, problem: error.message };
  }
  return { signed, problem: (await distrustOfId(signed, ledger))?.message };
}

/** Returns why a statement is no evidence of the id that it names; undefined if it is. */
export async function distrustOfId(
  signed: SignedStatement<StatementHead>,
  ledger: TrustLedger,
): Promise<Distrust | undefined> {
  const id = signed.statement.repository;
  // The branch does not identify its signer.
  const trust = readOnlyTrust(ledger, id, '');
  const signer = await trust.signerOf(signed);
  const revocation = trust.revocationOf(signer);
  // A revoked key can still sign: its ids count for repositories that were known before, whose heads the revocation lists.
  const isKnown = knowsRepository(revocation?.key.revocation?.heads ?? {}, id) || ledger.repository(id) !== undefined;
  return trust.distrustOfSigner(signer) ?? (isKnown ? undefined : trust.revocationOfNew(signer));
}
