import { timestamp } from '../../src/foundation/time/clock.ts';
import {
  type Explainer,
  repairSteps,
  type Surroundings,
  sluiceCommand,
} from '../../src/package/api/explain/explainer.ts';
import type { Gate } from '../../src/package/model/gates/gates.ts';
import { RENDER_ACTOR } from '../../src/package/model/gates/verdict.ts';
import { matchesPattern } from '../../src/package/model/policy/policy.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../../src/package/model/policy/review-policy.ts';
import type { GateExplanation } from '../../src/package/model/revision/explanation.ts';
import { RENDERED } from '../../src/package/plan/edit/render.ts';
import { type RevisionEvaluation, refusalOf } from '../../src/package/store/evaluate-revision.ts';
import { OWN_TYPES } from './settlement.ts';

/** Reports the gates of a revision: what each waits for, and who can open it. */
export const gateExplainer: Explainer = {
  explain({ evaluation, recordFlaw }, surroundings) {
    const gates = evaluation.gates.map((gate) => explainGate(gate, evaluation, surroundings, recordFlaw?.message));
    const blocking =
      evaluation.policy.enforcement === 'enforce' ? blockingOf(gates, evaluation.revision.lifecycle) : [];
    if (blocking.length === 0) return { gates };
    const closed = blocking.map(({ type, settledBy }) => `${type} (settled by ${settledBy})`).join(', ');
    const step = evaluation.revision.lifecycle === 'Draft' ? 'proposed' : 'approved';
    const message = `closed gates, so that it cannot be ${step} yet: ${closed}`;
    const reasons = [{ reason: 'GatesClosed', message }];
    // What is proposed has to change first, and its gates are judged again then.
    if (refusalOf(evaluation) !== undefined && evaluation.revision.lifecycle === 'Proposed') return { gates, reasons };
    return {
      ...{ gates, reasons },
      next: blocking.flatMap((gate) => stepsFor(gate, evaluation, surroundings)),
    };
  },
};

/** The gates that keep a revision from its next step. */
function blockingOf(gates: readonly GateExplanation[], lifecycle: string): GateExplanation[] {
  if (lifecycle !== 'Draft' && lifecycle !== 'Proposed') return [];
  return gates.filter((gate) => !gate.open && (lifecycle === 'Proposed' || !gate.approveOnly));
}

/** A command contains its gate; other next steps get its name. */
function stepsFor(gate: GateExplanation, evaluation: RevisionEvaluation, { running }: Surroundings): string[] {
  const { type, next } = gate;
  if (next === undefined) return [];
  if (waitsForEdit(gate)) return [...editSteps(evaluation), ...(running ? [] : [sluiceCommand('up')])];
  return [next.startsWith('sluice ') ? next : `gate ${type}: ${next}`];
}

/** True for a verdict that the present content is wrong, which a resolver repeats until users have changed it. */
function waitsForEdit({ condition, changed, givenBy = '' }: GateExplanation): boolean {
  const isInvalid = condition?.status === 'False' && condition.reason?.startsWith('Invalid') === true;
  return isInvalid && changed.length === 0 && givenBy.startsWith('resolver:');
}

function editSteps({ revision }: RevisionEvaluation): string[] {
  const reject = revision.lifecycle === 'Proposed' ? [sluiceCommand('rpkg', 'reject', revision.name)] : [];
  return [...reject, ...repairSteps(revision)];
}

function explainGate(
  gate: Gate,
  evaluation: RevisionEvaluation,
  surroundings: Surroundings,
  recordFlaw: string | undefined,
): GateExplanation {
  const { condition, verdict, type } = gate;
  const settler = issuerOf(gate, evaluation, surroundings);
  const deadline = deadlineOf(gate, evaluation, surroundings.now);
  const open = gate.state === 'Open';
  const editable = ['Draft', 'Proposed'].includes(evaluation.revision.lifecycle);
  const explained: GateExplanation = {
    type,
    open,
    state: gate.state,
    requiredBy: gate.requiredBy,
    approveOnly: gate.approveOnly,
    ...(condition === undefined
      ? {}
      : {
          condition: {
            status: condition.status,
            ...(condition.reason === undefined ? {} : { reason: condition.reason }),
            ...(condition.message === undefined ? {} : { message: condition.message }),
          },
        }),
    ...(gate.since === undefined ? {} : { since: gate.since }),
    // Without a record only the condition remains of a verdict.
    explanation:
      recordFlaw === undefined || open || gate.condition?.status !== 'True'
        ? gate.explanation
        : `${gate.explanation}; ${recordFlaw}`,
    boundTo: verdict === undefined ? [] : Object.keys(verdict.inputs),
    changed: gate.changed,
    ...(verdict?.external === undefined ? {} : { external: verdict.external }),
    ...(verdict === undefined ? {} : { givenBy: verdict.by, givenAt: verdict.at }),
    ...(gate.expires === undefined ? {} : { expires: gate.expires }),
    settledBy: settler.who,
    ...(deadline === undefined || open || !editable ? {} : { deadline }),
    ...(open || !editable ? {} : { next: settler.next }),
  };
  const [edit] = open || !editable || !waitsForEdit(explained) ? [] : editSteps(evaluation);
  return edit === undefined ? explained : { ...explained, next: edit };
}

