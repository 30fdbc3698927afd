import { conditionsOf, gatesOf, type Kptfile } from '../../../../kptfile-schema/index.ts';
import { knownTypes, lookalikeProblem } from '../../../resource/object/lookalike.ts';
import { type EffectivePolicy, typesOf } from './policy.ts';

/**
 * Returns conditions and gates of a Kptfile that users could mistake for others of it or of its policies, one sentence each. Sluice
 * writes none of them, so a push added them; they open no gate.
 */
export function lookalikesOf(kptfile: Kptfile | undefined, policy: EffectivePolicy): string[] {
  if (kptfile === undefined) return [];
  const types = new Set([...gatesOf(kptfile), ...conditionsOf(kptfile).keys()]);
  const known = knownTypes([...typesOf(policy), ...types]);
  return [...types].flatMap((type) => lookalikeProblem(type, known) ?? []);
}
