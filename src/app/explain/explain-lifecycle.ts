import { APPROVAL_ACTOR } from '../../../controllers/approval/approval-controller.ts';
import { obstacleTo } from '../../../controllers/proposal/readiness.ts';
import { DELIVERABLE_TYPE } from '../../../controllers/revision/resolvers/deliverable/deliverability.ts';
import { isMarked, OWN_TYPES } from '../../../controllers/revision/settlement.ts';
import { conditionsOf } from '../../../kptfile-schema/index.ts';
import { timestamp } from '../../foundation/clock.ts';
import { claimed } from '../../package/model/attribution.ts';
import { publishedRecordOf } from '../../package/model/commit-message.ts';
import { AUTO_LIFECYCLE_ANNOTATION } from '../../package/model/lifecycle-annotations.ts';
import { lookalikesOf } from '../../package/model/lookalikes.ts';
import { isPlaceholder, type PackageRevision } from '../../package/model/package-revision.ts';
import type { Refusal } from '../../package/model/types.ts';
import type { Judgement } from '../../package/store/revision-store.ts';
import { annotationOf, approvalOutlook, ignoredAnnotations } from './explain-approval.ts';
import { approvalReasons, explainApprovals } from './explain-approvals.ts';
import type { Surroundings } from './explain-gates.ts';
import type { Reason } from './explanation.ts';
import { hiddenRefsMessage } from './hidden-refs.ts';

export interface LifecycleFacts {
  readonly judgement: Judgement;
  /** All revisions of the same package. */
  readonly siblings: readonly PackageRevision[];
  /** What the kernel says to the next step (propose or approve) now, gates left out. */
  readonly refusals: readonly Refusal[];
  /** Revisions that have this one as their upstream. */
  readonly dependents: readonly string[];
  readonly disabled: readonly string[];
}

interface Account {
  readonly reasons: Reason[];
  readonly next: string[];
}

const HOUR = 3_600_000;

/** Why a revision is in its state, and what moves it on; gates are told elsewhere. */
export function explainLifecycle(facts: LifecycleFacts, around: Surroundings): Account {
  const { revision, record } = facts.judgement;
  const account: Account = { reasons: [], next: [] };
  if (revision.outOfBand !== undefined) {
    const { reason, message } = revision.outOfBand;
    account.reasons.push({ reason: 'OutOfBand', message: `it did not come through the gates (${reason}): ${message}` });
  }
  if (revision.hides.length > 0) {
    account.reasons.push({ reason: 'NameTaken', message: hiddenRefsMessage(revision.hides) });
  }
  if (record.deletionTimestamp !== undefined) {
    const finalizers = record.finalizers?.join(', ') ?? '';
    account.reasons.push({
      reason: 'BeingDeleted',
      message: `it is being deleted since ${record.deletionTimestamp} and waits for the finalizers ${finalizers}`,
    });
  }
  account.reasons.push(...lookalikes(facts.judgement));
  const ignored = ['Draft', 'Proposed'].includes(revision.lifecycle) ? ignoredAnnotations(facts.judgement) : [];
  if (ignored.length > 0) {
    const message = `${ignored.join(' and ')} in the Kptfile has no effect: no policy enables it (spec.kptfileApprovals)`;
    account.reasons.push({ reason: 'NotEnabled', message });
  }
  if (isPlaceholder(revision)) explainPlaceholder(facts, account, around);
  else if (revision.lifecycle === 'Draft') explainDraft(facts, account, around);
  else if (revision.lifecycle === 'Proposed') explainProposed(facts, account, around);
  else explainApproved(facts.judgement, account);
  if (revision.lifecycle === 'DeletionProposed') explainDeletion(facts, account, around);
  return account;
}

/** Conditions and gates that a push brought and that people could take for others. They open nothing. */
function lookalikes({ revision: { kptfile }, policy }: Judgement): Reason[] {
  return lookalikesOf(kptfile, policy).map((message) => ({
    reason: 'Lookalike',
    message: `${message}; look at it closely`,
  }));
}

/** How it was published, where that is worth a word. */
function explainApproved({ record: { steps }, revision }: Judgement, { reasons }: Account): void {
  const approved = steps.findLast(({ action }) => action === 'approve');
  const broken = revision.outOfBand === undefined ? publishedRecordOf(revision.tip.facts)?.breakGlass : undefined;
  if (broken !== undefined) {
    const gates = approved?.gates?.join(', ') ?? '';
    const message = `${broken.by} published it with closed gates, as a policy lets them (break-glass): ${gates}; reason: ${broken.reason}`;
    reasons.push({ reason: 'BreakGlass', message });
    return;
  }
  if (approved?.gates === undefined || approved.gates.length === 0) return;
  const message = `${approved.by} approved it at ${approved.at} while gates were closed: ${approved.gates.join(', ')}`;
  reasons.push({ reason: 'GatesPassedBy', message });
}

