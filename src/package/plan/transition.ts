import { SluiceError } from '../../foundation/sluice-error.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import type { Oid, RefUpdate } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { decide } from '../kernel/decide.ts';
import { recordAfter } from '../kernel/record-after.ts';
import { evaluateGates } from '../model/gates/gates.ts';
import { revisionName } from '../model/identity/identity.ts';
import { recordRef, tagRef, tombstoneRef } from '../model/identity/layout.ts';
import { groupsForQuorums } from '../model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import { REVIEW_ACTOR } from '../model/policy/review-policy.ts';
import { formatCommitMessage, type PublicationStatement } from '../model/record/commit-message.ts';
import { hasObjectMetadata, type RecordStatement, type RevisionRecord } from '../model/record/record.ts';
import { isPlaceholder, type PackageRevision } from '../model/revision/package-revision.ts';
import type {
  Action,
  Allowed,
  MergedProposal,
  RefStep,
  Refused,
  RevisionState,
} from '../model/revision/revision-state.ts';
import { deletionDigest, publicationDigest } from '../trust/ledger/publication-mark.ts';
import { DELETED, deletedContentScope, type NewMark } from '../trust/ledger/trust-ledger.ts';
import type { OwnStatementFact } from '../trust/repository-trust.ts';
import { STATEMENT_VERSION } from '../trust/statement/statement.ts';
import type { MergedFacts } from './merged-facts.ts';
import { markOf, type RepositoryContext, signatures, type WritePlan, writeRecord } from './ports/repository-context.ts';
import { readState, type StateReading } from './read-state.ts';
import { commitAuthors } from './records/record-chain.ts';

export interface Transition {
  readonly action: Action;
  readonly expectedCommit?: Oid;
  /** Publish with closed gates; a policy names who may. */
  readonly breakGlass?: boolean;
  /** The actor named no version that they read. */
  readonly isUnseen?: boolean;
  readonly merged?: MergedProposal;
  /** With `merged`: what decides besides the Kptfile. */
  readonly facts?: MergedFacts;
  /** See `TransitionRequest.byMerge`. */
  readonly byMerge?: boolean;
  /** See `TransitionRequest.closedNow`. */
  readonly closedNow?: string;
  /** Address of the review or pull request in which the actor approved. */
  readonly evidence?: string;
}

/** The steps that may move the main branch. */
export function mayMoveMain(action: Action | undefined): boolean {
  return action === 'approve' || action === 'delete';
}

/** A lifecycle step that the kernel refused; `details` are its reasons. */
export class TransitionRefusedError extends SluiceError<Refused> {
  constructor(revision: PackageRevision, action: Action, refused: Refused) {
    const conflict = refused.refusals.every((refusal) => refusal.code === 'Conflict');
    const reasons = refused.refusals.map((refusal) => refusal.message);
    const message = reasons.length === 1 ? `${reasons[0]}` : `cannot ${action} ${revision.name}: ${reasons.join('; ')}`;
    super(conflict ? 'Conflict' : 'Refused', message, { details: refused });
    this.name = 'TransitionRefusedError';
  }
}

/**
 * Plans a lifecycle step. Throws TransitionRefusedError with every reason if the kernel refuses. `mainHead` is where the main branch
 * will be by then, where that is not what the index shows.
 */
