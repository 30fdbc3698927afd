import { type RevisionKey, revisionName, revisionUid } from '../../model/identity/identity.ts';
import { deletedIn, parseRef, type RepositoryLayout, tagRef } from '../../model/identity/layout.ts';
import { deletedContentScope, type StatementScope } from '../../trust/ledger/trust-ledger.ts';
import type { Candidate } from '../facts/candidate.ts';

/** Finds the revisions that depend on a ref or a mark. */
export interface CandidateLookup {
  readonly repository: string;
  readonly namespace: string;
  readonly layout: RepositoryLayout;
  /** Returns the candidate of a tag. */
  tag(ref: string): Candidate | undefined;
  /** The package on the main branch. */
  placeholder(packageName: string): Candidate | undefined;
}

/**
 * Returns the ids of revisions that depend on a ref without being its target: for records, proposals of deletions,
 * tombstones.
 */
export function dependentsOfRef(place: CandidateLookup, ref: string): string[] {
  const { layout } = place;
  const meaning = parseRef(layout, ref);
  if (meaning.kind === 'record') return [uidOf(place, meaning.package, meaning.workspace)];
  if (meaning.kind === 'deletionProposed') {
    const tagged = place.tag(tagRef(layout, meaning.package, meaning.version));
    return [uidOf(place, meaning.package, meaning.version), ...uidsOf(tagged)];
  }
  const deleted = deletedIn(layout, ref);
  return deleted === undefined ? [] : uidsOf(place.tag(deleted.tag));
}

/** Ids of the revisions whose rows depend on a mark; undefined for a mark that all rows depend on. */
export function dependentsOfMark(
  place: CandidateLookup,
  { package: path, workspace }: StatementScope,
): string[] | undefined {
  // Adoptions, and when the repository was first seen.
  if (path === '') return undefined;
  const packageName = nameAt(place.layout, path);
  if (packageName === undefined) return [];
  if (workspace === deletedContentScope(path).workspace) return uidsOf(place.placeholder(packageName));
  const slash = workspace.lastIndexOf('/');
  if (slash === -1) return [uidOf(place, packageName, workspace)];
  // A scope of a publication: workspaces have no slash. Other scopes, such as those of own signatures, belong to no
  // row.
  return uidsOf(place.tag(tagRef(place.layout, packageName, workspace.slice(slash + 1))));
}

function uidOf({ repository, namespace }: CandidateLookup, packageName: string, workspace: string): string {
  const key: RevisionKey = { repository, package: packageName, workspace };
  return revisionUid(revisionName(key), namespace);
}

function uidsOf(candidate: Candidate | undefined): string[] {
  return candidate === undefined ? [] : [candidate.uid];
}

function nameAt({ directory }: RepositoryLayout, path: string): string | undefined {
  if (directory === '') return path;
  return path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : undefined;
}
