import type { Condition } from '../../../../kptfile-schema/index.ts';
import { timestamp } from '../../../foundation/time/clock.ts';
import { lookalikeProblem } from '../../../resource/object/lookalike.ts';
import type { EntryPoint } from '../../../resource/object/request-context.ts';
import { CONTENT_INPUT, changedInputs, type PackageInputs } from '../content/inputs.ts';
import { bindsContent, type EffectivePolicy, matchesPattern, refuseIssuer } from '../policy/policy.ts';
import { refuseReviewer } from '../policy/review-policy.ts';
import { type RevisionRecord, type Verdict, verdictOf } from '../record/record.ts';
import { isComputedType, READY_TYPE } from './ready-type.ts';
import { type Issuer, PUSH_ACTOR, RENDER_ACTOR, RENDERED_TYPE } from './verdict.ts';

/**
 * - `Open`: True, by an issuer that the policies allow, for the current inputs;
 * - `Missing`: the condition was not set;
 * - `NotTrue`: set to False or Unknown;
 * - `Unproven`: True in the Kptfile, but no verdict has its inputs;
 * - `Stale`: True for inputs that have changed since;
 * - `Expired`: True, for the current inputs, but older than a policy permits;
 * - `NotAllowed`: True, by an actor that a policy does not allow.
 */
export type GateState = 'Open' | 'Missing' | 'NotTrue' | 'Unproven' | 'Stale' | 'Expired' | 'NotAllowed';

export interface Gate {
  readonly type: string;
  /**
   * `Kptfile`, `policy <name>`, `proposal` for a gate that was required when the revision was proposed, or `Sluice` for the condition
   * `Rendered` while it is False.
   */
  readonly requiredBy: readonly string[];
  readonly approveOnly: boolean;
  readonly state: GateState;
  readonly condition: Condition | undefined;
  readonly verdict: Verdict | undefined;
  /** Inputs that changed after the verdict. */
  readonly changed: readonly string[];
  /** Time at which its verdict expires according to a policy, RFC 3339; set only while it is open. */
  readonly expires?: string;
  /** Since when the gate is as it is, RFC 3339, where known. */
  readonly since: string | undefined;
  /** One human-readable sentence. */
  readonly explanation: string;
}

/** The inputs of the evaluation of gates. */
export interface GateFacts {
  /** Gates of the Kptfile. */
  readonly gates: readonly string[];
  /** Effective conditions of the Kptfile. */
  readonly conditions: ReadonlyMap<string, Condition>;
  /** Types that were required when the revision was proposed, whatever the Kptfile has since. */
  readonly proposed?: readonly string[];
  readonly record: RevisionRecord | undefined;
  readonly inputs: PackageInputs;
}

/**
 * Every effective gate of a revision: the Kptfile's and those that policies require, in that order, and `Rendered` where the pipeline
 * failed: what could not be rendered is not what its author meant. Those of policies in repositories are last. `now` is RFC 3339.
 */
export function evaluateGates(facts: GateFacts, policy: EffectivePolicy, now: string): Gate[] {
  const required = new Map<string, { by: string[]; approveOnly: boolean }>();
  for (const type of facts.gates) required.set(type, { by: ['Kptfile'], approveOnly: false });
  for (const gate of policy.requiredGates) {
    if (gate.onlyRestricts === true) continue;
    const known = required.get(gate.conditionType);
    if (known === undefined) {
      required.set(gate.conditionType, { by: [`policy ${gate.policy}`], approveOnly: gate.approveOnly });
    } else {
      // A Kptfile gate that a policy marks approve-only is required at approval only; two policies must agree on it.
      const onlyKptfile = known.by.every((by) => by === 'Kptfile');
      known.approveOnly = onlyKptfile ? gate.approveOnly : known.approveOnly && gate.approveOnly;
      known.by.push(`policy ${gate.policy}`);
    }
  }
  for (const type of facts.proposed ?? []) {
    if (!required.has(type)) required.set(type, { by: ['proposal'], approveOnly: false });
  }
  if (facts.conditions.get(RENDERED_TYPE)?.status === 'False' && !required.has(RENDERED_TYPE))
    required.set(RENDERED_TYPE, { by: ['Sluice'], approveOnly: false });
  // After all others, so that approve-only relaxes none of them.
  for (const { conditionType, approveOnly, onlyRestricts, policy: name } of policy.requiredGates) {
    if (onlyRestricts !== true) continue;
    const known = required.get(conditionType) ?? { by: [], approveOnly };
    known.by.push(`policy ${name}`);
    known.approveOnly &&= approveOnly;
    required.set(conditionType, known);
  }
  return [...required].map(([type, { by, approveOnly }]) => evaluate(type, by, approveOnly, facts, policy, now));
}

function evaluate(
  type: string,
  requiredBy: readonly string[],
  approveOnly: boolean,
  facts: GateFacts,
  policy: EffectivePolicy,
  now: string,
): Gate {
  const condition = facts.conditions.get(type);
  const verdict = verdictOf(facts.record, type);
  const changed = verdict === undefined ? [] : changedInputs(verdict.inputs, facts.inputs);
  const result = evaluateGate(type, condition, verdict, changed, policy, now);
  return { type, requiredBy, approveOnly, condition, verdict, changed, since: verdict?.since, ...result };
}

