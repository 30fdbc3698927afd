import { SluiceError } from '../../foundation/sluice-error.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import type { Oid, RefUpdate } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { decide } from '../kernel/decide.ts';
import { foreignMessage } from '../kernel/foreign-files.ts';
import { refuseOvertaken } from '../kernel/main-edit.ts';
import { recordAfter } from '../kernel/record-after.ts';
import { groupsForQuorums } from '../model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import { REVIEW_ACTOR } from '../model/policy/review-policy.ts';
import type { Approval, RevisionRecord } from '../model/record/record.ts';
import { describeWithdrawal } from '../model/record/withdrawn-approval.ts';
import { isPlaceholder, type PackageRevision } from '../model/revision/package-revision.ts';
import type {
  Action,
  Allowed,
  MergedProposal,
  RefStep,
  Refused,
  RevisionState,
} from '../model/revision/revision-state.ts';
import type { MergedFacts } from './merged-facts.ts';
import { policyRights } from './policy-rights.ts';
import { type RepositoryContext, type WritePlan, writeRecord } from './ports/repository-context.ts';
import { readState, type StateReading } from './read-state.ts';
import { type DecidedStep, tagFor, type WrittenObjects, writeObjects } from './step-objects.ts';
import { recordUpdates } from './step-records.ts';

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
  /** See `TransitionRequest.mustSuffice`. */
  readonly mustSuffice?: boolean;
  /** See `TransitionRequest.closedNow`. */
  readonly closedNow?: string;
  /** Address of the review or pull request in which the actor approved. */
  readonly evidence?: string;
  /** Id of that review on its host. */
  readonly review?: string;
  /** Recorded approvals of users who have lost the right to approve. */
  readonly withdrawn?: readonly Approval[];
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
  return planStep(await decideTransition(repo, revision, transition, context, mainHead));
}

/** Decides on a lifecycle step and writes nothing; see `planTransition`. */
export async function decideTransition(
  repo: RepositoryContext,
  revision: PackageRevision,
  transition: Transition,
  context: RequestContext,
  mainHead?: Oid,
): Promise<DecidedStep> {
  if (needsStatement(revision, transition.action)) repo.trust.expectOwnKey();
  const policy = repo.policyFor(revision);
  const at = timestamp(repo.clock.now());
  const { evidence = context.evidence, review = context.review, withdrawn = [], ...wanted } = transition;
  const { action, facts, expectedCommit: _expected, ...how } = wanted;
  const known = how.merged && { merged: how.merged, facts, policy, at };
  const reading = withoutApprovals(await readState(repo, revision, mainHead, known, how), withdrawn);
  const expectedCommit = expectedIn(revision, reading.state, transition);
  const request = {
    ...{ action, actor: context.actor, face: context.face, ...how },
    ...(await policyRights(context, policy)),
    ...(context.reason === undefined ? {} : { reason: context.reason }),
  };
  const decision = decide(
    reading.state,
    expectedCommit === undefined ? request : { ...request, expectedCommit },
    policy,
    at,
  );
  const lost = withdrawn.map(describeWithdrawal);
  if (!decision.allowed)
    throw new TransitionRefusedError(revision, action, {
      ...decision,
      refusals: [...decision.refusals, ...lost.map((message) => ({ code: 'NotApproved', message }) as const)],
    });
  for (const message of lost) context.warn?.(message);
  const overtaken = action === 'propose' || action === 'approve' ? refuseOvertaken(reading.state) : undefined;
  if (overtaken !== undefined) context.warn?.(overtaken.message);
  // The approval counts; the merge waits until the branch has the package alone.
  if (how.byMerge === true && reading.state.foreign !== undefined) context.warn?.(foreignMessage(reading.state));

  const { content } = reading;
  const approval = content && {
    ...{ subject: context.actor.name, content: content.content, tree: content.tree, at, face: context.face },
    namespace: revision.namespace,
    ...groupsForQuorums(policy.approvalRules, context.actor.groups),
    ...groupsForLater(policy, decision, context.actor.groups),
    ...(evidence === undefined ? {} : { evidence }),
    ...(review === undefined ? {} : { review }),
  };
  const step = {
    ...{ action, by: context.actor.name, face: context.face, at, commit: revision.commit },
    ...(action === 'reject' && content !== undefined ? { content: content.content } : {}),
    ...(context.reason === undefined ? {} : { reason: context.reason }),
  };
  const record = recordAfter(decision, { ...reading, approval }, step, policy);
  const { closedNow } = how;
  // The statement has the gates as they were at the decision.
  return { repo, revision, action, decision, reading, record, policy, at: decision.judgedAt ?? at, closedNow, context };
}

/** Plans a step that was decided, with a commit of its own where it makes one. */
export async function planStep(step: DecidedStep): Promise<WritePlan> {
  const { repo, revision, record, decision, context } = step;
  if (decision.approvals !== undefined) return planApproval(repo, revision, record, decision.approvals, context);
  return planWith(step, await writeObjects(step));
}

/** Plans the refs of a step whose objects were written. */
export async function planWith(step: DecidedStep, written: WrittenObjects): Promise<WritePlan> {
  const { revision, action, decision } = step;
  const { made, statementTag } = written;
  const tag = statementTag ?? (made && (await tagFor(step, made)));
  const updates = decision.plan.map((one) => refUpdate(one, revision, one.ref.startsWith('refs/tags/') ? tag : made));
  const recorded = await recordUpdates(step, written);
  updates.push(...recorded.updates);
  return { updates, name: revision.name, marks: recorded.marks, revokes: REVOKING_ACTIONS.has(action) };
}

/** Groups of a user that an approval records. */
const MAX_GROUPS = 100;

/**
 * The groups by which the right to approve is checked again where the approval does not publish by itself, or before a merge of the Git host, unless there
 * are too many to record.
 */
function groupsForLater(
  { review }: EffectivePolicy,
  { approvals }: Allowed,
  groups: readonly string[] | undefined,
): { readonly allGroups?: string[] } {
  const mayMerge = review !== undefined && review.publishOn !== 'merge';
  if ((!mayMerge && approvals === undefined) || groups === undefined || groups.length > MAX_GROUPS) return {};
  return { allGroups: [...new Set(groups)].sort() };
}

function withoutApprovals(reading: StateReading, withdrawn: readonly Approval[]): StateReading {
  const { state, record } = reading;
  if (withdrawn.length === 0) return reading;
  const counted = (approvals: readonly Approval[] = []) =>
    approvals.filter((one) => !withdrawn.some((other) => sameValue(one, other)));
  return {
    ...reading,
    state: {
      ...state,
      approvals: counted(state.approvals),
      approvalsElsewhere: counted(state.approvalsElsewhere),
    },
    record: { ...record, approvals: counted(record.approvals) },
  };
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
  if (old === next) return { type: 'verify', ref, old };
  return old === null ? { type: 'create', ref, new: next } : { type: 'update', ref, old, new: next };
}
