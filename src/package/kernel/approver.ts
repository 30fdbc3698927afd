import type { Actor, EntryPoint } from '../../resource/object/request-context.ts';
import { type EffectivePolicy, isActor } from '../model/policy/policy.ts';
import { type Approval, isDecision } from '../model/record/record.ts';
import type {
  Allowed,
  BlockingRule,
  MergedProposal,
  Refusal,
  RevisionState,
  TransitionRequest,
} from '../model/revision/revision-state.ts';
import { type ApprovalFacts, type ApprovalStatus, approvalStatus, areEnough, quorumProblem } from './approvals.ts';

/*
 * Whose approval counts, and whether it is enough: the part of `decide` about the actor of an approval. Pure, as all of the kernel.
 */

/** A merge by the rules of the host alone is no approval. */
export function refuseMerger({ name }: RevisionState, merged: MergedProposal | undefined): Refusal | undefined {
  if (merged?.notApproved === undefined) return undefined;
  return { code: 'NotApproved', message: `no approval of ${name} counts: ${merged.notApproved}` };
}

/** Neither a merge nor the decision right before it waits for further approvals, as the proposal itself does. */
export function refuseUnapproved(
  state: RevisionState,
  request: TransitionRequest,
  policy: EffectivePolicy,
): Refusal | undefined {
  const { merged, mustSuffice } = request;
  if (merged === undefined && mustSuffice !== true) return undefined;
  const approvals = countApprovals(state, request, policy);
  if (!areMissing(approvals)) return undefined;
  const { given, needed, missingIn } = approvals;
  const where = missingIn.length === 0 ? '' : `, missing in the namespace ${missingIn.join(', ')}`;
  return {
    code: 'NotApproved',
    message: `${state.name} ${merged === undefined ? 'has' : 'was merged with'} ${given} of ${needed} approvals${where}; other users have to approve it`,
  };
}

/** Changes that reviewers requested before the merge, and that no gate shows yet: the host merged before Sluice read them. */
export function refuseObjection({ name }: RevisionState, { merged }: TransitionRequest): Refusal | undefined {
  if (merged?.objection === undefined) return undefined;
  return {
    code: 'ChangesRequested',
    message: `${name} was merged although changes were requested by ${merged.objection}`,
  };
}

/** Milliseconds for which a decision counts for the merge that it was made for. */
export const MERGE_DECISION_MS = 3_600_000;

/**
 * The decision to merge that was recorded before the merge, if the merge is published by the approval of the same user. What began or expired
 * in between is judged as of then: neither a crash nor a slow fetch turns a permitted merge into a bypass.
 */
export function decisionFor(
  state: RevisionState,
  { merged, actor }: TransitionRequest,
  now: string,
): Approval | undefined {
  if (merged === undefined) return undefined;
  return state.approvals.filter(isDecision).find(({ subject, content, at, decidedAt = at }) => {
    if (subject !== actor.name || content !== state.facts.inputs.content) return false;
    const age = Date.parse(now) - Date.parse(decidedAt);
    return age >= 0 && age < MERGE_DECISION_MS;
  });
}

export function areMissing({ given, needed, missingIn }: Allowed['approvals'] & {}): boolean {
  return given < needed || missingIn.length > 0;
}

export function refuseBlocked(blockedBy: BlockingRule): Refusal {
  const { message, since, until, resolvedBy } = blockedBy;
  const times = [since === undefined ? '' : `since ${since}`, until === undefined ? '' : `until ${until}`];
  const when = times.filter((text) => text !== '').join(' ');
  return {
    code: 'Blocked',
    message: `${message}${when === '' ? '' : `; blocked ${when}`}; it is resolved by ${resolvedBy}`,
    blockedBy,
  };
}

/** True if the approval of the actor completes what policies require of users, so that a controller publishes it when no rule blocks. */
export function mayWait(state: RevisionState, { actor, face }: TransitionRequest, policy: EffectivePolicy): boolean {
  if (face === 'controller' || policy.automatic.length === 0) return false;
  const facts = approvalFacts(state);
  const status = approvalStatus(facts, policy);
  if (!policy.forbidSelfApproval && status.quorums.length === 0) return false;
  return !facts.approvals.some(({ subject, content }) => subject === actor.name && content === facts.content);
}

