import { evaluateGates, type Gate } from '../model/gates/gates.ts';
import { MAX_REVISION } from '../model/identity/layout.ts';
import { freezesAtOrSince } from '../model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import {
  ACTIONS,
  type Action,
  type Allowed,
  type BlockingRule,
  type Decision,
  type Lifecycle,
  type MergedProposal,
  type PushedSince,
  type RefStep,
  type Refusal,
  type Refused,
  type RevisionState,
  type TransitionRequest,
} from '../model/revision/revision-state.ts';
import {
  areMissing,
  countApprovals,
  decisionFor,
  mayWait,
  refuseApprover,
  refuseBlocked,
  refuseBreakGlass,
  refuseMerger,
  refuseObjection,
  refuseUnapproved,
} from './approver.ts';
import { blockingRules, lostRecord } from './blocking-rules.ts';
import { dropSameDraft, proposalSteps, refuseOtherDraft, rejectionSteps } from './branch-steps.ts';
import { describeForeign, refuseForeign } from './foreign-files.ts';
import { refuseEdited, refuseOvertaken } from './main-edit.ts';
import { nextRevision } from './next-revision.ts';
import { refusePolicyChange } from './policy-folder.ts';
import { refuseStructure } from './structure.ts';

/**
 * The one decision on every lifecycle transition, for every actor and every face. Pure and total: for every state and
 * request it either allows, with the complete set of ref changes, or refuses, with every reason it knows.
 *
 * `now` (RFC 3339) is the time of the decision: verdicts may expire.
 */
export function decide(
  state: RevisionState,
  request: TransitionRequest,
  policy: EffectivePolicy,
  now: string,
): Decision {
  const stale = refuseMoved(state, request);
  if (stale !== undefined) return refuse(stale);
  const action =
    request.action === 'reject' && state.lifecycle === 'DeletionProposed' ? 'undo-deletion' : request.action;
  const wrong = refuseState(state, action);
  if (wrong !== undefined) return refuse(wrong);
  switch (action) {
    case 'propose':
      return propose(state, request, policy, now);
    case 'reject':
      return reject(state);
    case 'approve':
      return approve(state, request, policy, now);
    case 'propose-deletion':
      return allow([markForDeletion(state)], { lifecycle: 'DeletionProposed', revision: state.revision });
    case 'undo-deletion':
      return undoDeletion(state);
    case 'delete':
      return remove(state, request, policy);
  }
}

/** The lifecycles in which an action makes sense. */
const ALLOWED_IN: Readonly<Record<Action, readonly Lifecycle[]>> = {
  propose: ['Draft'],
  reject: ['Proposed', 'DeletionProposed'],
  approve: ['Proposed'],
  'propose-deletion': ['Published'],
  'undo-deletion': ['DeletionProposed'],
  delete: ['Draft', 'Proposed', 'DeletionProposed'],
};

function refuseMoved(state: RevisionState, request: TransitionRequest): Refusal | undefined {
  if (request.expectedCommit === undefined || request.expectedCommit === state.commit) return undefined;
  return {
    code: 'Conflict',
    message: `${state.name} is at ${state.commit} now, the request is for ${request.expectedCommit}; read it again, then repeat the request`,
  };
}

function refuseState(state: RevisionState, action: Action): Refusal | undefined {
  if (!ACTIONS.includes(action)) {
    return { code: 'WrongState', message: `there is no action ${JSON.stringify(action)}; use ${ACTIONS.join(', ')}` };
  }
  if (ALLOWED_IN[action].includes(state.lifecycle)) return undefined;
  if (action === 'propose' && state.isRestored === true) return undefined;
  return { code: 'WrongState', message: wrongStateMessage(state, action) };
}

/** Uses Porch's text for cases that Porch has, since its clients depend on it. */
function wrongStateMessage(state: RevisionState, action: Action): string {
  if (action === 'delete') {
    return "published PackageRevisions must be proposed for deletion by setting spec.lifecycle to 'DeletionProposed' prior to deletion";
  }
  if (action === 'approve') {
    const published =
      state.publishedBy === undefined
        ? ''
        : `; it is published as v${state.revision}, approved by ${state.publishedBy}`;
    return `cannot approve package with ${state.lifecycle} lifecycle value; only Proposed packages can be approved${published}`;
  }
  const allowed = ALLOWED_IN[action].join(' or ');
  return `cannot ${action} ${state.name}: it is ${state.lifecycle}, this needs ${allowed}`;
}

