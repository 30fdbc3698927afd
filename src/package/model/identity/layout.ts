import type { RevisionKey } from './identity.ts';

/**
 * The locations of revisions in the Git refs of a repository. The layout is Porch's, so that both tools can use the same
 * repository; only Sluice uses records.
 */
export interface RepositoryLayout {
  /** Branch that published packages are committed to, without `refs/heads/`. */
  readonly branch: string;
  /** Folder of the packages, without leading or trailing slash; empty is the root. */
  readonly directory: string;
  /** `refs/sluice/records/`, or a branch prefix where a host refuses other namespaces. */
  readonly recordPrefix: string;
}

export const RECORD_REFS = 'refs/sluice/records/';
/** Used where a host accepts only branches and tags. */
export const RECORD_BRANCHES = 'refs/heads/sluice-records/';

/**
 * Returns the location of the records of a repository, according to its refs; undefined if it has none yet. Records take precedence
 * over the id, which may have been written under another name than later records.
 */
export function recordPrefixIn(refNames: readonly string[]): string | undefined {
  const isThere = (prefix: string) => refNames.some((name) => name.startsWith(prefix));
  const prefixes = [RECORD_REFS, RECORD_BRANCHES];
  const ofOthers = (recordPrefix: string) => [
    ...[identityRef({ recordPrefix }), adoptionRef({ recordPrefix }), tombstonePrefix({ recordPrefix })],
  ];
  return prefixes.find(isThere) ?? prefixes.find((prefix) => ofOthers(prefix).some(isThere));
}

/** The name of a ref that is created and removed to find out whether a host accepts it; see `isProbe`. */
export function probeRef(recordPrefix: string, uuid: string): string {
  return `${recordPrefix}probe-${uuid}`;
}

export function isProbe({ recordPrefix }: Pick<RepositoryLayout, 'recordPrefix'>, ref: string): boolean {
  return (
    ref.startsWith(recordPrefix) &&
    /^probe-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(ref.slice(recordPrefix.length))
  );
}

/** The meaning of a ref. `package` is relative to the directory. */
export type RefMeaning =
  | { readonly kind: 'main' }
  | { readonly kind: 'draft'; readonly package: string; readonly workspace: string }
  | { readonly kind: 'proposed'; readonly package: string; readonly workspace: string }
  /** `version` is the tag's last segment; `revision` its number, or -1 for a tag that is not `v<N>`. */
  | { readonly kind: 'published'; readonly package: string; readonly version: string; readonly revision: number }
  | { readonly kind: 'deletionProposed'; readonly package: string; readonly version: string }
  /** `path` is the full path of the package, the directory included. */
  | { readonly kind: 'record'; readonly package: string; readonly path: string; readonly workspace: string }
  | { readonly kind: 'other' };

const DRAFTS = 'refs/heads/drafts/';
const PROPOSED = 'refs/heads/proposed/';
export const DELETION_PROPOSED = 'refs/heads/deletionProposed/';
const TAGS = 'refs/tags/';

/** Folder of a package in the repository's tree. */
export function packagePath(layout: RepositoryLayout, packageName: string): string {
  return layout.directory === '' ? packageName : `${layout.directory}/${packageName}`;
}

export function mainRef(layout: RepositoryLayout): string {
  return `refs/heads/${layout.branch}`;
}

export function draftRef(layout: RepositoryLayout, key: RevisionKey): string {
  return `${DRAFTS}${packagePath(layout, key.package)}/${key.workspace}`;
}

export function proposedRef(layout: RepositoryLayout, key: RevisionKey): string {
  return `${PROPOSED}${packagePath(layout, key.package)}/${key.workspace}`;
}

/** `version` is `v<N>`, or another tag name that was given by hand. */
export function tagRef(layout: RepositoryLayout, packageName: string, version: string): string {
  return `${TAGS}${packagePath(layout, packageName)}/${version}`;
}

/** `version` is `v<N>`, or the workspace for a revision without a number. */
export function deletionProposedRef(layout: RepositoryLayout, packageName: string, version: string): string {
  return `${DELETION_PROPOSED}${packagePath(layout, packageName)}/${version}`;
}

/** The record of a revision; `path` is the full path of its package. */
export function recordRef(layout: RepositoryLayout, path: string, workspace: string): string {
  return `${layout.recordPrefix}${path}/${workspace}`;
}

/** The uid of a revision whose record an earlier version of Sluice wrote, without a signature; undefined for other refs. */
export function unsignedRecordUid(layout: RepositoryLayout, ref: string): string | undefined {
  if (!ref.startsWith(layout.recordPrefix)) return undefined;
  const name = ref.slice(layout.recordPrefix.length);
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name) ? name : undefined;
}

/** Identifies the repository permanently: a signed statement with its random id. */
export function identityRef(layout: Pick<RepositoryLayout, 'recordPrefix'>): string {
  return layout.recordPrefix.replace(/records\/$/, 'repository');
}

/** Returns the ref of the id for the alternative location of records; it applies if `identityRef` is missing. */
export function otherIdentityRef({ recordPrefix }: Pick<RepositoryLayout, 'recordPrefix'>): string {
  return identityRef({ recordPrefix: recordPrefix === RECORD_REFS ? RECORD_BRANCHES : RECORD_REFS });
}

