import { APPROVAL_POLICY_ANNOTATION, AUTO_LIFECYCLE_ANNOTATION } from '../../src/package/lifecycle-annotations.ts';
import { verdictOf } from '../../src/package/record.ts';
import type { Judgement } from '../../src/package/revision-store.ts';
import type { GivenCondition } from '../../src/package/verdict.ts';
import { MAX_ROUNDS, type RunOutcome } from './run-resolvers.ts';

/** The condition of this controller: whether pipeline and resolvers came to rest. It is written only where there is something to say. */
export const SETTLED_TYPE = 'sluice.dev/ResolversSettled';
const NOT_SETTLED = 'NotSettled';

const LONGEST_LIST = 500;

/** True if somebody waits to hear that nothing is left to resolve, whether or not any resolver applies. */
export function isMarked({ record, policy, revision }: Judgement): boolean {
  const annotations = { ...revision.kptfile?.metadata?.annotations, ...record.annotations };
  return (
    policy.autoPropose ||
    annotations[AUTO_LIFECYCLE_ANNOTATION] === 'true' ||
    annotations[APPROVAL_POLICY_ANNOTATION] !== undefined
  );
}

/** True if a run over this very content did not come to rest before. Another run would only repeat it. */
export function isStopped({ record, content, revision }: Judgement): boolean {
  const verdict = verdictOf(record, SETTLED_TYPE);
  const condition = revision.kptfile?.status?.conditions?.find(({ type }) => type === SETTLED_TYPE);
  return condition !== undefined && verdict?.reason === NOT_SETTLED && verdict.inputs.content === content.content;
}

/** What this controller says about a run. Where no gate asks for the condition, silence means that all is well. */
export function settledCondition(
  judgement: Judgement,
  outcome: RunOutcome,
): { readonly given?: GivenCondition; readonly withdraw?: boolean } | undefined {
  const say = (status: 'True' | 'False' | 'Unknown', reason: string, message: string) => ({
    given: { type: SETTLED_TYPE, status, reason, message, inputs: ['content'] },
  });
  const { unsettled, problems, waiting, failures, claimants, reported } = outcome;
  if (unsettled !== undefined) {
    const what = unsettled.length <= LONGEST_LIST ? unsettled : `${unsettled.slice(0, LONGEST_LIST)}…`;
    return say(
      'False',
      NOT_SETTLED,
      `no rest after ${MAX_ROUNDS} rounds: ${what}; nothing was written. Change the package, or remove this condition, to try again`,
    );
  }
  const [problem] = problems;
  if (problem !== undefined) return say('False', problem.reason, problem.message);
  const known = judgement.revision.kptfile?.status?.conditions?.some(({ type }) => type === SETTLED_TYPE) ?? false;
  if (!judgement.gates.some(({ type }) => type === SETTLED_TYPE)) return known ? { withdraw: true } : undefined;
  const silent = claimants.filter((name) => !reported.has(name));
  if (silent.length === 0 && failures.length === 0)
    return say(
      'True',
      'Settled',
      `${claimants.length === 0 ? 'no resolver applies' : `${claimants.join(', ')} reported`}`,
    );
  const waits = silent.map(
    (name) => `${name}${waiting.has(name) ? ` (waits for ${waiting.get(name)?.join(', ')})` : ''}`,
  );
  return say('Unknown', 'Incomplete', `no answer yet from ${waits.join(', ')}`);
}
