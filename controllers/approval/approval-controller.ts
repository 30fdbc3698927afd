import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { EventType } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { timestamp } from '../../src/foundation/time/clock.ts';
import { SteadyClock } from '../../src/foundation/time/steady-clock.ts';
import { refuseBlocked } from '../../src/package/kernel/approver.ts';
import { nextExpiry } from '../../src/package/model/gates/gates.ts';
import {
  APPROVAL_DELAY_ANNOTATION,
  APPROVAL_POLICY_ANNOTATION,
} from '../../src/package/model/revision/lifecycle-annotations.ts';
import { isPublished, repositoryIdOf } from '../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { ApprovalHolds } from '../../src/package/store/unmet-rules.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { parseDuration } from '../../src/resource/object/duration.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { keyOf, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { onPending, type PendingOptions } from '../proposal/on-pending.ts';
import { annotationOf, obstacleTo } from '../proposal/readiness.ts';
import { heldRevisions } from '../wave-plan/held-revisions.ts';
import { holdingPlan, holdRule } from '../wave-plan/holding-plan.ts';
import { approvalState, firstEnd, hasApprovalRules } from './automatic-approval.ts';
import { SlotWaiters } from './slot-waiters.ts';

export const APPROVAL_ACTOR = 'controller:approval';

export interface ApprovalOptions extends PendingOptions {
  /** Evaluates the revision, and lists the siblings that the policy `initial` depends on. */
  readonly store: Pick<RevisionStore, 'dependentsOf' | 'evaluate' | 'find' | 'list' | 'repositoryOf' | 'onPromotion'>;
  /** Default: all that a hold depends on is read for each approval, and reported when it prevents one. */
  readonly holds?: ApprovalHolds;
}

/** What it waits for; `isSooner` if it is looked at before any of that ends by itself. */
function waitText(blocking: readonly BlockingRule[], isSooner: boolean): string {
  const what = blocking.map(({ message }) => message).join('; ');
  return isSooner ? `${what}; it is looked at again then, if it does not end before` : what;
}

/** The action for one revision: a step, a wait, or none with the reason. */
type Plan =
  | { readonly step: 'propose' | 'approve' }
  | { readonly wait: number; readonly until: string }
  /** `event` is recorded for users; without it the reason is transient. */
  | { readonly event?: { readonly type: EventType; readonly reason: string; readonly message: string } };

const CLOCK_AHEAD =
  'the clock of this machine was set ahead, or the machine was suspended: rules that end at a time end once the clock has stayed so for ten minutes; check its time synchronisation';
/** The shortest and longest wait for a rule, in milliseconds. */
const MIN_WAIT_MS = 1000;
const MAX_WAIT_MS = 3_600_000;

