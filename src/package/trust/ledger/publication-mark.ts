import type { Oid } from '../../../git/git-repository.ts';
import type { Mark, StatementScope } from './trust-ledger.ts';

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

/** What the mark of a publication says. */
interface PublicationMark {
  readonly commit: Oid;
  readonly isDeleted: boolean;
}

/** Parses the digest of a mark; its commit is that of the publication that counted last. */
export function parsePublicationDigest(digest: string): PublicationMark {
  const isDeleted = digest.startsWith(DELETED);
  const [commit = ''] = digest.slice(isDeleted ? DELETED.length : 0).split(' ');
  return { commit, isDeleted };
}

/** Numbers without a publication in a row after which no more are expected: one is left out where another tag has its name, so that few are. */
const MAX_GAP = 100;

/**
 * Returns the publications of a package with numbers after `above` that are known by their marks, in the order of these. One above a longer gap is
 * missing: any user who may push can push a tag with the highest number, and reading the marks of all below it would occupy the process.
 */
export function* markedPublications(
  trust: { mark(scope: Omit<StatementScope, 'repository'>): Pick<Mark, 'digest'> | undefined },
  path: string,
  above = 0,
): Generator<PublicationMark & { readonly revision: number }, undefined> {
  let missing = 0;
  for (let revision = above + 1; missing < MAX_GAP; revision += 1) {
    const mark = trust.mark(publicationScope(path, `v${revision}`));
    missing = mark === undefined ? missing + 1 : 0;
    if (mark !== undefined) yield { ...parsePublicationDigest(mark.digest), revision };
  }
}