function propose(state: RevisionState, request: TransitionRequest, policy: EffectivePolicy, now: string): Decision {
  const structural = refuseStructure(state);
  const ofPolicies = refusePolicyChange(state, request, policy);
  if (ofPolicies !== undefined) structural.push(ofPolicies);
  if (structural.length > 0) return { allowed: false, refusals: structural };
  const unmet = unmetGates(state, policy, now, (gate) => !gate.approveOnly);
  if (unmet.length > 0 && policy.enforcement === 'enforce') return { allowed: false, refusals: unmet };
  return allow(proposalSteps(state), { lifecycle: 'Proposed', revision: 0 }, unmet);
}

function approve(state: RevisionState, request: TransitionRequest, policy: EffectivePolicy, now: string): Decision {
  const refusals = refuseStructure(state);
  if (state.mainHead === undefined) {
    refusals.push({
      code: 'Conflict',
      message: `${state.refs.main} does not exist; create the branch, then approve again`,
    });
  }
  const lost = lostRecord(state.name, state.facts.record);
  if (lost !== undefined) refusals.push({ code: 'WrongState', message: lost.message });
  if (request.isUnseen === true && state.pushedSince !== undefined)
    refusals.push(refuseUnseen(state, state.pushedSince));
  const { merged } = request;
  if (merged !== undefined) refusals.push(...refuseMerge(state, merged));
  // Policies of a folder are read from the main branch: a merge of the host has changed them there, by the host's own rights. A refusal could not undo it.
  const ofPolicies = merged === undefined ? refusePolicyChange(state, request, policy) : undefined;
  if (ofPolicies !== undefined) refusals.push(ofPolicies);
  // A merge has combined both sides already, and moves the main branch no more.
  const edited = merged === undefined ? refuseEdited({ ...state, main: state.refs.main }) : undefined;
  if (edited !== undefined) refusals.push(edited);
  const overtaken = merged === undefined && request.face === 'controller' ? refuseOvertaken(state) : undefined;
  if (overtaken !== undefined) refusals.push(overtaken);
  const isRecorded = merged?.recordBypass === true;
  const refused =
    refuseMerger(state, merged) ?? refuseApprover(state, request, policy) ?? refuseUnapproved(state, request, policy);
  if (refused !== undefined && !isRecorded) refusals.push(refused);
  const objection = refuseObjection(state, request);
  if (objection !== undefined && !isRecorded) refusals.push(objection);
  const foreign = refuseForeign(state, request);
  if (foreign !== undefined && !isRecorded) refusals.push(foreign);
  const decidedBefore = decisionFor(state, request, now);
  const decidedAt = decidedBefore?.decidedAt ?? decidedBefore?.at;
  const judgedAt = decidedAt ?? now;
  const unmet = unmetGates(state, policy, judgedAt, () => true, request.closedNow);
  const isClosed = policy.enforcement === 'enforce' && unmet.length > 0;
  const approvals = countApprovals(state, request, policy);
  const isPublication = merged !== undefined || !areMissing(approvals);
  // An approval that does not publish yet is recorded at any time.
  const blocking = isPublication ? rulesAgainst(state, request, policy, { now, decidedAt }) : [];
  const blocked = blocking.map(refuseBlocked);
  const brokeGlass = request.breakGlass === true && (isClosed || blocked.length > 0);
  if (brokeGlass) refusals.push(...refuseBreakGlass(state, request, policy));
  else if (isClosed && !isRecorded) refusals.push(...unmet);
  const isWaiting = blocked.length > 0 && !brokeGlass && merged === undefined && mayWait(state, request, policy);
  if (blocked.length > 0 && !brokeGlass && !isRecorded && !isWaiting) refusals.push(...blocked);
  const { revision, above } = nextRevision(highestRevision(state), state.refs);
  if (above !== undefined)
    refusals.push({
      code: 'TagConflict',
      message: `${state.name} cannot get the tag ${state.refs.tagFor(revision)}: there is the tag ${above}; remove or rename it, then approve again`,
    });
  if (revision > MAX_REVISION) {
    refusals.push({
      code: 'TagConflict',
      message: `${state.refs.tagFor(revision - 1)} leaves no number for ${state.name}; remove that tag, then approve again`,
    });
  }
  if (refusals.length > 0 || state.mainHead === undefined) return { allowed: false, refusals };
  if (isWaiting || (merged === undefined && areMissing(approvals))) {
    return {
      ...allow([], { lifecycle: 'Proposed', revision: 0 }, unmet),
      approvals: isWaiting ? { ...approvals, waitsFor: blocking } : approvals,
      ...(brokeGlass ? { brokeGlass } : {}),
    };
  }
  if (merged === undefined && request.byMerge === true)
    return {
      ...allow([], { lifecycle: 'Proposed', revision: 0 }, unmet),
      approvals: { ...approvals, isDecided: true },
    };
  const tag = state.refs.tagFor(revision);
  const publication: RefStep[] =
    merged === undefined
      ? [
          { ref: state.refs.main, expect: state.mainHead, become: { kind: 'approval' } },
          { ref: tag, expect: null, become: { kind: 'approval' } },
        ]
      : [{ ref: tag, expect: null, become: { kind: 'statement', on: merged.commit } }];
  const plan: RefStep[] = [
    ...publication,
    { ref: state.refs.proposed, expect: state.commit, become: { kind: 'absent' } },
    ...dropSameDraft(state),
  ];
  const gates = isClosed && !brokeGlass;
  // Without a bypass all of them were refused.
  const bypassed = [...(refused === undefined ? [] : [refused]), ...(brokeGlass ? [] : blocked)];
  const notApproved = bypassed.length === 0 ? {} : { notApproved: bypassed.map(({ message }) => message).join('; ') };
  const objected = objection === undefined ? {} : { objection: merged?.objection ?? '' };
  const merges = foreign === undefined ? {} : { foreign: describeForeign(state) };
  const isBypass = gates || bypassed.length > 0 || objection !== undefined || foreign !== undefined;
  return {
    ...allow(plan, { lifecycle: 'Published', revision }, [...unmet, ...blocked]),
    ...(brokeGlass ? { brokeGlass } : {}),
    ...(isBypass ? { mergeBypass: { gates, ...notApproved, ...objected, ...merges } } : {}),
    ...(decidedAt === undefined ? {} : { judgedAt }),
  };
}

