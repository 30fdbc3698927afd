import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';
import type { IndexChange } from '../../src/package/index/revision-index.ts';
import { classify, type Finding, type Knowledge } from '../../src/package/kernel/classify.ts';
import type { PublicationFacts } from '../../src/package/kernel/publication.ts';
import { deletionProposedRef, type RepositoryLayout, recordRef } from '../../src/package/layout.ts';
import { isPlaceholder, type PackageRevision } from '../../src/package/package-revision.ts';

/** Commits that are read to find out whether a draft was rewritten or only moved on. */
const MAX_WALK = 500;

/**
 * What the kernel says to changes of revisions that were found in the repository and not made by this process. The main branch
 * is left out: the index flags packages on it that differ from what was published.
 */
export async function findingsOf(
  repository: {
    readonly git: GitRepository;
    readonly layout: RepositoryLayout;
    readonly trust: { readonly repository: string };
  },
  changes: readonly IndexChange[],
): Promise<Finding[]> {
  const { git, layout, trust } = repository;
  const rows = changes.flatMap(({ before, after }) => [before, after].filter((row) => row !== undefined));
  const descents = new Map<string, boolean | undefined>();
  for (const { before, after } of changes) {
    if (before === undefined || after === undefined || before.ref !== after.ref || before.commit === after.commit)
      continue;
    descents.set(`${before.commit} ${after.commit}`, await isAncestor(git, before.commit, after.commit));
  }
  const known = lookUp(rows, layout);
  const knowledge: Knowledge = {
    publication: (ref, oid) => publicationOf(known.atRef.get(`${ref} ${oid}`), trust.repository),
    distrust: (ref, oid) => distrustOf(known.atRef.get(`${ref} ${oid}`)),
    isAncestor: (older, newer) => descents.get(`${older} ${newer}`),
    trustedRecord: (ref, oid) => known.trustedRecords.has(`${ref} ${oid}`),
    mainCommits: () => undefined,
    decided: ({ name, after }) => known.decided.has(`${name} ${after}`),
  };
  const side = (pick: (change: IndexChange) => PackageRevision | undefined) =>
    new Map(changes.flatMap((change) => refsOf(pick(change), layout)));
  const found = classify(
    side(({ before }) => before),
    side(({ after }) => after),
    layout,
    knowledge,
  );
  return found.filter((finding) => !finding.inBand || TOLD.has(finding.kind));
}

/** What is asked about rows, so that thousands of them that were pushed together are looked through once. */
function lookUp(rows: readonly PackageRevision[], layout: RepositoryLayout) {
  const atRef = new Map<string, PackageRevision>();
  const trustedRecords = new Set<string>();
  const decided = new Set<string>();
  for (const row of rows) {
    const ref = `${row.ref} ${row.refOid}`;
    if (!atRef.has(ref)) atRef.set(ref, row);
    if (row.recordOid !== undefined && row.record !== undefined)
      trustedRecords.add(`${recordRef(layout, row.path, row.key.workspace)} ${row.recordOid}`);
    if (isDecided(row)) decided.add(ref);
  }
  return { atRef, trustedRecords, decided };
}

/** In order, and still news to those who work on the revision. */
const TOLD: ReadonlySet<Finding['kind']> = new Set(['DraftRewritten', 'DraftRemoved', 'ProposedRemoved']);

/** The record moves in the transaction of the step, by whichever process took it, and names the commit that it left behind. */
function isDecided({ lifecycle, commit, record }: PackageRevision): boolean {
  const step = record?.steps.findLast(({ action }) => action === 'propose' || action === 'reject')?.action;
  return record?.commit === commit && step === (lifecycle === 'Proposed' ? 'propose' : 'reject');
}

function refsOf(row: PackageRevision | undefined, layout: RepositoryLayout): [string, Oid][] {
  if (row === undefined || isPlaceholder(row)) return [];
  const refs: [string, Oid][] = [[row.ref, row.refOid]];
  if (row.recordOid !== undefined) refs.push([recordRef(layout, row.path, row.key.workspace), row.recordOid]);
  if (row.lifecycle === 'DeletionProposed') {
    const version = row.revision > 0 ? `v${row.revision}` : row.key.workspace;
    refs.push([deletionProposedRef(layout, row.key.package, version), row.commit]);
  }
  return refs;
}

function publicationOf(row: PackageRevision | undefined, repository: string): PublicationFacts | undefined {
  if (row === undefined) return undefined;
  return {
    repository,
    parents: row.tip.parents.length,
    subject: row.tip.subject,
    commit: row.tip.facts,
    path: row.path,
    version: row.ref.slice(row.ref.lastIndexOf('/') + 1),
    tree: row.tip.tree,
  };
}

/** What the index says of a publication whose own words are in order. */
function distrustOf(row: PackageRevision | undefined): ReturnType<Knowledge['distrust']> {
  return row?.outOfBand as ReturnType<Knowledge['distrust']>;
}

/** Whether a commit reaches another; undefined if the way is too long to walk. */
async function isAncestor(git: GitRepository, older: Oid, newer: Oid): Promise<boolean | undefined> {
  const seen = new Set([newer]);
  for (const oid of seen) {
    if (oid === older) return true;
    if (seen.size > MAX_WALK) return undefined;
    try {
      for (const parent of (await git.readCommit(oid)).parents) seen.add(parent);
    } catch (error) {
      // The history is cut off here.
      if (isSluiceError(error, 'NotFound')) return undefined;
      throw error;
    }
  }
  return false;
}
