import { conditionsOf, gatesOf, type Kptfile } from '../../../kptfile-schema/index.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { knownTypes, lookalikeProblem } from '../../resource/object/lookalike.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { type EffectivePolicy, refuseGiver, typesOf } from '../model/policy.ts';

/** Throws Refused if a policy does not let whoever asks give or withdraw conditions of one of the types. */
export function checkGiver(policy: EffectivePolicy, types: Iterable<string>, { actor, face }: RequestContext): void {
  for (const type of types) {
    const refused = refuseGiver(policy, type, actor, face);
    if (refused !== undefined) throw new SluiceError('Refused', `${actor.name}: ${refused}`);
  }
}

/** Throws InvalidInput for a new condition type that people could take for another one of the package or its policies. */
export function checkTypes(policy: EffectivePolicy, kptfile: Kptfile | undefined, types: Iterable<string>): void {
  const there = new Set(kptfile === undefined ? [] : [...gatesOf(kptfile), ...conditionsOf(kptfile).keys()]);
  const known = knownTypes([...typesOf(policy), ...there]);
  for (const type of types) {
    if (there.has(type)) continue;
    const problem = lookalikeProblem(type, known);
    if (problem !== undefined) throw new SluiceError('InvalidInput', `${problem}; use another one`);
  }
}

/** Tells the caller that conditions in a Kptfile were kept and count for nothing. */
export function warnOfUnproven({ actor, warn }: RequestContext, types: readonly string[]): void {
  const named = types.length <= 5 ? types.join(', ') : `${types.slice(0, 5).join(', ')} and ${types.length - 5} more`;
  warn?.(
    `conditions in the Kptfile are kept and open no gate, since ${actor.name} may not update packagerevisions/status: ${named}`,
  );
}

/** The types of conditions that differ between two Kptfiles. A Kptfile that is missing or cannot be read has none. */
export function changedConditions(before: Kptfile | undefined, after: Kptfile | undefined): string[] {
  const old = before === undefined ? new Map<string, unknown>() : conditionsOf(before);
  const now = after === undefined ? new Map<string, unknown>() : conditionsOf(after);
  const types = new Set([...old.keys(), ...now.keys()]);
  return [...types].filter((type) => !sameValue(old.get(type), now.get(type)));
}
