import { createHash } from 'node:crypto';
import { type ContentsView, contentsDigest, differentFiles } from './contents-digest.ts';
import type { RevisionView } from './revision-view.ts';

/** A value of a package revision that Porch and Sluice show differently. */
export interface Difference {
  readonly namespace: string;
  readonly repository: string;
  readonly name: string;
  readonly field: string;
  readonly porch: string;
  readonly sluice: string;
  readonly next: string;
}

export type RevisionDifference = Pick<Difference, 'name' | 'field' | 'porch' | 'sluice' | 'next'>;

export interface CompareOptions {
  /** Porch stores no draft in Git: it has a database. */
  readonly hasDatabase: boolean;
}

const NONE = '-';
/** Maximum number of paths that a difference names. */
const MAX_PATHS = 3;

/** Maximum number of characters of a value. */
const MAX_VALUE = 60;
const OWN_VALUE = 'Sluice keeps its value: set the right one there';

const AGAIN = 'it may have changed meanwhile: compare again once both have read the repository';

/** The differences between the package revisions of one repository, by name. */
export function compareRevisions(
  porch: readonly RevisionView[],
  sluice: readonly RevisionView[],
  { hasDatabase }: CompareOptions,
): readonly RevisionDifference[] {
  const ours = new Map(sluice.map((view) => [view.name, view]));
  const theirs = new Set(porch.map(({ name }) => name));
  const found: RevisionDifference[] = [];
  for (const view of porch) {
    const own = ours.get(view.name);
    if (own !== undefined) found.push(...fieldDifferences(view, own));
    else
      found.push({
        ...{ name: view.name, field: 'existence', porch: stateOf(view), sluice: NONE },
        next: hasDatabase && view.revision === 0 ? databaseOnly(view.name) : AGAIN,
      });
  }
  for (const view of sluice)
    if (!theirs.has(view.name))
      found.push({
        ...{ name: view.name, field: 'existence', porch: NONE, sluice: stateOf(view) },
        next: 'Porch has not read it yet: "porchctl repo sync", then compare again',
      });
  return found.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function databaseOnly(name: string): string {
  return `Porch keeps this draft in its database only: publish it with Porch first, or start Porch with --db-push-drafts-to-git, or keep its files with "porchctl rpkg pull ${name}"`;
}

function fieldDifferences(porch: RevisionView, sluice: RevisionView): RevisionDifference[] {
  const { name } = porch;
  const found: RevisionDifference[] = [];
  const compare = (field: string, theirs: string | number | boolean, ours: string | number | boolean, next = AGAIN) => {
    if (theirs !== ours) found.push({ name, field, porch: String(theirs), sluice: String(ours), next });
  };
  const uidNext = 'objects that refer to it by its uid, such as what it owns, need the uid of Sluice';
  compare('uid', porch.uid, sluice.uid, uidNext);
  compare('package', porch.packageName, sluice.packageName);
  compare('workspace', porch.workspaceName, sluice.workspaceName);
  compare('revision', porch.revision, sluice.revision);
  compare('lifecycle', porch.lifecycle, sluice.lifecycle);
  compare('latest', porch.isLatest, sluice.isLatest);
  for (const kind of ['labels', 'annotations'] as const)
    for (const [key, value] of Object.entries(porch[kind]))
      compare(`metadata.${kind}[${key}]`, shown(value), shown(sluice[kind][key] ?? value), OWN_VALUE);
  return found;
}

/** Values of annotations can be whole documents. */
function shown(value: string): string {
  if (value.length <= MAX_VALUE) return value;
  const digest = createHash('sha256').update(value).digest('hex').slice(0, 12);
  return `${value.slice(0, MAX_VALUE)}… (sha256:${digest})`;
}

function stateOf({ lifecycle, revision }: RevisionView): string {
  return revision === 0 ? lifecycle : `${lifecycle} (revision ${revision})`;
}

/** Undefined if the files are alike. A text is the reason why a server does not show them; undefined says that there are none. */
export function compareContents(
  name: string,
  porch: ContentsView | string | undefined,
  sluice: ContentsView | string | undefined,
): RevisionDifference | undefined {
  if (typeof porch !== 'object' || typeof sluice !== 'object') {
    if (porch === undefined && sluice === undefined) return undefined;
    return { name, field: 'contents', porch: contentsText(porch), sluice: contentsText(sluice), next: AGAIN };
  }
  const paths = differentFiles(porch, sluice);
  if (paths.length === 0) return undefined;
  const more = paths.length > MAX_PATHS ? ` and ${paths.length - MAX_PATHS} more` : '';
  const shown = `${paths.slice(0, MAX_PATHS).join(', ')}${more}`;
  return {
    ...{ name, field: 'contents', porch: contentsDigest(porch), sluice: contentsDigest(sluice) },
    next: `compare ${shown} of "porchctl rpkg pull ${name}" and "sluice rpkg pull ${name}"; ${AGAIN}`,
  };
}

function contentsText(contents: ContentsView | string | undefined): string {
  return typeof contents === 'object' ? contentsDigest(contents) : (contents ?? NONE);
}