/** Returns the possible issuers of a condition type, and the next step. */
function issuerOf(
  { type, state, verdict, condition }: Gate,
  { policy, revision }: RevisionEvaluation,
  { resolvers, running }: Surroundings,
): { who: string; next: string } {
  if (type === REVIEWED_TYPE) {
    return { who: `${REVIEW_ACTOR}, by the reviews of its pull request`, next: reviewStep(condition, policy, running) };
  }
  const give = (...as: string[]) => sluiceCommand('rpkg', 'condition', 'set', revision.name, type, 'True', ...as);
  const resolver = resolvers.find((known) => known.claims.some((claim) => matchesPattern(claim, type)));
  const byPipeline = type === RENDERED.type || (verdict?.by === RENDER_ACTOR && state !== 'NotAllowed');
  const name = OWN_TYPES.includes(type)
    ? 'revision controller'
    : (resolver && `resolver ${resolver.name}`) || (byPipeline ? "the package's pipeline" : undefined);
  if (name !== undefined) {
    // For the same inputs it issues the same condition again until an input changes.
    const answered = state === 'NotTrue' && [`resolver:${resolver?.name}`, RENDER_ACTOR].includes(verdict?.by ?? '');
    const wait = answered
      ? `resolve what its message reports; ${name} then runs again by itself`
      : `${name} works on it`;
    return running ? { who: name, next: wait } : { who: `${name}, which is not running`, next: sluiceCommand('up') };
  }
  const rules = policy.givers.filter((rule) => matchesPattern(rule.conditionType, type));
  const [first, ...others] = rules;
  if (first === undefined) return { who: 'anyone', next: give() };
  // Every rule that names the type must allow the actor.
  const actors = first.actors.filter((actor) => others.every((rule) => rule.actors.includes(actor)));
  const policies = [...new Set(rules.map((rule) => rule.policy))].join(', ');
  const [actor] = actors;
  if (actor === undefined) return { who: `no user: ${policies} permit no common actor`, next: `change ${policies}` };
  const as = actor.startsWith('group:') ? ['--as-group', actor.slice('group:'.length)] : ['--as', actor];
  return { who: `${actors.join(', ')} (policy ${policies})`, next: give(...as) };
}

/** What opens the gate of reviews: unless a reviewer requests changes, its pull request is still to be opened or read. */
function reviewStep(condition: Gate['condition'], { review }: RevisionEvaluation['policy'], running: boolean): string {
  if (condition?.status === 'False')
    return 'in its pull request, the reviewer who requests changes has to review again, or the review has to be dismissed';
  if (review === undefined)
    return 'no policy with spec.review applies to it alone, so that no pull request is read whose reviews could open the gate';
  return running ? sluiceCommand('why', `packagepolicy/${review.policy}`) : sluiceCommand('up');
}

function deadlineOf(
  gate: Gate,
  { policy, revision, record }: RevisionEvaluation,
  now: number,
): { due: string; overdue: boolean } | undefined {
  const limit = policy.gateDeadlines[gate.type];
  if (limit === undefined || !Number.isFinite(limit)) return undefined;
  const since = gate.state === 'Missing' ? record.createdAt : gate.state === 'NotTrue' ? gate.since : undefined;
  const start = since === undefined ? revision.tip.time : Date.parse(since);
  if (Number.isNaN(start)) return undefined;
  return { due: timestamp(start + limit), overdue: now >= start + limit };
}