/** Approves what policies approve automatically, and proposes and approves revisions that carry Nephio's approval annotations. */
export function approvalController(options: ApprovalOptions): ControllerOptions {
  const { store } = options;
  // What it approves by a time cannot be taken back.
  const clock = new SteadyClock(options.clock);
  const { client, events, controller } = onPending('approval', APPROVAL_ACTOR, options);
  const pending = controller(reconcile);
  const waiters = new SlotWaiters();
  return { ...pending, sources: [...pending.sources, heldRevisions(store), waiters.source(clock, hasSlot)] };

  async function reconcile(object: Stored<PackageRevision>): Promise<ReconcileResult | undefined> {
    const hasRules = isUnderRules(object);
    try {
      if (!hasRules) {
        waiters.note(keyOf(object), []);
        await reportHold(object);
        if (annotationOf(object, APPROVAL_POLICY_ANNOTATION, { kptfileApprovals: true }) === undefined)
          return undefined;
      }
      // If anything changes after the object was read, the write below is a conflict, and the revision is evaluated again.
      const evaluation = await store.evaluate(keyText(keyOf(object)));
      if (store.repositoryOf(evaluation.revision).follows) return undefined;
      if (hasRules) {
        const after = await byRules(object, evaluation);
        if (after !== 'annotations') return after;
      }
      if (annotationOf(object, APPROVAL_POLICY_ANNOTATION, { kptfileApprovals: true }) === undefined) return undefined;
      const policy = annotationOf(object, APPROVAL_POLICY_ANNOTATION, evaluation.policy);
      if (policy === undefined) {
        const message = `${APPROVAL_POLICY_ANNOTATION} in the Kptfile has no effect; set it on the PackageRevision, or let a policy enable it (spec.kptfileApprovals)`;
        events.record(object, 'Normal', 'NotApproved', message);
        return undefined;
      }
      const plan = planFor(object, policy, evaluation);
      const expiry = nextExpiry(evaluation.gates);
      const expiresAfter = expiry === undefined ? Number.POSITIVE_INFINITY : expiry - clock.now();
      if ('wait' in plan && plan.wait <= expiresAfter) return { requeueAfter: plan.wait, reason: plan.until };
      if ('step' in plan) await take(plan.step, object, policy, evaluation);
      else if ('event' in plan && plan.event !== undefined) {
        events.record(object, plan.event.type, plan.event.reason, plan.event.message);
      }
      if (!('step' in plan) && Number.isFinite(expiresAfter))
        return { requeueAfter: expiresAfter, reason: 'a condition expires' };
    } catch (error) {
      // Deleted since it was read; its deletion wakes this controller too.
      if (isSluiceError(error, 'NotFound')) return undefined;
      if (!isSluiceError(error, 'Refused')) throw error;
      // Another controller or a user may have taken the step since it was read.
      if (await hasMoved(object)) return undefined;
      events.record(object, 'Warning', 'NotApproved', error.message);
    }
    return undefined;
  }

  /** By the policies and deliveries as last seen. */
  function hasSlot(key: ObjectKey, policy: string): boolean {
    const revision = store.find(keyText(key));
    if (revision === undefined) return true;
    const rules = store.repositoryOf(revision).policyFor(revision).approvalRules;
    return !rules.some(
      (rule) => rule.policy === policy && rule.inFlight.length >= (rule.maxInFlight ?? Number.POSITIVE_INFINITY),
    );
  }

  /** By the policies as last seen: a change of one, or of a Freeze, wakes this controller again. */
  function isUnderRules(object: Stored<PackageRevision>): boolean {
    if (object.spec.lifecycle !== 'Proposed') return false;
    const revision = store.find(keyText(keyOf(object)));
    if (revision === undefined) return false;
    return hasApprovalRules(store.repositoryOf(revision).policyFor(revision), clock.now());
  }

  /** Of a revision without rules, whose content is not read for that: a plan can hold a whole fleet. */
  async function reportHold(object: Stored<PackageRevision>): Promise<void> {
    const { holds } = options;
    const revision = object.spec.lifecycle === 'Proposed' ? store.find(keyText(keyOf(object))) : undefined;
    if (revision === undefined || holds?.mayHold(revision) !== true || store.repositoryOf(revision).follows) return;
    const hold = await holds.holdOf(revision);
    if (hold !== undefined) report(object, hold);
  }

  /**
   * Approves a revision whose policies permit that and whose rules are all met; otherwise reports what blocks it. `annotations` if only they
   * may let a controller act.
   */
  async function byRules(
    object: Stored<PackageRevision>,
    evaluation: RevisionEvaluation,
  ): Promise<ReconcileResult | 'annotations' | undefined> {
    const { key } = evaluation.revision;
    const siblings = store
      .list({ repository: repositoryIdOf(evaluation.revision), package: key.package })
      .filter(({ name }) => name !== evaluation.revision.name);
    const { applicableResolvers: applicable, holds } = options;
    const hold = await holds?.holdOf(evaluation.revision);
    const state = approvalState(evaluation, siblings, { at: timestamp(clock.now()), hold, applicable });
    const { automatic, blocking, all, obstacle, isApproved } = state;
    for (const rule of all) report(object, rule);
    // A place may have become free before it was noted, which no event would report.
    const counted = blocking.flatMap(({ rule, policy: name }) =>
      rule === 'InFlight' && name !== undefined ? name : [],
    );
    waiters.note(keyOf(object), counted);
    if (counted.some((name) => hasSlot(keyOf(object), name)))
      return { requeueAfter: MIN_WAIT_MS, reason: 'a free place' };
    const topics = all.map(topicOf);
    if (automatic.length > 0 && obstacle !== undefined)
      events.record(object, 'Normal', 'NotApproved', obstacle.message, 'obstacle');
    events.forget(keyOf(object), new Set([...topics, ...(obstacle === undefined ? [] : ['obstacle']), 'approval', '']));
    if (blocking.length > 0) {
      if (clock.isAhead) events.record(object, 'Warning', 'ClockAhead', CLOCK_AHEAD, 'clock');
      const end = firstEnd(blocking) ?? Number.POSITIVE_INFINITY;
      const after = Math.min(end - clock.now(), MAX_WAIT_MS);
      return { requeueAfter: Math.max(MIN_WAIT_MS, after), reason: waitText(blocking, end > clock.now() + after) };
    }
    if (automatic.length === 0 || obstacle !== undefined || !isApproved) return 'annotations';
    const reason = `policy ${automatic.join(', ')}: all rules for approvals are met`;
    await approve(object, evaluation, reason);
    return undefined;
  }

  /** The hold by the plans as they are now: one that was created before the decision counts. */
  async function readHold(revision: RevisionEvaluation['revision']): Promise<BlockingRule | undefined> {
    if (options.holds !== undefined) return options.holds.readHold(revision);
    const plan = await holdingPlan(revision, { client, store });
    return plan && holdRule(plan, revision);
  }

  /** Reports a rule that keeps a revision from being published: which, since when, until when, and who can resolve it. */
  function report(object: Stored<PackageRevision>, rule: BlockingRule): void {
    events.record(object, 'Normal', 'ApprovalBlocked', refuseBlocked(rule).message, topicOf(rule));
  }

  async function hasMoved(object: Stored<PackageRevision>): Promise<boolean> {
    try {
      return (await store.evaluate(keyText(keyOf(object)))).revision.lifecycle !== object.spec.lifecycle;
    } catch (error) {
      if (isSluiceError(error, 'NotFound')) return true;
      throw error;
    }
  }

  function planFor(object: Stored<PackageRevision>, policy: string, evaluation: RevisionEvaluation): Plan {
    if (policy !== 'initial' && policy !== 'always') {
      const message = `annotation ${APPROVAL_POLICY_ANNOTATION} is ${JSON.stringify(policy)}; use initial or always`;
      return { event: { type: 'Warning', reason: 'InvalidPolicy', message } };
    }
    const text = annotationOf(object, APPROVAL_DELAY_ANNOTATION, evaluation.policy) ?? '0';
    const delay = parseDuration(text);
    if (delay === undefined) {
      const message = `annotation ${APPROVAL_DELAY_ANNOTATION} is ${JSON.stringify(text)}; use a duration such as 30s or 1h30m`;
      return { event: { type: 'Warning', reason: 'InvalidDelay', message } };
    }
    const isDraft = object.spec.lifecycle === 'Draft';
    const obstacle = obstacleTo(evaluation, (gate) => !isDraft || !gate.approveOnly, options.applicableResolvers);
    // Resolvers will still report on a draft. If it was proposed before they did, users need an event.
    if (obstacle?.reason === 'NotSettled' && isDraft) return {};
    const message = obstacle?.message ?? refuseByPolicy(object, policy, evaluation);
    if (message !== undefined) return { event: { type: 'Normal', reason: 'NotApproved', message } };
    const created = Date.parse(object.metadata.creationTimestamp) || evaluation.revision.tip.time;
    const rest = created + delay - clock.now();
    if (rest > 0) return { wait: rest, until: `${APPROVAL_DELAY_ANNOTATION}: ${text} from its creation` };
    return { step: isDraft ? 'propose' : 'approve' };
  }

  function refuseByPolicy(object: PackageRevision, policy: string, evaluation: RevisionEvaluation): string | undefined {
    const { packageName } = object.spec;
    if (policy === 'initial') {
      // A package that is on the main branch without a tag counts too.
      const siblings = store
        .list({ repository: repositoryIdOf(evaluation.revision), package: packageName })
        .filter(isPublished);
      const [published] = siblings.sort((a, b) => b.revision - a.revision);
      if (published !== undefined) {
        return `policy initial approves the first revision only, and ${published.name} is ${published.lifecycle}`;
      }
    }
    // A user who edits the package could have written the annotation, and would approve his own proposal by it.
    return evaluation.policy.forbidSelfApproval
      ? 'a policy forbids self-approval, so a user has to approve it'
      : undefined;
  }

  async function take(
    step: 'propose' | 'approve',
    object: Stored<PackageRevision>,
    policy: string,
    { revision }: RevisionEvaluation,
  ): Promise<void> {
    const reason = `${APPROVAL_POLICY_ANNOTATION}: ${policy}`;
    if (step === 'propose') {
      await client.update(
        packageRevisionKind,
        { ...object, spec: { ...object.spec, lifecycle: 'Proposed' } },
        { reason },
      );
      events.record(object, 'Normal', 'Proposed', `proposed commit ${revision.commit} (${reason})`);
      return;
    }
    await approve(object, { revision }, reason);
  }

  async function approve(
    object: Stored<PackageRevision>,
    { revision }: Pick<RevisionEvaluation, 'revision'>,
    reason: string,
  ): Promise<void> {
    const hold = await readHold(revision);
    if (hold !== undefined) {
      report(object, hold);
      return;
    }
    const published = { ...object, spec: { ...object.spec, lifecycle: 'Published' as const } };
    await client.subResource('approval').update(packageRevisionKind, published, { reason });
    events.record(object, 'Normal', 'Approved', `approved commit ${revision.commit} (${reason})`, 'approval');
  }
}

/** Of several freezes, and of several namespaces that require approvals, each is a topic. */
function topicOf({ rule, policy = '', resolvedBy }: BlockingRule): string {
  return `${rule} ${policy === '' ? resolvedBy : policy}`;
}
