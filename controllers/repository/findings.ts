import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';
import type { RevisionIndex } from '../../src/package/index/revision-index.ts';
import type { IndexChange } from '../../src/package/index/state/index-delta.ts';
import { classify, type Finding, type Knowledge } from '../../src/package/kernel/classify.ts';
import type { PublicationFacts } from '../../src/package/kernel/publication.ts';
import {
  deletionProposedRef,
  mainRef,
  type RepositoryLayout,
  recordRef,
} from '../../src/package/model/identity/layout.ts';
import { lookalikesOf } from '../../src/package/model/policy/lookalikes.ts';
import type { EffectivePolicy } from '../../src/package/model/policy/policy.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { Distrust } from '../../src/package/trust/distrust.ts';
import { parsePublicationDigest, publicationScope } from '../../src/package/trust/ledger/publication-mark.ts';
import { DELETED } from '../../src/package/trust/ledger/trust-ledger.ts';
import type { RepositoryTrust } from '../../src/package/trust/repository-trust.ts';

const HEADS = 'refs/heads/';

/** Commits that are read to distinguish a rewritten draft from one that advanced. */
const MAX_COMMITS_WALKED = 500;

/** Findings about revisions that lose their trust together. More of them become one finding about the repository. */
const MAX_TRUST_FINDINGS = 10;

interface Examined {
  readonly git: GitRepository;
  readonly layout: RepositoryLayout;
  readonly index: Pick<RevisionIndex, 'mainHead' | 'isOnMain'>;
  readonly trust: Pick<RepositoryTrust, 'repository' | 'mark' | 'writerOf'>;
  policyFor(revision: PackageRevision): EffectivePolicy;
}

/**
 * Returns the kernel's findings about changes of revisions by other processes. The main branch has a separate finding,
 * see `mainFinding`; the index flags packages on it that differ from the published ones. With `hasPeer` another process on the ledger writes too:
 * of what it does by itself nothing is reported.
 */
export async function findingsOf(
  repository: Examined,
  changes: readonly IndexChange[],
  hasPeer = false,
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
  const endedByLedger = deletedByLedger(changes, trust);
  const byPeer = hasPeer ? writtenByPeer(changes, trust) : new Set<string>();
  const knowledge: Knowledge = {
    publication: (ref, oid) => publicationOf(known.atRef.get(`${ref} ${oid}`), trust.repository, layout.branch),
    distrust: (ref, oid) => distrustOf(known.atRef.get(`${ref} ${oid}`)),
    isAncestor: (older, newer) => descents.get(`${older} ${newer}`),
    trustedRecord: (ref, oid) => known.trustedRecords.has(`${ref} ${oid}`),
    decided: ({ name, before, after }) =>
      after === undefined ? endedByLedger.has(`${name} ${before}`) : known.decided.has(`${name} ${after}`),
  };
  const side = (pick: (change: IndexChange) => PackageRevision | undefined) =>
    new Map(changes.flatMap((change) => refsOf(pick(change), layout)));
  const found = classify(
    side(({ before }) => before),
    side(({ after }) => after),
    layout,
    knowledge,
  );
  const reported = found.filter(
    ({ inBand, kind, ref, before, after }) =>
      !inBand || (ALWAYS_REPORTED.has(kind) && !byPeer.has(`${ref} ${after ?? before}`)),
  );
  const explained = reported.flatMap((finding): Finding[] => {
    const { kind, ref, before, after, reason } = finding;
    if (kind === 'DraftRemoved' || kind === 'ProposedRemoved') {
      const removed = known.atRef.get(`${ref} ${before}`);
      const isReviewed =
        kind === 'ProposedRemoved' && removed !== undefined && repository.policyFor(removed).review !== undefined;
      const restoring = restoringOf(removed?.name ?? 'it', ref, before, isReviewed);
      return [{ ...finding, message: `${finding.message}; ${restoring}` }];
    }
    const distrust = kind === 'RecordChanged' ? known.distrustedRecords.get(`${ref} ${after}`) : undefined;
    // An unverified statement is not known to be wrong.
    if (reason === 'Unverified' || distrust?.reason === 'Unverified') return [];
    if (distrust === undefined) return [finding];
    const what = `${finding.package}/${finding.workspace}`;
    const message = `the record of ${what} does not count (${distrust.reason}): ${distrust.message}; affirm the conditions of its gates`;
    return [{ ...finding, message }];
  });
  return [...explained, ...trustFindings(changes, layout), ...lookalikeFindings(repository, changes)];
}

