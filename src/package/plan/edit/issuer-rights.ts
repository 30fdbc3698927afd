import { conditionsOf, gatesOf, type Kptfile } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { commandLine } from '../../../foundation/text/command-line.ts';
import { nearMisses } from '../../../foundation/text/near-misses.ts';
import { knownTypes, lookalikeProblem } from '../../../resource/object/lookalike.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { RENDERED_TYPE } from '../../model/gates/verdict.ts';
import { type EffectivePolicy, refuseIssuer, typesOf } from '../../model/policy/policy.ts';
import { refuseReviewer } from '../../model/policy/review-policy.ts';

/** Gates that a warning names. */
const MAX_NAMED_GATES = 5;

/** Throws Refused if a policy does not permit the actor to set or withdraw conditions of one of the types. */
export function checkIssuer(policy: EffectivePolicy, types: Iterable<string>, { actor, face }: RequestContext): void {
  for (const type of types) {
    const refused = refuseIssuer(policy, type, actor, face);
    if (refused !== undefined) throw new SluiceError('Refused', `${actor.name}: ${refused}`);
  }
}

/**
 * Throws InvalidInput for a new condition type that users could mistake for another one of the package or its policies.
 */
export function checkTypes(policy: EffectivePolicy, kptfile: Kptfile | undefined, types: Iterable<string>): void {
  const there = new Set(kptfile === undefined ? [] : [...gatesOf(kptfile), ...conditionsOf(kptfile).keys()]);
  const known = knownTypes([...typesOf(policy), ...there]);
  for (const type of types) {
    if (there.has(type)) continue;
    const problem = lookalikeProblem(type, known);
    if (problem !== undefined) throw new SluiceError('InvalidInput', `${problem}; use another one`);
  }
}

/** An optional DNS name with "/", and a name, as in Kubernetes, also with letters of other scripts. */
const TYPE = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[\p{L}\p{N}](?:[-_.\p{L}\p{N}]*[\p{L}\p{N}])?$/u;

/**
 * Throws InvalidInput for a type that a user requests by itself, and that is no qualified name or not for users. What a Kptfile or a policy has already
 * stays in use.
 */
export function checkRequestedTypes(
  policy: EffectivePolicy,
  kptfile: Kptfile | undefined,
  { conditions = [], gates = [] }: { readonly conditions?: readonly string[]; readonly gates?: readonly string[] },
  { actor, face }: RequestContext,
): void {
  for (const type of conditions) {
    const refused = refuseReviewer(type, actor.name);
    if (refused !== undefined) throw new SluiceError('Refused', `${actor.name}: ${refused}`);
  }
  // Controllers name types after objects, whose names follow other rules.
  if (face === 'controller') return;
  const types = [...conditions, ...gates].filter((type) => !TYPE.test(type));
  if (types.length === 0) return;
  const there = new Set(kptfile === undefined ? [] : [...gatesOf(kptfile), ...conditionsOf(kptfile).keys()]);
  const known = typesOf(policy);
  const [wrong] = types.filter((type) => !there.has(type) && !known.has(type));
  if (wrong === undefined) return;
  // An invisible character is not seen in a message about the form.
  const problem = lookalikeProblem(wrong);
  throw new SluiceError(
    'InvalidInput',
    problem === undefined
      ? `the condition type ${JSON.stringify(wrong)} must be a name such as Tested, or a DNS name, "/" and a name, such as example.com/Tested`
      : `${problem}; use another one`,
  );
}

/** Warns the caller that conditions in a Kptfile were kept and do not count. */
export function warnOfUnproven({ actor, warn }: RequestContext, types: readonly string[]): void {
  const named = types.length <= 5 ? types.join(', ') : `${types.slice(0, 5).join(', ')} and ${types.length - 5} more`;
  warn?.(
    `conditions in the Kptfile are kept and open no gate, since ${actor.name} may not update packagerevisions/status: ${named}`,
  );
}

/** Each of them is compared with all gates. */
const MAX_WARNINGS = 10;

/** Warns of conditions that a user sets and that no gate requires: the type may be misspelt. Controllers report conditions without gates. */
export function warnOfGateless(
  { face, warn }: RequestContext,
  name: string,
  gates: Iterable<string>,
  types: readonly string[],
): void {
  if (warn === undefined || face === 'controller') return;
  const all = new Set(gates);
  const known = [...all];
  const gateless = types.filter((type) => !all.has(type) && type !== RENDERED_TYPE);
  for (const type of gateless.slice(0, MAX_WARNINGS)) {
    const near = nearMisses(type, known);
    const shown = [...known.slice(0, MAX_NAMED_GATES), ...(known.length > MAX_NAMED_GATES ? ['…'] : [])].join(', ');
    const all = known.length === 0 ? 'it has no gates.' : `its gates: ${shown}.`;
    const hint = near.length === 0 ? all : `did you mean ${near.join(' or ')}?`;
    const withdrawal = commandLine(['sluice', 'rpkg', 'condition', 'rm', name, type]);
    warn(`${name} has no gate of type ${type}, so this condition opens none; ${hint} Withdraw it with "${withdrawal}"`);
  }
  const more = gateless.length - MAX_WARNINGS;
  if (more > 0) warn(`${name} has no gate for ${more} more of these conditions`);
}

/** The types of conditions that differ between two Kptfiles. A Kptfile that is missing or cannot be read has none. */
export function changedConditions(before: Kptfile | undefined, after: Kptfile | undefined): string[] {
  const old = before === undefined ? new Map<string, unknown>() : conditionsOf(before);
  const now = after === undefined ? new Map<string, unknown>() : conditionsOf(after);
  const types = new Set([...old.keys(), ...now.keys()]);
  return [...types].filter((type) => !sameValue(old.get(type), now.get(type)));
}
