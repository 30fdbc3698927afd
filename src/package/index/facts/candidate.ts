import type { Oid } from '../../../git/git-repository.ts';
import { evaluatePublication } from '../../kernel/publication.ts';
import { isRevisionKey, revisionName, revisionUid } from '../../model/identity/identity.ts';
import { mainRef, packagePath, type RefMeaning, type RepositoryLayout } from '../../model/identity/layout.ts';
import { parseCommitMessage } from '../../model/record/commit-message.ts';
import { isPlaceholder, type OutOfBand, type PackageRevision } from '../../model/revision/package-revision.ts';
import type { Lifecycle } from '../../model/revision/revision-state.ts';
import type { FolderFact, RefFact } from './fact-cache.ts';
import type { CommitFolder } from './fact-reader.ts';
import { KptfileFact } from './kptfile-fact.ts';
import { LazyJson } from './lazy-json.ts';
import { type CommitText, TipFact } from './tip-fact.ts';

/** A revision as the ref that shows it has it; its record and what depends on other revisions of the package come on top. */
export interface Candidate
  extends Omit<
    PackageRevision,
    | 'latest'
    | 'etag'
    | 'record'
    | 'recordOid'
    | 'statement'
    | 'recordDistrust'
    | 'hides'
    | 'kptfile'
    | 'problem'
    | 'tip'
    | 'outOfBand'
  > {
  readonly fact: KptfileFact;
  readonly tip: TipFact;
  /** Problem with the content of a tag; the trust in its statement, and problems of a placeholder, depend on other data. */
  readonly outOfBand: LazyJson<OutOfBand> | undefined;
}

export type RevisionRef = Extract<RefMeaning, { kind: 'draft' | 'proposed' | 'published' }>;

/** The source of candidates. */
export interface Origin {
  readonly repository: string;
  readonly namespace: string;
  readonly layout: RepositoryLayout;
  /** Id of the repository, which statements name. */
  readonly repositoryId: string;
}

const LIFECYCLE_OF = { draft: 'Draft', proposed: 'Proposed', published: 'Published' } as const;
const NO_FACTS = parseCommitMessage('');

/** A ref of a revision, with its location. */
export interface RefTarget extends CommitFolder {
  readonly ref: string;
  readonly meaning: RevisionRef;
}

/**
 * Returns the candidate of a branch or tag; undefined for a tag on a commit without this package, which many repositories
 * have.
 */
export function refCandidate(
  origin: Origin,
  shown: RefTarget,
  tip: TipFact,
  kptfileOf: (blob: Oid) => KptfileFact | undefined,
): Candidate | undefined {
  const { meaning, path } = shown;
  if (meaning.kind !== 'published') return candidateOf(origin, shown, tip, meaning.workspace, kptfileOf);
  if (tip.kptfileBlob === undefined) return undefined;
  const info = tip.text.value;
  const workspace = workspaceOf(meaning.version, path, info.facts);
  const candidate = candidateOf(origin, shown, tip, workspace, kptfileOf);
  const outOfBand = tagFlaw(origin, candidate, info, meaning.version);
  return outOfBand === undefined ? candidate : { ...candidate, outOfBand: LazyJson.of(outOfBand) };
}

/** Returns the candidate of a ref that had the same one in an earlier process. */
export function knownCandidate(
  origin: Origin,
  shown: RefTarget,
  { tip, workspace, uid, outOfBand }: RefFact,
  kptfileOf: (blob: Oid) => KptfileFact | undefined,
): Candidate {
  return candidateOf(origin, shown, tip, workspace, kptfileOf, uid, outOfBand);
}

function candidateOf(
  origin: Origin,
  { ref, oid, path, meaning }: RefTarget,
  tip: TipFact,
  workspace: string,
  kptfileOf: (blob: Oid) => KptfileFact | undefined,
  uid?: string,
  outOfBand?: Candidate['outOfBand'],
): Candidate {
  const key = { repository: origin.repository, package: meaning.package, workspace };
  const name = revisionName(key);
  return {
    key,
    namespace: origin.namespace,
    name,
    uid: uid ?? revisionUid(name, origin.namespace),
    lifecycle: LIFECYCLE_OF[meaning.kind],
    revision: meaning.kind === 'published' ? meaning.revision : 0,
    ref,
    refOid: oid,
    commit: tip.oid,
    path,
    tip,
    fact: tip.kptfileBlob === undefined ? KptfileFact.NONE : (kptfileOf(tip.kptfileBlob) ?? KptfileFact.LOST),
    outOfBand,
  };
}