export async function planTransition(
  repo: RepositoryContext,
  revision: PackageRevision,
  transition: Transition,
  context: RequestContext,
  mainHead?: Oid,
): Promise<WritePlan> {
  if (needsStatement(revision, transition.action)) repo.trust.expectOwnKey();
  const policy = repo.policyFor(revision);
  const at = timestamp(repo.clock.now());
  const { action, evidence = context.evidence, facts, expectedCommit: _expected, ...how } = transition;
  const known = facts && { facts, policy, at };
  const reading = await readState(repo, revision, mainHead, how.merged?.commit, known);
  const expectedCommit = expectedIn(revision, reading.state, transition);
  const request = {
    ...{ action, actor: context.actor, face: context.face, ...how },
    ...(context.reason === undefined ? {} : { reason: context.reason }),
  };
  const decision = decide(
    reading.state,
    expectedCommit === undefined ? request : { ...request, expectedCommit },
    policy,
    at,
  );
  if (!decision.allowed) throw new TransitionRefusedError(revision, action, decision);

  const { content } = reading;
  const approval = content && {
    ...{ subject: context.actor.name, content: content.content, tree: content.tree, at, face: context.face },
    namespace: revision.namespace,
    ...groupsForQuorums(policy.approvalRules, context.actor.groups),
    ...groupsForMerges(policy, context.actor.groups),
    ...(evidence === undefined ? {} : { evidence }),
  };
  const step = {
    ...{ action, by: context.actor.name, face: context.face, at, commit: revision.commit },
    ...(action === 'reject' && content !== undefined ? { content: content.content } : {}),
    ...(context.reason === undefined ? {} : { reason: context.reason }),
  };
  const record = recordAfter(decision, { ...reading, approval }, step, policy);
  if (decision.approvals !== undefined) return planApproval(repo, revision, record, decision.approvals, context);

  // The statement has the gates as they were at the decision.
  const decided = { ...request, at: decision.judgedAt ?? at };
  const written = await writeObjects(repo, revision, decision, { ...reading, record }, policy, decided, context);
  const { made, statementTag } = written;
  const tag = statementTag ?? (made && (await tagFor(repo, revision, decision, made, context)));
  const updates = decision.plan.map((step) =>
    refUpdate(step, revision, step.ref.startsWith('refs/tags/') ? tag : made),
  );
  const recorded = await recordUpdates(repo, revision, decision, record, written, context);
  updates.push(...recorded.updates);
  return { updates, name: revision.name, marks: recorded.marks, revokes: REVOKING_ACTIONS.has(action) };
}

/** The groups by which the right to approve is checked again before a merge of the Git host, unless there are too many to record. */
function groupsForMerges(
  { review }: Pick<EffectivePolicy, 'review'>,
  groups: readonly string[] | undefined,
): { readonly allGroups?: string[] } {
  const mayMerge = review !== undefined && review.publishOn !== 'merge';
  if (!mayMerge || groups === undefined || groups.length > MAX_GROUPS) return {};
  return { allGroups: [...new Set(groups)].sort() };
}

/** Steps after which earlier data must not count again. */
const REVOKING_ACTIONS: ReadonlySet<Action> = new Set(['reject', 'delete', 'undo-deletion']);

/** True for steps that have no meaning without a valid statement. A draft can be rejected and deleted without one. */
function needsStatement({ lifecycle }: PackageRevision, action: Action): boolean {
  if (action === 'propose' || action === 'approve') return true;
  return action === 'delete' && (lifecycle === 'Published' || lifecycle === 'DeletionProposed');
}

/** Plans that the record keeps an approval which is not enough yet. */
async function planApproval(
  repo: RepositoryContext,
  revision: PackageRevision,
  record: RevisionRecord,
  { given, needed, missingIn, waitsFor = [], isDecided }: Allowed['approvals'] & {},
  context: RequestContext,
): Promise<WritePlan> {
  const subject = `approval ${given} of ${needed} of ${revision.name} by ${context.actor.name}`;
  const { update, mark } = await writeRecord(repo, revision, record, { subject, action: 'approval' }, context);
  const [first] = waitsFor;
  if (first !== undefined) {
    const until = first.until === undefined ? '' : `, until ${first.until} at the latest`;
    context.warn?.(
      `${given} of ${needed} approvals: a controller publishes ${revision.name} when no rule blocks it: ${first.message}${until}`,
    );
  } else if (isDecided === true) {
    context.warn?.(
      `${given} of ${needed} approvals: rules of the Git host reserve the branch ${repo.layout.branch} for merges, so that ${REVIEW_ACTOR} publishes ${revision.name} by the merge of its pull request; "sluice why ${revision.name}" shows what that waits for`,
    );
  } else if (missingIn.length > 0) {
    context.warn?.(
      `${given} of ${needed} approvals: policies of the namespace ${missingIn.join(', ')}, which has registered the same branch, require that a user approves ${revision.name} there as well`,
    );
  } else {
    const { approvalRules } = repo.policyFor(revision);
    const why = approvalRules.some(({ quorum }) => quorum !== undefined)
      ? `policies require the approvals of several users for ${revision.name}`
      : `the author of a push to ${revision.name} is not known`;
    context.warn?.(`${given} of ${needed} approvals: ${why}, so another user has to approve it`);
  }
  const verify = { type: 'verify', ref: revision.ref, old: revision.refOid } as const;
  return { updates: [verify, update], name: revision.name, marks: [mark], revokes: false };
}

