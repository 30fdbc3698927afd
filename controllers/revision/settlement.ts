import type { IssuedCondition } from '../../src/package/model/gates/verdict.ts';
import { verdictOf } from '../../src/package/model/record/record.ts';
import {
  APPROVAL_POLICY_ANNOTATION,
  AUTO_LIFECYCLE_ANNOTATION,
  lifecycleAnnotation,
} from '../../src/package/model/revision/lifecycle-annotations.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import { MAX_ROUNDS, type RunOutcome } from './run-resolvers.ts';
import { RENDERER } from './run-state.ts';

/** The condition of this controller: whether pipeline and resolvers settled. Written only for problems, and where a gate requires it. */
export const SETTLED_TYPE = 'sluice.dev/ResolversSettled';
/** Its other condition: whether the function pipeline alone settled. */
export const PIPELINE_SETTLED_TYPE = 'sluice.dev/PipelineSettled';
export const OWN_TYPES: readonly string[] = [SETTLED_TYPE, PIPELINE_SETTLED_TYPE];
const NOT_SETTLED = 'NotSettled';

const MAX_LIST_CHARACTERS = 500;

/** True if the draft is to be proposed or approved by a controller, which needs the report even if no resolver applies. */
export function isMarked({ record, policy, revision }: RevisionEvaluation): boolean {
  const places = { own: record.annotations, kptfile: revision.kptfile?.metadata?.annotations };
  return (
    policy.autoPropose ||
    policy.automatic.length > 0 ||
    lifecycleAnnotation(AUTO_LIFECYCLE_ANNOTATION, places, policy) === 'true' ||
    lifecycleAnnotation(APPROVAL_POLICY_ANNOTATION, places, policy) !== undefined
  );
}

/** True if an earlier run over the same content did not settle. Another run would only repeat it. */
export function isStopped({ record, content, revision }: RevisionEvaluation): boolean {
  return OWN_TYPES.some((own) => {
    const verdict = verdictOf(record, own);
    const condition = revision.kptfile?.status?.conditions?.find(({ type }) => type === own);
    return condition !== undefined && verdict?.reason === NOT_SETTLED && verdict.inputs.content === content.content;
  });
}

/** The conditions of this controller after a run: those to issue, and the types of those to withdraw. */
export interface Settlement {
  readonly issued: readonly IssuedCondition[];
  readonly withdraw: readonly string[];
}

/** The conditions after a run. Where no gate requires a condition, its absence means that there is no problem. */
export function settlementOf(evaluation: RevisionEvaluation, outcome: RunOutcome): Settlement {
  const conditions = [resolversSettled(evaluation, outcome), pipelineSettled(evaluation, outcome)];
  const known = new Set(evaluation.revision.kptfile?.status?.conditions?.map(({ type }) => type));
  const issued = conditions.filter((condition) => condition !== undefined);
  const withdraw = OWN_TYPES.filter((type, at) => conditions[at] === undefined && known.has(type));
  return { issued, withdraw };
}

function pipelineSettled(
  evaluation: RevisionEvaluation,
  { unsettled, applicable, reported }: RunOutcome,
): IssuedCondition | undefined {
  const condition = statement(PIPELINE_SETTLED_TYPE);
  if (unsettled?.pipeline !== undefined)
    return condition(
      'False',
      NOT_SETTLED,
      `the pipeline still changes the package after ${MAX_ROUNDS} rounds; nothing was written. Change the package, or remove this condition, to try again. The last round:\n${unsettled.pipeline}`,
    );
  if (!evaluation.gates.some(({ type }) => type === PIPELINE_SETTLED_TYPE)) return undefined;
  if (!applicable.includes(RENDERER)) return condition('True', 'Settled', 'the package names no functions');
  if (unsettled !== undefined || !reported.has(RENDERER))
    return condition('Unknown', 'Incomplete', 'the package could not be rendered');
  return condition('True', 'Settled', 'rendering again changes nothing');
}

function resolversSettled(evaluation: RevisionEvaluation, outcome: RunOutcome): IssuedCondition | undefined {
  const condition = statement(SETTLED_TYPE);
  const { unsettled, problems, waiting, failures, applicable, reported } = outcome;
  if (unsettled !== undefined && unsettled.pipeline === undefined) {
    const { changes } = unsettled;
    const shown = changes.length <= MAX_LIST_CHARACTERS ? changes : `${changes.slice(0, MAX_LIST_CHARACTERS)}…`;
    return condition(
      'False',
      NOT_SETTLED,
      `not settled after ${MAX_ROUNDS} rounds: ${shown}; nothing was written. Change the package, or remove this condition, to try again`,
    );
  }
  const [problem] = problems;
  if (problem !== undefined) return condition('False', problem.reason, problem.message);
  if (!evaluation.gates.some(({ type }) => type === SETTLED_TYPE)) return undefined;
  const silent = applicable.filter((name) => !reported.has(name));
  if (silent.length === 0 && failures.length === 0)
    return condition(
      'True',
      'Settled',
      `${applicable.length === 0 ? 'no resolver applies' : `${applicable.join(', ')} reported`}`,
    );
  const waits = silent.map(
    (name) => `${name}${waiting.has(name) ? ` (waits for ${waiting.get(name)?.join(', ')})` : ''}`,
  );
  return condition('Unknown', 'Incomplete', `no report yet from ${waits.join(', ')}`);
}

function statement(type: string) {
  return (status: 'True' | 'False' | 'Unknown', reason: string, message: string): IssuedCondition => ({
    ...{ type, status, reason, message },
    inputs: ['content'],
  });
}
