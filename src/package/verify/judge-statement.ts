import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository, Oid, Ref } from '../../git/git-repository.ts';
import type { RepositoryLayout } from '../layout.ts';
import { parseRecord, type ReadRecord } from '../record.ts';
import type { RepositoryTrust, StatementFact } from '../trust/repository-trust.ts';
import { payloadOf, statementDigest } from '../trust/statement.ts';

export interface Flaw {
  readonly reason: string;
  readonly message: string;
}

/** The statement of a record, its signature checked; undefined for something that is no signed record. */
export async function recordFactAt(
  git: GitRepository,
  oid: Oid,
  trust: RepositoryTrust,
): Promise<StatementFact | undefined> {
  const signed = (await recordAt(git, oid))?.signed;
  if (signed === undefined) return undefined;
  const digest = statementDigest(payloadOf(signed.statement));
  return { head: signed.statement, digest, signer: await trust.signerOf(signed) };
}

async function recordAt(git: GitRepository, oid: Oid): Promise<ReadRecord | undefined> {
  try {
    return parseRecord((await git.readCommit(oid)).message);
  } catch (error) {
    if (isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Why what stands in the place of a deleted tag does not say that it was deleted in order; undefined if it does. */
export async function judgeTombstone(
  git: GitRepository,
  { ref, oid }: { readonly ref: Ref['name']; readonly oid: Oid },
  prefix: string,
  trust: RepositoryTrust,
): Promise<Flaw | undefined> {
  const fact = await recordFactAt(git, oid, trust);
  if (fact === undefined) return { reason: 'Unsigned', message: 'it carries no signed statement' };
  return trust.distrustOf(fact, { package: deletedIn(ref, prefix).path, workspace: fact.head.workspace });
}

/** In front of all tombstones. */
export function tombstonePrefix(layout: RepositoryLayout): string {
  return layout.recordPrefix.replace(/records\/$/, 'deleted/');
}

/** What a tombstone is about: the path of the package, and the last segment of the tag. */
export function deletedIn(ref: string, prefix: string): { readonly path: string; readonly version: string } {
  const text = decoded(ref.slice(prefix.length));
  const slash = text.lastIndexOf('/');
  return { path: text.slice(0, Math.max(slash, 0)), version: text.slice(slash + 1) };
}

/** Everyone who may push can write such a name. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