/**
 * Returns the commit of the state that the request is based on. Every publication moves the main branch; a package on it is
 * unchanged as long as its folder is, and then its revision still has the head at which it was first seen.
 */
function expectedIn(revision: PackageRevision, state: RevisionState, { expectedCommit }: Transition): Oid | undefined {
  return isPlaceholder(revision) && expectedCommit === revision.commit ? state.commit : expectedCommit;
}

/** The objects of a step. */
interface WrittenObjects {
  /** The commit of an approval or a removal. */
  readonly made?: Oid;
  /** The commit of the Git host that is published instead, and the tag on it that has the statement. */
  readonly merged?: Oid;
  readonly statementTag?: Oid;
  /** The statement of a publication. */
  readonly fact?: OwnStatementFact;
}

/** Writes the commit for a plan's `approval` or `removal`, or the tag for its `statement`; nothing if it has none of them. */
async function writeObjects(
  repo: RepositoryContext,
  revision: PackageRevision,
  decision: Allowed,
  { state, content, record, mergedTree }: StateReading,
  policy: EffectivePolicy,
  { closedNow, at }: Pick<Transition, 'closedNow'> & { readonly at: string },
  context: RequestContext,
): Promise<WrittenObjects> {
  const { become } = decision.plan.find(({ become: { kind } }) => WRITTEN_KINDS.has(kind)) ?? {};
  const head = state.mainHead;
  if (become === undefined || head === undefined) return {};
  const { kind } = become;
  const number = decision.next?.revision ?? 0;
  if (kind === 'removal') {
    const base = await repo.git.readCommit(head);
    const scope = { package: revision.path, workspace: revision.key.workspace };
    const removal: RecordStatement = {
      ...{ statement: STATEMENT_VERSION, kind: 'record', repository: repo.trust.repository, ...scope },
      ...repo.trust.next(scope, revision.statement),
      // For this head only: the package may be restored later.
      record: { ...record, commit: head, verdicts: [] },
    };
    const { signed } = await repo.trust.sign(removal);
    const made = await repo.git.writeCommit({
      tree: await repo.git.editTree(base.tree, new Map([[revision.path, null]])),
      parents: [head],
      ...signatures(repo, context),
      message: formatCommitMessage(`Delete ${revision.path}`, { context, action: 'delete', statement: signed }),
    });
    return { made };
  }
  if (content === undefined) throw new SluiceError('Internal', `${revision.name} cannot be read, and was approved`);
  const scope = { package: revision.path, workspace: revision.key.workspace };
  const commits = await commitAuthors(repo, revision, record.contributors);
  const onto = kind === 'statement' ? (state.merge?.onto ?? '') : head;
  const { mergeBypass } = decision;
  const areIgnored = decision.bypassed.some(({ gate }) => gate !== undefined) && mergeBypass?.gates !== true;
  const rules = decision.bypassed.flatMap(({ blockedBy }) => blockedBy ?? []);
  const statement: PublicationStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'publication', repository: repo.trust.repository, ...scope },
    ...repo.trust.next(scope, revision.statement),
    ...{ revision: number, tree: mergedTree ?? content.tree, draft: revision.commit, branch: repo.layout.branch, onto },
    record: {
      verdicts: record.verdicts,
      steps: record.steps,
      content: content.content,
      gates: evaluateGates(state.facts, policy, at).map(({ type, requiredBy, state }) => ({
        ...{ type, requiredBy },
        state: type === closedNow && state === 'Open' ? 'NotTrue' : state,
      })),
      contributors: record.contributors ?? [],
      approvals: record.approvals ?? [],
      ...(commits.length === 0 ? {} : { commits }),
      ...(record.task === undefined ? {} : { task: record.task }),
      ...(record.createdAt === undefined ? {} : { createdAt: record.createdAt }),
      ...(areIgnored ? { gatesBypassed: true } : {}),
      ...(decision.brokeGlass === true ? { breakGlass: { by: context.actor.name, reason: context.reason ?? '' } } : {}),
      ...(rules.length === 0 ? {} : { rulesBypassed: rules.slice(0, MAX_STATED_RULES).map(({ message }) => message) }),
      ...(mergeBypass === undefined ? {} : { mergeBypass: bypassOf(mergeBypass) }),
    },
  };
  const { signed, fact } = await repo.trust.sign(statement);
  const message = formatCommitMessage(`Approving package revision ${revision.path}/${number}`, {
    annotation: { package: revision.path, workspaceName: revision.key.workspace, revision: `${number}` },
    context,
    action: 'approve',
    statement: signed,
  });
  if (become.kind === 'statement') {
    const statementTag = await writeTag(repo, revision, number, { on: become.on, message }, context);
    repo.index.noteSigner(statementTag, fact.signer);
    return { merged: become.on, statementTag, fact };
  }
  const base = await repo.git.readCommit(head);
  const made = await repo.git.writeCommit({
    tree: await repo.git.editTree(base.tree, new Map([[revision.path, { oid: content.tree, mode: '040000' }]])),
    parents: [head, revision.commit],
    ...signatures(repo, context),
    message,
  });
  repo.index.noteSigner(made, fact.signer);
  return { made, fact };
}