/** The last commit is one of Sluice, which clones do not have; hosts keep the heads of pull requests. */
function restoringOf(name: string, ref: string, commit: Oid | undefined, isReviewed: boolean): string {
  const fetched = isReviewed
    ? ', after git fetch REMOTE refs/pull/NUMBER/head with the number of its pull request'
    : '';
  return `to restore ${name}, restore the branch ${ref.slice(HEADS.length)} on the Git host, or push the commit to it again from a clone that has it${fetched}: git push REMOTE ${commit}:${ref}`;
}

/** Returns condition types in a push that users could mistake for other types; the API would have refused them. */
function lookalikeFindings(repository: Pick<Examined, 'policyFor'>, changes: readonly IndexChange[]): Finding[] {
  return changes.flatMap(({ before, after }): Finding[] => {
    if (after === undefined || isPlaceholder(after) || before?.commit === after.commit) return [];
    const policy = repository.policyFor(after);
    const present = new Set(before === undefined ? [] : lookalikesOf(before.kptfile, policy));
    const found = lookalikesOf(after.kptfile, policy).filter((problem) => !present.has(problem));
    const [first] = found;
    if (first === undefined) return [];
    const more = found.length === 1 ? '' : `, and ${found.length - 1} more like it`;
    const { package: packageName, workspace } = after.key;
    return [
      {
        ...{ kind: 'LookalikeType', ref: after.ref, package: packageName, workspace, inBand: false },
        ...{ before: before?.refOid, after: after.refOid },
        message: `a push added a condition or gate to ${after.name} that opens no gate:  ${first}${more}`,
      },
    ];
  });
}

/**
 * A main branch that was rewritten: one finding for the repository, however many packages are on it. Undefined if its head before is
 * on the first-parent line of the one after, whichever client advanced it.
 */
export async function mainFinding(
  { index, layout }: Pick<Examined, 'index' | 'layout'>,
  before: Oid | undefined,
): Promise<Finding | undefined> {
  const after = index.mainHead;
  if (before === undefined || after === undefined || before === after) return undefined;
  if (await index.isOnMain(before)) return undefined;
  const ref = mainRef(layout);
  const nothing: Knowledge = {
    publication: () => undefined,
    distrust: () => undefined,
    isAncestor: () => undefined,
    trustedRecord: () => false,
    decided: () => false,
  };
  return classify(new Map([[ref, before]]), new Map([[ref, after]]), layout, nothing)[0];
}

/** Publications and records that no longer count although no ref changed. */
function trustFindings(changes: readonly IndexChange[], layout: RepositoryLayout): Finding[] {
  const found = changes.flatMap(({ before, after }): Finding[] => {
    if (before === undefined || after === undefined || isPlaceholder(after)) return [];
    const isSameTag = before.refOid === after.refOid && before.ref === after.ref;
    const isSameRecord = before.recordOid === after.recordOid;
    const { outOfBand, recordDistrust } = after;
    const tag =
      isSameTag && before.outOfBand === undefined && outOfBand?.reason !== 'Unverified' ? outOfBand : undefined;
    const hadRecord = before.recordDistrust === undefined && before.record !== undefined;
    const record = isSameRecord && hadRecord && recordDistrust?.reason !== 'Unverified' ? recordDistrust : undefined;
    const flaw = tag ?? record;
    if (flaw === undefined) return [];
    const what = tag === undefined ? 'record' : 'publication';
    const { package: packageName, workspace } = after.key;
    return [
      {
        ...{ kind: 'TrustLost', ref: after.ref, package: packageName, workspace, inBand: false },
        ...{ before: before.refOid, after: after.refOid },
        message: `the ${what} of ${after.name} does not count any more (${flaw.reason}): ${flaw.message}`,
      },
    ];
  });
  const [first] = found;
  if (first === undefined || found.length <= MAX_TRUST_FINDINGS) return found;
  const message = `${found.length} publications and records do not count any more, for example: ${first.message}`;
  return [
    {
      ...{ kind: 'TrustLost', ref: mainRef(layout), package: undefined, inBand: false },
      ...{ before: undefined, after: undefined, message },
    },
  ];
}