function explainPlaceholder({ siblings }: LifecycleFacts, { reasons }: Account, _around: Surroundings): void {
  const latest = siblings.find((sibling) => sibling.latest);
  const more =
    latest === undefined ? 'no revision of it is published' : `the latest published revision is ${latest.name}`;
  reasons.push({ reason: 'MainBranch', message: `it stands for the package on the main branch; ${more}` });
}

function explainDraft(facts: LifecycleFacts, { reasons, next }: Account, around: Surroundings): void {
  const { judgement, refusals } = facts;
  const { revision } = judgement;
  const { name } = revision;
  for (const refusal of refusals) reasons.push({ reason: refusal.code, message: refusal.message });
  const repair = [around.command('rpkg', 'pull', name, 'folder'), around.command('rpkg', 'push', name, 'folder')];
  if (revision.problem !== undefined) {
    if (refusals.length === 0)
      reasons.push({ reason: 'Unreadable', message: `the Kptfile cannot be read: ${revision.problem}` });
    next.push(...repair);
    return;
  }
  explainDelivery(judgement, reasons);
  explainBudget(judgement, reasons, around);
  explainRest(judgement, reasons, next, around);
  const closed = judgement.gates.some((gate) => gate.state !== 'Open' && !gate.approveOnly);
  if (closed) {
    const message =
      judgement.policy.enforcement === 'enforce'
        ? 'a gate that is asked for at proposal is closed'
        : `a gate is closed; no controller proposes it, but the repository lets people do so (sluice.dev/gates: ${judgement.policy.enforcement})`;
    reasons.push({ reason: 'GatesClosed', message });
  }
  explainProposal(facts, { reasons, next }, around);
  // A proposal would be refused for the content as it is.
  if (refusals.length > 0) next.push(...repair.filter((command) => !next.includes(command)));
  else if (!closed || judgement.policy.enforcement !== 'enforce') next.push(around.command('rpkg', 'propose', name));
}

/** Who proposes a draft, and when. */
function explainProposal(facts: LifecycleFacts, { reasons, next }: Account, around: Surroundings): void {
  const { judgement, siblings, refusals, disabled } = facts;
  const { policy } = judgement;
  const marked = policy.autoPropose || annotationOf(judgement, AUTO_LIFECYCLE_ANNOTATION) === 'true';
  const outlook = approvalOutlook(judgement, siblings, disabled, around);
  if (outlook?.acts === false) reasons.push(outlook.why);
  if (marked && disabled.includes('proposal')) {
    reasons.push({ reason: 'Disabled', message: 'the proposal controller is switched off' });
  } else if (marked) {
    if (refusals.length > 0 || obstacleTo(judgement, (gate) => !gate.approveOnly) !== undefined) return;
    const message = around.running ? 'it is about to be proposed' : 'it is proposed as soon as "sluice up" runs';
    reasons.push({ reason: 'Ready', message });
    if (!around.running) next.push(around.command('up'));
  } else if (outlook?.acts === true && refusals.length === 0) {
    const message = `${APPROVAL_ACTOR} proposes and approves it (${outlook.named}) ${outlook.when}`;
    reasons.push({ reason: 'Ready', message });
    if (!around.running) next.push(around.command('up'));
  } else if (outlook === undefined) {
    reasons.push({
      reason: 'NotMarked',
      message: `it is not marked to be proposed by itself (annotation ${AUTO_LIFECYCLE_ANNOTATION}: "true", or a policy with autoPropose), so somebody has to propose it`,
    });
  }
}

/** What keeps the controllers off a draft, each told by itself. */
function explainRest(judgement: Judgement, reasons: Reason[], next: string[], around: Surroundings): void {
  const { revision, record, content } = judgement;
  if (record.source !== undefined && record.source.content === content.content) {
    const message = `the content is still that of ${record.source.name}, which is published; no controller proposes that`;
    reasons.push({ reason: 'SameAsSource', message });
    const { name } = revision;
    next.push(around.command('rpkg', 'pull', name, 'folder'), around.command('rpkg', 'push', name, 'folder'));
  }
  const last = record.steps.at(-1);
  if (last?.action === 'reject' && last.commit === revision.commit) {
    const message = `${last.by} rejected this very commit${reasonOf(last)}; change it, or propose it by hand`;
    reasons.push({ reason: 'Rejected', message });
  }
  const own = revision.kptfile?.status?.conditions?.filter(({ type = '' }) => OWN_TYPES.includes(type)) ?? [];
  const settled = own.find(({ status }) => status === 'False') ?? own[0];
  if (record.settled?.content !== content.content && (isMarked(judgement) || settled !== undefined)) {
    const said = settled?.status === 'False' ? `: ${settled.message ?? ''}` : '';
    reasons.push({ reason: 'NotSettled', message: `not every resolver has reported on this content yet${said}` });
    if (!around.running) next.push(around.command('up'));
  }
}