/** Rules of policies that a statement names as bypassed. */
/** Groups of a user that an approval records. */
const MAX_GROUPS = 100;
const MAX_STATED_RULES = 20;
const WRITTEN_KINDS: ReadonlySet<string> = new Set(['approval', 'statement', 'removal']);

function bypassOf({
  notApproved,
  objection,
}: Allowed['mergeBypass'] & {}): PublicationStatement['record']['mergeBypass'] & {} {
  return {
    ...(notApproved === undefined ? {} : { notApproved }),
    ...(objection === undefined ? {} : { objection }),
  };
}

/**
 * Returns the target of a publication's tag: the approval itself, as in Porch, or with signing a tag object, since a lightweight
 * tag could be set to another signed commit. `made` also without a publication.
 */
async function tagFor(
  repo: RepositoryContext,
  revision: PackageRevision,
  { next }: Allowed,
  made: Oid,
  context: RequestContext,
): Promise<Oid> {
  if (!repo.git.signs || next === undefined) return made;
  return writeTag(repo, revision, next.revision, { on: made, message: `${revision.name}\n` }, context);
}

function writeTag(
  repo: RepositoryContext,
  revision: PackageRevision,
  number: number,
  { on, message }: { readonly on: Oid; readonly message: string },
  context: RequestContext,
): Promise<Oid> {
  const ref = tagRef(repo.layout, revision.key.package, `v${number}`);
  const name = ref.slice('refs/tags/'.length);
  return repo.git.writeTag({
    ...{ object: on, type: 'commit', name, message },
    tagger: signatures(repo, context).committer,
  });
}

function refUpdate(step: RefStep, revision: PackageRevision, made: Oid | undefined): RefUpdate {
  const { ref } = step;
  // The kernel speaks of commits; a tag made by hand can be a tag object.
  const old =
    step.expect !== null && ref === revision.ref && ref.startsWith('refs/tags/') ? revision.refOid : step.expect;
  const next = step.become.kind === 'commit' ? step.become.oid : made;
  if (step.become.kind === 'absent') {
    if (old === null) throw new SluiceError('Internal', `the plan deletes ${ref}, which must not exist`);
    return { type: 'delete', ref, old };
  }
  if (next === undefined) throw new SluiceError('Internal', `no commit was made for ${ref}`);
  return old === null ? { type: 'create', ref, new: next } : { type: 'update', ref, old, new: next };
}

/**
 * The record moves in the same transaction; publication folds it into the approval commit, deletion ends it. Of a published
 * revision that is deleted the last record stays in the place of its tag, so that it
 * stays known that it was deleted in order, by which actor and why.
 */
