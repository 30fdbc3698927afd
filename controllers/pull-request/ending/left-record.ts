import { readRecordAt } from '../../../src/package/model/record/read-record.ts';
import type { RevisionRecord } from '../../../src/package/model/record/record.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { payloadOf, statementDigest } from '../../../src/package/trust/statement/statement.ts';

/** The record in a ref, if a trusted key signed it for this revision and it is the last one: users can push each commit there. */
export async function leftRecord(
  { git, index, trust }: Pick<PackageRepository, 'git' | 'index' | 'trust'>,
  ref: string,
  scope: { readonly package: string; readonly workspace: string },
): Promise<RevisionRecord | undefined> {
  const oid = index.ref(ref);
  const read = oid === undefined ? undefined : await readRecordAt(git, oid);
  if (read?.signed === undefined) return undefined;
  const { signed, record } = read;
  const digest = statementDigest(payloadOf(signed.statement));
  const fact = { head: signed.statement, digest, signer: await trust.signerOf(signed) };
  return trust.distrustOfRecord(fact, scope) === undefined ? record : undefined;
}

/** Whether a record without a revision is that of a proposal, which `LostMerges` restores. One that a user has pushed has no step. */
export function isOfLostProposal({ steps, published }: Pick<RevisionRecord, 'steps' | 'published'>): boolean {
  const last = steps.findLast(({ action }) => action !== 'push')?.action ?? 'propose';
  return last === 'propose' && published === undefined;
}