/** What a target would refuse after publication. */
function explainDelivery({ revision }: Judgement, reasons: Reason[]): void {
  const condition = revision.kptfile && conditionsOf(revision.kptfile).get(DELIVERABLE_TYPE);
  if (condition?.status !== 'False') return;
  reasons.push({
    reason: 'Undeliverable',
    message: `if it is published as it is, ${condition.message ?? 'no target delivers it'}`,
  });
}

function explainBudget({ record, policy }: Judgement, reasons: Reason[], { now }: Surroundings): void {
  const { budget } = record;
  if (budget === undefined || budget.commits < policy.commitBudgetPerHour) return;
  const until = Date.parse(budget.since) + HOUR;
  if (now >= until) return;
  reasons.push({
    reason: 'BudgetExhausted',
    message: `controllers made ${budget.commits} commits since ${budget.since}, the budget of an hour; they make none before ${timestamp(until)}. Something keeps changing the package`,
  });
}

function explainProposed(facts: LifecycleFacts, { reasons, next }: Account, around: Surroundings): void {
  const { judgement, refusals } = facts;
  const { revision, record, policy, gates } = judgement;
  explainPush(judgement, reasons);
  explainDelivery(judgement, reasons);
  for (const refusal of refusals) reasons.push({ reason: refusal.code, message: refusal.message });
  const closed = gates.filter((gate) => gate.state !== 'Open');
  const proposed = record.steps.findLast((step) => step.action === 'propose');
  const by = proposed === undefined ? '' : ` since ${proposed.at}, proposed by ${proposed.by}`;
  const { barred, given, needed } = explainApprovals(judgement);
  const approved = needed > given.length ? given.map(({ subject }) => subject) : [];
  const others = [...barred.map(({ name }) => name), ...approved];
  const not = others.length === 0 ? '' : ` other than ${others.join(', ')}`;
  const outlook = approvalOutlook(judgement, facts.siblings, facts.disabled, around);
  if (outlook?.acts === false) reasons.push(outlook.why);
  const automatic =
    outlook === undefined || outlook.acts === false
      ? undefined
      : `${APPROVAL_ACTOR} (${outlook.named}; ${outlook.acts === true ? outlook.when : `held back: ${outlook.held}`})`;
  reasons.push(...approvalReasons(judgement));
  const who = automatic ?? `somebody${not}`;
  reasons.push({ reason: 'WaitsForApproval', message: `it waits for the approval of ${who}${by}` });
  if (closed.length > 0 && policy.enforcement === 'enforce') {
    reasons.push({ reason: 'GatesClosed', message: 'a gate is closed, so nobody can approve it yet' });
  } else {
    // Who proposed or changed it, or has approved it, has to find another person.
    const as = others.includes(around.actor) ? ['--as', 'somebody-else'] : [];
    const commit = isPushedSince(judgement) ? ['--commit', revision.commit] : [];
    next.push(around.command('rpkg', 'approve', revision.name, ...commit, ...as));
  }
  next.push(around.command('rpkg', 'reject', revision.name, '--reason', 'what is wrong'));
}

/** What is on a proposed branch need not be what was proposed. */
function isPushedSince({ record }: Judgement): boolean {
  return record.steps.at(-1)?.action === 'push' && record.steps.some(({ action }) => action === 'propose');
}

function explainPush(judgement: Judgement, reasons: Reason[]): void {
  if (!isPushedSince(judgement)) return;
  const { tip, commit } = judgement.revision;
  const proposed = judgement.record.steps.findLast((step) => step.action === 'propose');
  reasons.push({
    reason: 'PushedAfterProposal',
    message: `a push brought commit ${commit.slice(0, 12)} at ${timestamp(tip.time)} (${claimed(tip.author)}); what was proposed is ${proposed?.commit?.slice(0, 12) ?? 'another commit'}, so look at the difference before you approve it`,
  });
}

function explainDeletion(
  { judgement, dependents }: LifecycleFacts,
  { reasons, next }: Account,
  around: Surroundings,
): void {
  const { name, record } = judgement.revision;
  if (dependents.length > 0) {
    reasons.push({
      reason: 'InUse',
      message: `it cannot be deleted while other packages come from it: ${dependents.join(', ')}`,
    });
  }
  const step = record?.steps.findLast(({ action }) => action === 'propose-deletion');
  const by = step === undefined ? '' : ` since ${step.at}, by ${step.by}${reasonOf(step)}`;
  reasons.push({
    reason: 'WaitsForDeletion',
    message: `it is proposed for deletion${by}, and waits for somebody to delete or to keep it`,
  });
  if (dependents.length === 0) next.push(around.command('rpkg', 'del', name));
  next.push(around.command('rpkg', 'reject', name));
}

function reasonOf({ reason }: { readonly reason?: string | undefined }): string {
  return reason === undefined ? '' : ` (${reason})`;
}
