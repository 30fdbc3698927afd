import { isPublished, type PackageRevision } from '../model/revision/package-revision.ts';
import type { MergedProposal } from '../model/revision/revision-state.ts';
import { isAtMostBypass } from '../plan/records/recorded-bypass.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';

/**
 * Returns the revision if it is the publication of the merge, which an earlier request or another process has recorded. A request that is
 * repeated after a crash or a lost response, or that lost a race, has reached its goal then.
 */
export async function recordedMerge(
  revision: PackageRevision | undefined,
  merged: MergedProposal | undefined,
  trust: Pick<RepositoryTrust, 'distrustOfSigner' | 'signerOf'>,
): Promise<PackageRevision | undefined> {
  if (revision === undefined || !isPublished(revision) || revision.commit !== merged?.commit) return undefined;
  const { facts, statementTag } = revision.tip;
  if (statementTag === undefined || facts.statement === undefined) return undefined;
  if (!isAtMostBypass(revision)) return undefined;
  // The index does not verify a statement that lists a flaw, which any user who may push can forge.
  const distrust = trust.distrustOfSigner(await trust.signerOf(facts.statement));
  return distrust === undefined ? revision : undefined;
}