/** Closed gates and blocking rules are bypassed only by an actor in a policy, and with a reason that is stored in the statement. */
export function refuseBreakGlass(
  { name, refs }: RevisionState,
  { actor, reason, byMerge, merged }: TransitionRequest,
  { breakGlass }: EffectivePolicy,
): Refusal[] {
  if (byMerge === true && merged === undefined)
    return [
      {
        code: 'NotAllowed',
        message: `${name} cannot be published with closed gates or blocking rules by a merge of the Git host; let Sluice push to ${refs.main} there, then try again`,
      },
    ];
  if (!breakGlass.some((pattern) => isActor(pattern, actor))) {
    return [
      {
        code: 'NotAllowed',
        message: `no policy permits ${actor.name} to publish with closed gates or blocking rules (spec.approval.breakGlass)`,
      },
    ];
  }
  if (reason !== undefined && reason.trim() !== '') return [];
  return [{ code: 'NotAllowed', message: 'publishing with closed gates needs a reason; give one with --reason' }];
}

export function refuseApprover(
  state: RevisionState,
  request: TransitionRequest,
  policy: EffectivePolicy,
): Refusal | undefined {
  const status = approvalStatus(approvalFacts(state), policy);
  if (!policy.forbidSelfApproval && status.quorums.length === 0) return undefined;
  const { name } = request.actor;
  if (request.face === 'controller') {
    if (policy.automatic.length > 0 && areEnough(status, policy)) return undefined;
    return {
      code: 'NotAllowed',
      message: `${name} is a controller and must not approve ${state.name}, which a policy reserves for users; a user has to`,
    };
  }
  const barred = status.barred.find((one) => one.name === name);
  if (barred === undefined) return refuseOutsider(state, request, status);
  const did = barred.because === 'proposed' ? `proposed ${state.name}` : `changed the content of ${state.name}`;
  return { code: 'NotAllowed', message: `${name} ${did} and must not approve it; another user has to` };
}

/** The approvals that there are with that of the actor, and how many it takes. */
export function countApprovals(
  state: RevisionState,
  { actor, face }: TransitionRequest,
  policy: EffectivePolicy,
): Allowed['approvals'] & {} {
  const status = approvalStatus(approvalFacts(state), policy);
  const quorums = status.quorums.map((one) => {
    const counts =
      face !== 'controller' && one.quorum.namespace === undefined && quorumProblem(one, actor) === undefined;
    const names = new Set([...one.given.map(({ subject }) => subject), ...(counts ? [actor.name] : [])]);
    const { needed, quorum } = one;
    const given = Math.min(names.size, needed);
    return { given, needed, missingIn: given < needed && quorum.namespace !== undefined ? [quorum.namespace] : [] };
  });
  const all = [...(policy.forbidSelfApproval ? [countIndependent(status, actor, face)] : []), ...quorums];
  // Of several requirements, that with the most missing approvals.
  const [worst = { given: 1, needed: 1 }] = [...all].sort(
    (a, b) => b.needed - b.given - (a.needed - a.given) || b.needed - a.needed,
  );
  return {
    ...{ given: worst.given, needed: worst.needed },
    missingIn: [...new Set(all.flatMap(({ missingIn }) => missingIn))],
  };
}

/** The approvals by users who neither changed nor proposed the revision. */
function countIndependent(
  { given, needed, elsewhere }: ApprovalStatus,
  actor: Actor,
  face: EntryPoint,
): Allowed['approvals'] & {} {
  const names = given.map(({ subject }) => subject);
  const here = new Set(face === 'controller' ? names : [actor.name, ...names]).size;
  const missing = elsewhere.filter((one) => one.given.length < needed);
  const there = elsewhere.reduce((sum, one) => sum + Math.min(one.given.length, needed), 0);
  return {
    given: Math.min(here, needed) + there,
    needed: needed * (1 + elsewhere.length),
    missingIn: missing.map(({ namespace }) => namespace),
  };
}

/** An approval that counts for none of the quorums that need one would be recorded in vain. */
function refuseOutsider(
  { name: revision }: RevisionState,
  { actor }: TransitionRequest,
  { quorums }: ApprovalStatus,
): Refusal | undefined {
  const open = quorums.filter(({ given, needed, quorum }) => given.length < needed && quorum.namespace === undefined);
  const problems = open.map((one) => quorumProblem(one, actor));
  const [first] = problems;
  if (first === undefined || problems.includes(undefined)) return undefined;
  return {
    code: 'NotAllowed',
    message: `the approval of ${actor.name} for ${revision} does not count: ${actor.name} ${first}; another user has to approve it`,
  };
}

function approvalFacts(state: RevisionState): ApprovalFacts {
  const { facts, proposedBy, contributors, approvals, approvalsElsewhere } = state;
  return { content: facts.inputs.content, proposedBy, contributors, approvals, approvalsElsewhere };
}