/**
 * Returns the facts about the main branch's head for placeholders, without those that its message has about a package, which may be
 * another one.
 */
export function headText({ text }: TipFact): LazyJson<CommitText> {
  return LazyJson.of({ ...text.value, facts: NO_FACTS });
}

/** A package on the main branch, whose head is `head`. */
export function placeholderCandidate(
  origin: Origin,
  folder: FolderFact,
  head: Oid,
  text: LazyJson<CommitText>,
  fact: KptfileFact | undefined,
): Candidate {
  const key = { repository: origin.repository, package: folder.path, workspace: origin.layout.branch };
  const name = revisionName(key);
  return {
    key,
    namespace: origin.namespace,
    name,
    uid: folder.uid ?? revisionUid(name, origin.namespace),
    lifecycle: 'Published',
    revision: -1,
    ref: mainRef(origin.layout),
    refOid: head,
    commit: head,
    path: packagePath(origin.layout, folder.path),
    tip: new TipFact(head, folder.tree, folder.kptfileBlob, text),
    fact: fact ?? KptfileFact.LOST,
    outOfBand: undefined,
  };
}

/** Returns why a tag was not published through the kernel; undefined if it was. */
function tagFlaw(
  { repositoryId, layout }: Origin,
  { path, tip }: Candidate,
  { parents, facts, subject }: CommitText,
  version: string,
): OutOfBand | undefined {
  const { oid, tree } = tip;
  const evaluation = evaluatePublication({
    ...{ oid, parents, commit: facts, subject, path, version, tree },
    ...{ repository: repositoryId, branch: layout.branch },
  });
  return evaluation.inBand ? undefined : { reason: evaluation.reason, message: evaluation.message };
}

/** Compares the main branch with the last publication. `newest` is the highest revision of the package. */
export function placeholderFlaw(placeholder: Candidate, newest: Candidate | undefined): OutOfBand | undefined {
  if (newest === undefined) {
    return {
      reason: 'NotPublished',
      message: 'the package is on the main branch, but no revision of it was published',
    };
  }
  if (newest.tip.tree === placeholder.tip.tree) return undefined;
  return {
    reason: 'MainDiffers',
    message: `the main branch has other content than ${newest.name} (v${newest.revision})`,
  };
}

/**
 * Chooses between candidates with the same id. A publication that counts is first: any user who may push can create a tag with its
 * name. Then one with a name in Sluice's spelling: other names can be spelled in two ways. Then the more advanced one, as for a draft
 * branch that is pushed again after publication.
 */
export function chooseCandidate(
  candidates: readonly Candidate[],
  counts: (candidate: Candidate) => boolean,
): Candidate | undefined {
  if (candidates.length < 2) return candidates[0];
  const rank = (candidate: Candidate) => (counts(candidate) ? 100 : 0) + rankOf(candidate);
  return [...candidates].sort((a, b) => rank(b) - rank(a) || b.revision - a.revision || (a.ref < b.ref ? -1 : 1))[0];
}

function rankOf(candidate: Candidate): number {
  const order: readonly Lifecycle[] = ['Draft', 'Proposed', 'Published'];
  const further = isPlaceholder(candidate) ? 0 : 1 + order.indexOf(candidate.lifecycle);
  return (isRevisionKey(candidate.key) ? 10 : 0) + further;
}

/** The workspace of a tag is in its statement or approval commit; for a manually created tag it is the tag itself. */
function workspaceOf(version: string, path: string, { annotations, statement }: CommitText['facts']): string {
  const signed = statement?.statement;
  if (signed?.package === path && `v${signed.revision}` === version) return signed.workspace;
  const number = version.replace(/^v/, '');
  const own = annotations.find(({ package: of, revision }) => of === path && revision?.replace(/^v/, '') === number);
  return own === undefined || own.workspaceName === '' ? version : own.workspaceName;
}