async function recordUpdates(
  repo: RepositoryContext,
  revision: PackageRevision,
  decision: Allowed,
  record: RevisionRecord,
  { made, merged, statementTag, fact }: WrittenObjects,
  context: RequestContext,
): Promise<{ updates: RefUpdate[]; marks: NewMark[] }> {
  const { layout, index } = repo;
  const { package: packageName } = revision.key;
  const { next } = decision;
  const commit = made ?? merged ?? revision.commit;
  const published = next?.lifecycle === 'Published' && revision.lifecycle === 'Proposed';
  const before = revision.recordOid;
  const step = record.steps.at(-1);
  const subject = `${step?.action} ${revision.name} by ${context.actor.name}${context.reason === undefined ? '' : `: ${context.reason}`}`;
  const note = { subject, action: step?.action ?? 'edit' };
  // The body of a message follows its statement.
  const subjectOf = fact === undefined ? revision : { ...revision, statement: fact };
  const marks: NewMark[] = fact === undefined ? [] : [markOf(fact)];
  // An earlier publication with this number does not count again.
  if (fact !== undefined && next !== undefined)
    marks.push(
      repo.trust.markOfPublication(revision.path, `v${next.revision}`, publicationDigest({ commit, statementTag })),
    );
  if (next !== undefined && !(published && !hasObjectMetadata(record))) {
    const { approvals: _approvals, contributors: _contributors, ...rest } = record;
    const kept = published
      ? { ...rest, commit, verdicts: [], steps: [], published: `v${next.revision}` }
      : { ...record, commit };
    const { update, mark } = await writeRecord(repo, subjectOf, kept, note, context);
    marks.push(mark);
    return { updates: published ? [update, ...dropTombstone(repo, packageName, next.revision)] : [update], marks };
  }
  const updates: RefUpdate[] =
    before === undefined
      ? []
      : [{ type: 'delete', ref: recordRef(layout, revision.path, revision.key.workspace), old: before }];
  if (published && next !== undefined) updates.push(...dropTombstone(repo, packageName, next.revision));
  if (next === undefined && revision.ref.startsWith('refs/tags/')) {
    const deleted = revision.ref.slice(revision.ref.lastIndexOf('/') + 1);
    const ref = tombstoneRef(layout, packageName, deleted);
    const { update, mark } = await writeRecord(repo, revision, { ...record, commit, deleted }, note, context);
    const old = index.ref(ref);
    const { new: last } = update;
    updates.push(old === undefined ? { type: 'create', ref, new: last } : { type: 'update', ref, old, new: last });
    marks.push(mark, publicationDeleted(repo, revision), ...deletedContentMark(repo, revision));
  } else if (next === undefined) marks.push(deletionMark(repo, revision));
  return { updates, marks };
}

/** Its tag, which a push can bring back, must not count again. */
function publicationDeleted({ trust }: RepositoryContext, { path, ref, refOid, tip }: PackageRevision): NewMark {
  const statementTag = refOid === tip.oid ? undefined : tip.statementTag;
  const version = ref.slice(ref.lastIndexOf('/') + 1);
  return trust.markOfPublication(path, version, deletionDigest({ commit: tip.oid, statementTag }));
}

/** Its folder stays on the main branch, and is the published content until another commit changes it. */
function deletedContentMark(
  { trust, index, layout }: RepositoryContext,
  { key, path, tip }: PackageRevision,
): NewMark[] {
  const placeholder = index.get(revisionName({ ...key, workspace: layout.branch }));
  if (tip.tree === undefined || placeholder?.tip.tree !== tip.tree) return [];
  const scope = deletedContentScope(path);
  const sequence = (trust.mark(scope)?.sequence ?? 0) + 1;
  return [{ scope: { ...scope, repository: trust.repository }, sequence, digest: tip.tree, proven: true }];
}

/** Deleting a draft writes no record; but its last record must not count again. */
function deletionMark({ trust }: RepositoryContext, { path, key, statement }: PackageRevision): NewMark {
  const scope = { package: path, workspace: key.workspace };
  const { sequence } = trust.next(scope, statement);
  return { scope: { ...scope, repository: trust.repository }, sequence, digest: DELETED, proven: true };
}

/** A new publication with the number removes the tombstone. */
function dropTombstone({ layout, index }: RepositoryContext, packageName: string, revision: number): RefUpdate[] {
  const ref = tombstoneRef(layout, packageName, `v${revision}`);
  const old = index.ref(ref);
  return old === undefined ? [] : [{ type: 'delete', ref, old }];
}