/**
 * The rules that forbid to publish now, or forbade it when it was decided or the host merged: a freeze that has ended since does not permit what
 * was merged in it, and a window that has closed since does not forbid it. A freeze that began after the host had made a merge that was decided on
 * came too late to stop it.
 */
function rulesAgainst(
  state: RevisionState,
  { merged }: TransitionRequest,
  policy: EffectivePolicy,
  { now, decidedAt }: { readonly now: string; readonly decidedAt: string | undefined },
): BlockingRule[] {
  const then = decidedAt ?? merged?.at ?? now;
  // The clock of the host may be ahead.
  const at = Date.parse(then) < Date.parse(now) ? then : now;
  const freezes = freezesAtOrSince(policy.freezes, Date.parse(at), Date.parse(now));
  const mergedMs = decidedAt === undefined ? Number.NaN : Date.parse(merged?.at ?? '');
  const inTime = freezes.filter(({ since }) => !(Date.parse(since) > mergedMs));
  return blockingRules(state, { ...policy, freezes: inTime }, at);
}

/** A statement in a tag counts only for a commit on the main branch that has the approved package. */
function refuseMerge({ name, commit, refs, merge }: RevisionState, merged: MergedProposal): Refusal[] {
  const refuseAs = (message: string): Refusal[] => [{ code: 'NotMerged', message }];
  const what = `cannot publish the commit ${merged.commit} as ${name}`;
  if (merge === undefined)
    return refuseAs(`${what}: the repository has no such commit as it was last read; try again after the next sync`);
  if (!merge.isOnMain)
    return refuseAs(
      `${what}: it is not on the line of first parents of ${refs.main} as it was last read; name the commit that the merge made there, after the next sync if it is newer`,
    );
  if (merge.onto === undefined)
    return refuseAs(`${what}: it is the first commit of ${refs.main}, which merges nothing`);
  const { later } = merge;
  if (later !== undefined)
    return refuseAs(
      `${what}: ${later.name} was published at a later commit of the main branch, as v${later.revision}; if its content is missing there, propose a new revision`,
    );
  if (merge.hasProposedTree) return [];
  return refuseAs(
    `${what}: its package is not the proposed one, which is at ${commit}: the merge combined it with other changes, or one of the two was pushed since; push the merged package to ${refs.proposed}, then try again`,
  );
}

const MAX_SHOWN_FILES = 5;