function evaluateGate(
  type: string,
  condition: Condition | undefined,
  verdict: Verdict | undefined,
  changed: readonly string[],
  policy: EffectivePolicy,
  now: string,
): Pick<Gate, 'state' | 'explanation' | 'expires'> & Partial<Pick<Gate, 'since'>> {
  if (isComputedType(type)) {
    const explanation =
      type === READY_TYPE
        ? 'Sluice computes this condition from the other gates, so the gate can never open; require another type'
        : 'Sluice computes this condition from the policies, so the gate can never open; require another type';
    return { state: 'NotAllowed', explanation };
  }
  const problem = lookalikeProblem(type);
  if (problem !== undefined) {
    return { state: 'NotAllowed', explanation: `${problem}, so the gate can never open; require another type` };
  }
  if (condition === undefined) return { state: 'Missing', explanation: 'the condition has not been set yet' };
  if (condition.status !== 'True') {
    const details = [condition.reason, condition.message]
      .filter((text) => text !== undefined && text !== '')
      .join(': ');
    return {
      state: 'NotTrue',
      explanation: `the condition is ${condition.status}${details === '' ? '' : ` (${details})`}`,
    };
  }
  if (verdict === undefined || verdict.status !== 'True' || Object.keys(verdict.inputs).length === 0) {
    return {
      state: 'Unproven',
      explanation: 'the Kptfile has True, but no record proves for which content; set the condition again',
    };
  }
  for (const { name, groups = [], face } of issuersOf(verdict)) {
    const refused = refuseIssuer(policy, type, { name, groups }, face as EntryPoint) ?? refuseReviewer(type, name);
    const functions = name === verdict.by ? '' : `, for functions that ${name} may have changed`;
    if (refused !== undefined)
      return { state: 'NotAllowed', explanation: `issued by ${verdict.by}${functions}: ${refused}` };
  }
  if (bindsContent(policy, type) && !Object.hasOwn(verdict.inputs, CONTENT_INPUT)) {
    return {
      state: 'Unproven',
      explanation: `issued by ${verdict.by} for an object only, and a policy requires the whole content; set the condition again`,
    };
  }
  if (changed.length > 0) {
    // The verdict is from before: when the input changed is not recorded.
    return {
      state: 'Stale',
      since: undefined,
      explanation: `issued by ${verdict.by} at ${verdict.at}, but ${changed.map(describeInput).join(' and ')} changed since`,
    };
  }
  const issued = `issued by ${verdict.by} at ${verdict.at}`;
  const end = expiryOf(policy, verdict);
  if (end === undefined) return { state: 'Open', explanation: issued };
  // A time that cannot be read is no time at which it still counts.
  if (!(Date.parse(now) < end)) {
    if (Number.isNaN(end))
      return { state: 'Expired', explanation: `issued by ${verdict.by}, at a time that cannot be read` };
    return { state: 'Expired', since: timestamp(end), explanation: `${issued}, which counted until ${timestamp(end)}` };
  }
  return { state: 'Open', explanation: `${issued}, and counts until ${timestamp(end)}`, expires: timestamp(end) };
}

/** The actors that a verdict counts as issued by: its issuer, or all who may have changed the functions that issued it. */
function issuersOf({ type, by, face, groups, issuers, pinned }: Verdict): readonly Issuer[] {
  const own = { name: by, face, ...(groups === undefined ? {} : { groups }) };
  if (by !== RENDER_ACTOR || type === RENDERED_TYPE || pinned === true) return [own];
  // Whose functions they are is not known; that is an unknown person.
  return issuers === undefined || issuers.length === 0 ? [{ name: PUSH_ACTOR, face: 'git' }] : issuers;
}

/** Returns when a verdict expires, in milliseconds since the epoch; undefined if no policy limits it. */
export function expiryOf(
  policy: Pick<EffectivePolicy, 'validFor'>,
  { type, at }: Pick<Verdict, 'type' | 'at'>,
): number | undefined {
  const validFor = validityOf(policy, type);
  return validFor === undefined ? undefined : Date.parse(at) + validFor;
}

/**
 * True if setting a condition again must renew its time: a policy limits its validity, and a user affirms it, or it expired.
 * Otherwise the same verdict of a controller changes nothing, since controllers would write endlessly.
 */
export function needsRenewal(
  policy: Pick<EffectivePolicy, 'validFor'>,
  record: RevisionRecord,
  type: string,
  face: EntryPoint,
  now: string,
): boolean {
  const verdict = verdictOf(record, type);
  const end = verdict === undefined ? undefined : expiryOf(policy, verdict);
  return end !== undefined && (face !== 'controller' || !(Date.parse(now) < end));
}

/** Returns when the first of the open gates expires, in milliseconds since the epoch; undefined if none does. */
export function nextExpiry(gates: readonly Gate[]): number | undefined {
  const ends = gates.flatMap(({ expires }) => (expires === undefined ? [] : Date.parse(expires)));
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Milliseconds for which a verdict of this type counts: the shortest that a policy names; undefined without limit. */
function validityOf({ validFor }: Pick<EffectivePolicy, 'validFor'>, type: string): number | undefined {
  const limits = validFor.flatMap(({ conditionType, milliseconds }) =>
    matchesPattern(conditionType, type) ? milliseconds : [],
  );
  return limits.length === 0 ? undefined : Math.min(...limits);
}

function describeInput(reference: string): string {
  if (reference === 'content') return 'the content of the package';
  if (reference.startsWith('object:')) return `the object ${reference.slice('object:'.length)}`;
  return reference.startsWith('file:') ? `the file ${reference.slice('file:'.length)}` : reference;
}