/** True for a ref at the place that this layout does not use for records, ids, adoptions and deletions. */
export function isOtherLayout({ recordPrefix }: Pick<RepositoryLayout, 'recordPrefix'>, ref: string): boolean {
  const other = { recordPrefix: recordPrefix === RECORD_REFS ? RECORD_BRANCHES : RECORD_REFS };
  const names = [identityRef(other), adoptionRef(other)];
  const folders = [other.recordPrefix, tombstonePrefix(other), ...names.map((name) => `${name}/`)];
  return names.includes(ref) || folders.some((folder) => ref.startsWith(folder));
}

/** Returns the ref with the adoptions of an operator: a chain of signed lists. */
export function adoptionRef(layout: Pick<RepositoryLayout, 'recordPrefix'>): string {
  return layout.recordPrefix.replace(/records\/$/, 'adopted');
}

/**
 * Keeps the last record of a published revision that was deleted; it distinguishes a deletion in order from a tag that vanished. The path
 * is one segment: the ref stays, and must not conflict with packages that come later.
 */
export function tombstoneRef(layout: RepositoryLayout, packageName: string, version: string): string {
  return tombstonePrefix(layout) + encodeURIComponent(`${packagePath(layout, packageName)}/${version}`);
}

/** In front of all tombstones: beside the records, wherever those are. */
export function tombstonePrefix(layout: Pick<RepositoryLayout, 'recordPrefix'>): string {
  return layout.recordPrefix.replace(/records\/$/, 'deleted/');
}

/** Returns the tag of a tombstone: the full path of its package, and its last segment. Undefined for another ref. */
export function deletedIn(
  layout: RepositoryLayout,
  ref: string,
): { readonly path: string; readonly version: string; readonly tag: string } | undefined {
  const prefix = tombstonePrefix(layout);
  if (!ref.startsWith(prefix)) return undefined;
  const text = decoded(ref.slice(prefix.length));
  const slash = Math.max(text.lastIndexOf('/'), 0);
  return { path: text.slice(0, slash), version: text.slice(slash + 1), tag: TAGS + text };
}

/** Everyone who may push can write such a name. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the prefixes of the refs of a repository's packages. */
export function watchedPrefixes(layout: RepositoryLayout): string[] {
  return [
    ...[mainRef(layout), DRAFTS, PROPOSED, DELETION_PROPOSED, TAGS],
    ...[layout.recordPrefix, tombstonePrefix(layout), identityRef(layout), adoptionRef(layout)],
  ];
}

/** The meaning of a full ref name in this layout; refs of other directories of the same Git repository are `other`. */
export function parseRef(layout: RepositoryLayout, ref: string): RefMeaning {
  if (ref === mainRef(layout)) return { kind: 'main' };
  if (ref.startsWith(layout.recordPrefix)) {
    const path = ref.slice(layout.recordPrefix.length);
    const found = split(layout, path);
    if (found === undefined) return { kind: 'other' };
    const { package: packageName, last: workspace } = found;
    return { kind: 'record', package: packageName, path: packagePath(layout, packageName), workspace };
  }
  if (ref.startsWith(DRAFTS)) {
    const found = split(layout, ref.slice(DRAFTS.length));
    return found === undefined ? { kind: 'other' } : { kind: 'draft', package: found.package, workspace: found.last };
  }
  if (ref.startsWith(PROPOSED)) {
    const found = split(layout, ref.slice(PROPOSED.length));
    return found === undefined
      ? { kind: 'other' }
      : { kind: 'proposed', package: found.package, workspace: found.last };
  }
  if (ref.startsWith(DELETION_PROPOSED)) {
    const found = split(layout, ref.slice(DELETION_PROPOSED.length));
    return found === undefined
      ? { kind: 'other' }
      : { kind: 'deletionProposed', package: found.package, version: found.last };
  }
  if (ref.startsWith(TAGS)) {
    const found = split(layout, ref.slice(TAGS.length));
    if (found === undefined) return { kind: 'other' };
    return { kind: 'published', package: found.package, version: found.last, revision: revisionNumber(found.last) };
  }
  return { kind: 'other' };
}

/** The highest number that a tag's name can carry; see `revisionNumber`. */
export const MAX_REVISION = 999_999_999;

/** `v7` is 7; anything else is -1. */
function revisionNumber(version: string): number {
  const match = /^v([1-9][0-9]{0,8})$/.exec(version);
  return match === null ? -1 : Number(match[1]);
}

/** Splits `<directory>/<package path>/<last>`; undefined if it is outside of the directory or has no package. */
function split(layout: RepositoryLayout, path: string): { package: string; last: string } | undefined {
  const prefix = layout.directory === '' ? '' : `${layout.directory}/`;
  if (!path.startsWith(prefix)) return undefined;
  const slash = path.lastIndexOf('/');
  if (slash <= prefix.length || slash === path.length - 1) return undefined;
  return { package: path.slice(prefix.length, slash), last: path.slice(slash + 1) };
}