/** An approval that names no commit applies to the proposed content. */
function refuseUnseen({ name, commit }: RevisionState, { proposed, files }: PushedSince): Refusal {
  const shown = files?.slice(0, MAX_SHOWN_FILES).join(', ');
  const more = (files?.length ?? 0) > MAX_SHOWN_FILES ? ` and ${(files?.length ?? 0) - MAX_SHOWN_FILES} more` : '';
  const what = shown === undefined || shown === '' ? '' : ` (${shown}${more})`;
  return {
    code: 'WrongState',
    message: `cannot approve ${name}: a push changed it after it was proposed, from ${proposed} to ${commit}${what}; look at the difference, then approve that commit: "sluice rpkg approve ${name} --commit ${commit}", or a request with metadata.resourceVersion`,
  };
}

/** The highest number in use. Not a spread: a package can have more revisions than a call takes arguments. */
function highestRevision(state: RevisionState): number {
  let highest = 0;
  for (const { revision } of state.siblings) {
    if (Number.isSafeInteger(revision) && revision > highest) highest = revision;
  }
  return highest;
}

function reject(state: RevisionState): Decision {
  const conflict = refuseOtherDraft(state);
  if (conflict !== undefined) return refuse(conflict);
  return allow(rejectionSteps(state), { lifecycle: 'Draft', revision: 0 });
}

function undoDeletion(state: RevisionState): Decision {
  const plan = dropDeletionMark(state);
  if (plan.length > 0) return allow(plan, { lifecycle: 'Published', revision: state.revision });
  return refuse({
    code: 'Conflict',
    message: `${state.refs.deletionProposed} was removed already; read ${state.name} again`,
  });
}

function remove(state: RevisionState, request: TransitionRequest, policy: EffectivePolicy): Decision {
  if (state.lifecycle === 'Draft' || state.lifecycle === 'Proposed') {
    const ref = state.lifecycle === 'Draft' ? state.refs.draft : state.refs.proposed;
    return allow([{ ref, expect: state.commit, become: { kind: 'absent' } }, ...dropSameDraft(state)], undefined);
  }
  if (state.dependents.length > 0) {
    return refuse({
      code: 'InUse',
      message: `cannot delete package revision, it is referenced as upstream by: ${state.dependents.join(', ')}`,
    });
  }
  const plan = dropDeletionMark(state);
  if (state.refs.tag === undefined) {
    const ofPolicies = refusePolicyChange(state, request, policy);
    if (ofPolicies !== undefined) return refuse(ofPolicies);
    plan.push({ ref: state.refs.main, expect: state.commit, become: { kind: 'removal' } });
  } else {
    plan.push({ ref: state.refs.tag, expect: state.commit, become: { kind: 'absent' } });
  }
  return allow(plan, undefined);
}

const FALSE_NOW = { state: 'NotTrue', explanation: 'its condition is recorded as True, and is false now' } as const;

function unmetGates(
  state: RevisionState,
  policy: EffectivePolicy,
  now: string,
  isRequired: (gate: Gate) => boolean,
  closedNow?: string,
): Refusal[] {
  return evaluateGates(state.facts, policy, now)
    .map((gate) => (gate.type === closedNow && gate.state === 'Open' ? { ...gate, ...FALSE_NOW } : gate))
    .filter((gate) => gate.state !== 'Open' && isRequired(gate))
    .map((gate) => ({
      code:
        gate.state === 'Stale' || gate.state === 'Expired'
          ? 'VerdictStale'
          : gate.state === 'NotAllowed'
            ? 'NotAllowed'
            : 'GateUnmet',
      message: `gate ${gate.type} is closed at ${now}${gate.since === undefined ? '' : ` since ${gate.since}`}: ${gate.explanation}`,
      gate,
    }));
}

/** An existing mark is left from an earlier revision with this number. */
function markForDeletion({ refs, commit, deletionProposed }: RevisionState): RefStep {
  return { ref: refs.deletionProposed, expect: deletionProposed ?? null, become: { kind: 'commit', oid: commit } };
}

function dropDeletionMark(state: RevisionState): RefStep[] {
  if (state.deletionProposed === undefined) return [];
  return [{ ref: state.refs.deletionProposed, expect: state.deletionProposed, become: { kind: 'absent' } }];
}

function allow(
  plan: readonly RefStep[],
  next: { lifecycle: Lifecycle; revision: number } | undefined,
  bypassed: readonly Refusal[] = [],
): Allowed {
  return { allowed: true, plan, next, bypassed };
}

function refuse(refusal: Refusal): Refused {
  return { allowed: false, refusals: [refusal] };
}
