import type { Condition } from '../../kptfile-schema/index.ts';
import { timestamp } from '../foundation/clock.ts';
import type { Face } from '../resource/request-context.ts';
import { changedInputs, type PackageInputs } from './inputs.ts';
import { type EffectivePolicy, matchesPattern, refuseGiver } from './policy.ts';
import { type RevisionRecord, type Verdict, verdictOf } from './record.ts';

/**
 * - `Open`: True, by somebody who may say so, for the inputs at hand;
 * - `Missing`: nobody has given the condition;
 * - `NotTrue`: given, and False or Unknown;
 * - `Unproven`: True in the Kptfile, but no verdict says for what;
 * - `Stale`: True for inputs that have changed since;
 * - `Expired`: True, for the inputs at hand, longer ago than a policy lets it count;
 * - `NotAllowed`: True, by an actor whom a policy does not let give it.
 */
export type GateState = 'Open' | 'Missing' | 'NotTrue' | 'Unproven' | 'Stale' | 'Expired' | 'NotAllowed';

export interface Gate {
  readonly type: string;
  /** `Kptfile`, `policy <name>`, or `proposal` for a gate that was required when the revision was proposed. */
  readonly requiredBy: readonly string[];
  readonly approveOnly: boolean;
  readonly state: GateState;
  readonly condition: Condition | undefined;
  readonly verdict: Verdict | undefined;
  /** Inputs that changed after the verdict. */
  readonly changed: readonly string[];
  /** Since when the gate is as it is, RFC 3339, where known. */
  readonly since: string | undefined;
  /** One sentence for people. */
  readonly explanation: string;
}

/** What gates are judged on. */
export interface GateFacts {
  /** Gates of the Kptfile. */
  readonly gates: readonly string[];
  /** Effective conditions of the Kptfile. */
  readonly conditions: ReadonlyMap<string, Condition>;
  /** Types that were required when the revision was proposed, whatever the Kptfile says since. */
  readonly proposed?: readonly string[];
  readonly record: RevisionRecord | undefined;
  readonly inputs: PackageInputs;
}

/** Every effective gate of a revision: the Kptfile's and those that policies demand, in that order. `now` is RFC 3339. */
export function evaluateGates(facts: GateFacts, policy: EffectivePolicy, now: string): Gate[] {
  const required = new Map<string, { by: string[]; approveOnly: boolean }>();
  for (const type of facts.gates) required.set(type, { by: ['Kptfile'], approveOnly: false });
  for (const gate of policy.requiredGates) {
    const known = required.get(gate.conditionType);
    if (known === undefined) {
      required.set(gate.conditionType, { by: [`policy ${gate.policy}`], approveOnly: gate.approveOnly });
    } else {
      // A Kptfile gate that a policy marks approve-only is asked for at approval only; two policies must agree on it.
      const onlyKptfile = known.by.every((by) => by === 'Kptfile');
      known.approveOnly = onlyKptfile ? gate.approveOnly : known.approveOnly && gate.approveOnly;
      known.by.push(`policy ${gate.policy}`);
    }
  }
  for (const type of facts.proposed ?? []) {
    if (!required.has(type)) required.set(type, { by: ['proposal'], approveOnly: false });
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
  const { state, explanation } = judge(type, condition, verdict, changed, policy, now);
  return { type, requiredBy, approveOnly, state, condition, verdict, changed, since: verdict?.since, explanation };
}

function judge(
  type: string,
  condition: Condition | undefined,
  verdict: Verdict | undefined,
  changed: readonly string[],
  policy: EffectivePolicy,
  now: string,
): { state: GateState; explanation: string } {
  if (condition === undefined) return { state: 'Missing', explanation: 'nobody has given this condition yet' };
  if (condition.status !== 'True') {
    const said = [condition.reason, condition.message].filter((text) => text !== undefined && text !== '').join(': ');
    return { state: 'NotTrue', explanation: `the condition is ${condition.status}${said === '' ? '' : ` (${said})`}` };
  }
  if (verdict === undefined || verdict.status !== 'True' || Object.keys(verdict.inputs).length === 0) {
    return {
      state: 'Unproven',
      explanation: 'the Kptfile says True, but no record tells for which content; give the condition again',
    };
  }
  const giver = { name: verdict.by, groups: verdict.groups ?? [] };
  const refused = refuseGiver(policy, type, giver, verdict.face as Face);
  if (refused !== undefined) return { state: 'NotAllowed', explanation: `given by ${verdict.by}: ${refused}` };
  if (changed.length > 0) {
    return {
      state: 'Stale',
      explanation: `given by ${verdict.by} at ${verdict.at}, but ${changed.map(describeInput).join(' and ')} changed since`,
    };
  }
  const validFor = validityOf(policy, type);
  if (validFor !== undefined) {
    const given = Date.parse(verdict.at);
    // A time that cannot be read is none from which it could count.
    if (Number.isNaN(given)) {
      return { state: 'Expired', explanation: `given by ${verdict.by}, at a time that cannot be read` };
    }
    if (Date.parse(now) - given >= validFor) {
      const until = timestamp(given + validFor);
      return { state: 'Expired', explanation: `given by ${verdict.by} at ${verdict.at}, which counted until ${until}` };
    }
  }
  return { state: 'Open', explanation: `given by ${verdict.by} at ${verdict.at}` };
}

/** Milliseconds for which a verdict of this type counts: the shortest that a policy names; undefined without limit. */
function validityOf({ validFor }: EffectivePolicy, type: string): number | undefined {
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
