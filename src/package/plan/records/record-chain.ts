import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { Commit, Oid } from '../../../git/git-repository.ts';
import type { FoldedRecord } from '../../model/record/commit-message.ts';
import { parseRecord, type RevisionRecord } from '../../model/record/record.ts';
import { areAllKnown } from '../../model/revision/attribution.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import { payloadOf, statementDigest } from '../../trust/statement/statement.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';

/** Maximum number of records that are searched for the authors of a draft's commits. */
const MAX_RECORDS = 200;

export interface ChainLink {
  readonly oid: Oid;
  readonly subject: string;
  readonly last: NonNullable<RevisionRecord['last']>;
  /** A trusted key signed it, or a later record that one signed names its digest. */
  readonly isTrusted: boolean;
}

/** The records of a revision, the last one first. */
export async function recordsOf(
  repo: Pick<RepositoryContext, 'git' | 'trust'>,
  revision: PackageRevision,
  limit: number,
): Promise<ChainLink[]> {
  const records: ChainLink[] = [];
  const { trust } = repo;
  const scope = { package: revision.path, workspace: revision.key.workspace };
  let next = revision.recordOid;
  /** Digest that is known to be trusted: the revision's own, then the one that the later trusted record names. */
  let trustedDigest = revision.statement?.digest;
  while (next !== undefined && records.length < limit) {
    const commit = await readCommit(repo, next);
    const read = commit === undefined ? undefined : readRecord(commit.message);
    if (commit === undefined || read?.record.last === undefined) break;
    const { signed } = read;
    const digest = signed && statementDigest(payloadOf(signed.statement));
    let isTrusted = digest !== undefined && digest === trustedDigest;
    if (!isTrusted && signed !== undefined && digest !== undefined) {
      const fact = { head: signed.statement, digest, signer: await trust.signerOf(signed) };
      // A record that a revoked key signed counts only if a trusted record refers to it.
      isTrusted = trust.distrustOf(fact, scope) === undefined && trust.revocationOf(fact.signer) === undefined;
    }
    trustedDigest = isTrusted ? (signed?.statement.previous ?? undefined) : undefined;
    const subject = commit.message.split('\n', 1)[0] ?? '';
    records.push({ oid: next, subject, last: read.record.last, isTrusted });
    next = commit.parents[0];
  }
  return records;
}

/** The commits of a draft that are proven to be Sluice's, with their authors: anyone who may push can write the trailers of one. */
export function madeIn(records: readonly ChainLink[]): Map<Oid, string> {
  return new Map(
    records.flatMap(({ last: { made, by }, isTrusted }) => (isTrusted && made !== undefined ? [[made, by]] : [])),
  );
}

/** `madeIn` of the last records of a revision. */
export async function commitsMade(
  repo: Pick<RepositoryContext, 'git' | 'trust'>,
  revision: PackageRevision,
): Promise<ReadonlyMap<Oid, string>> {
  return madeIn(await recordsOf(repo, revision, MAX_RECORDS));
}

/**
 * Returns the authors of a draft's commits according to its records, which end with its publication. Empty if no push contributed:
 * then all commits are Sluice's, and their trailers are right.
 */
export async function commitAuthors(
  repo: Pick<RepositoryContext, 'git' | 'trust'>,
  revision: PackageRevision,
  contributors: RevisionRecord['contributors'],
): Promise<NonNullable<FoldedRecord['commits']>> {
  if (areAllKnown(contributors)) return [];
  return Array.from(await commitsMade(repo, revision), ([commit, by]) => ({ commit, by }));
}

function readRecord(message: string): ReturnType<typeof parseRecord> | undefined {
  try {
    return parseRecord(message);
  } catch (error) {
    // The chain ends at a record that cannot be read; each later record repeats the lifecycle steps before it.
    if (isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}

/** A commit of a history; undefined where a shallow or pruned one ends. */
export async function readCommit(repo: Pick<RepositoryContext, 'git'>, oid: Oid): Promise<Commit | undefined> {
  try {
    return await repo.git.readCommit(oid);
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}