/** Publications that are gone, and that a signed statement deleted, by ref and id. It can be read after the tag was seen to be gone. */
function deletedByLedger(changes: readonly IndexChange[], trust: Examined['trust']): Set<string> {
  const deleted = changes.flatMap(({ before, after }) => {
    if (before === undefined || after?.ref === before.ref || !isPublished(before)) return [];
    const version = before.ref.slice(before.ref.lastIndexOf('/') + 1);
    const mark = trust.mark(publicationScope(before.path, version));
    const { commit, isDeleted } = parsePublicationDigest(mark?.digest ?? '');
    return isDeleted && commit === before.commit ? [`${before.ref} ${before.refOid}`] : [];
  });
  return new Set(deleted);
}

/** Drafts and proposals that another process on the ledger deleted or made, by ref and id. */
function writtenByPeer(changes: readonly IndexChange[], trust: Examined['trust']): Set<string> {
  const written = changes.flatMap(({ before, after }) => {
    if (after !== undefined) {
      const { statement, record, commit, ref, refOid } = after;
      const isSigned = statement !== undefined && record?.commit === commit && trust.writerOf(statement) !== 'other';
      return isSigned ? [`${ref} ${refOid}`] : [];
    }
    // Without a record it was a push, which may have followed on a deletion of another draft of this name.
    if (before?.recordOid === undefined || isPublished(before)) return [];
    return wasDeleted(before, trust) ? [`${before.ref} ${before.refOid}`] : [];
  });
  return new Set(written);
}

/** True if the ledger has it that a process deleted a draft, or a proposal. A publication proves that in Git. */
export function wasDeleted(revision: PackageRevision, trust: Pick<RepositoryTrust, 'mark'>): boolean {
  if (isPublished(revision)) return true;
  return trust.mark({ package: revision.path, workspace: revision.key.workspace })?.digest === DELETED;
}

/** Rows by ref and id, so that thousands of rows that arrived in one push are scanned once. */
function lookUp(rows: readonly PackageRevision[], layout: RepositoryLayout) {
  const atRef = new Map<string, PackageRevision>();
  const trustedRecords = new Set<string>();
  const decided = new Set<string>();
  const distrustedRecords = new Map<string, Distrust>();
  for (const row of rows) {
    const ref = `${row.ref} ${row.refOid}`;
    if (!atRef.has(ref)) atRef.set(ref, row);
    if (row.recordOid !== undefined && row.record !== undefined)
      trustedRecords.add(`${recordRef(layout, row.path, row.key.workspace)} ${row.recordOid}`);
    if (isStepResult(row)) decided.add(ref);
    const { recordOid, recordDistrust } = row;
    if (recordOid !== undefined && recordDistrust !== undefined)
      distrustedRecords.set(`${recordRef(layout, row.path, row.key.workspace)} ${recordOid}`, recordDistrust);
  }
  return { atRef, trustedRecords, decided, distrustedRecords };
}

/** Permitted changes that users who work on the revision still need to know of. */
const ALWAYS_REPORTED: ReadonlySet<Finding['kind']> = new Set(['DraftRewritten', 'DraftRemoved', 'ProposedRemoved']);

/** The record changes in the transaction of the step, in any process, and contains the resulting commit. */
function isStepResult({ lifecycle, commit, record }: PackageRevision): boolean {
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

function publicationOf(
  row: PackageRevision | undefined,
  repository: string,
  branch: string,
): PublicationFacts | undefined {
  if (row === undefined) return undefined;
  return {
    ...{ repository, branch },
    oid: row.tip.oid,
    parents: row.tip.parents,
    subject: row.tip.subject,
    commit: row.tip.facts,
    path: row.path,
    version: row.ref.slice(row.ref.lastIndexOf('/') + 1),
    tree: row.tip.tree,
  };
}

/** The verdict of the index on a publication that is itself well-formed. */
function distrustOf(row: PackageRevision | undefined): ReturnType<Knowledge['distrust']> {
  return row?.outOfBand as ReturnType<Knowledge['distrust']>;
}

/** True if a commit reaches another; undefined if the history between them is too long to walk. */
async function isAncestor(git: GitRepository, older: Oid, newer: Oid): Promise<boolean | undefined> {
  const seen = new Set([newer]);
  for (const oid of seen) {
    if (oid === older) return true;
    if (seen.size > MAX_COMMITS_WALKED) return undefined;
    try {
      for (const parent of (await git.readCommit(oid)).parents) seen.add(parent);
    } catch (error) {
      // The history is truncated here.
      if (isSluiceError(error, 'NotFound')) return undefined;
      throw error;
    }
  }
  return false;
}
