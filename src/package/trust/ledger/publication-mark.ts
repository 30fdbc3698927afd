import type { Oid } from '../../../git/git-repository.ts';
import type { StatementScope } from './trust-ledger.ts';

/*
 * The mark of a ledger for one publication number: which publication counts, or that it was deleted. Numbers can be reused, and
 * every user who may push can set the tag back to an earlier publication, whose statement is as valid as it was then.
 */

/** Workspaces have no slash, so that no statement has this scope. `path` is the full path of the package, `version` is `v<N>`. */
export function publicationScope(path: string, version: string): Omit<StatementScope, 'repository'> {
  return { package: path, workspace: `published/${version}` };
}

/**
 * Scope of the mark of a publication that stays in band although the main branch was rewritten without it, since an operator accepted
 * the rewrite. By branch: the same repository can be registered with another one, where it never counted.
 */
export function keptScope(branch: string, path: string, version: string): Omit<StatementScope, 'repository'> {
  return { package: path, workspace: `kept/${branch}/${version}` };
}

/** A publication as a tag shows it. */
export interface PublishedTag {
  readonly commit: Oid;
  /** The tag object, if the statement is in its message. */
  readonly statementTag: Oid | undefined;
}

/** Digest of the mark of a publication that counts. */
export function publicationDigest({ commit, statementTag }: PublishedTag): string {
  return statementTag === undefined ? commit : `${commit} ${statementTag}`;
}

const DELETED = 'deleted ';

/** Digest of the mark that a deleted publication leaves behind. */
export function deletionDigest(tag: PublishedTag): string {
  return DELETED + publicationDigest(tag);
}

/** Parses the digest of a mark; its commit is that of the publication that counted last. */
export function parsePublicationDigest(digest: string): { readonly commit: Oid; readonly isDeleted: boolean } {
  const isDeleted = digest.startsWith(DELETED);
  const [commit = ''] = digest.slice(isDeleted ? DELETED.length : 0).split(' ');
  return { commit, isDeleted };
}
