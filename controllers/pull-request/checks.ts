import type { Annotation, Check } from '../../src/forge/forge.ts';
import type { Explanation, GateExplanation } from '../../src/package/model/revision/explanation.ts';
import { plainLine } from './quote.ts';

/** The check that administrators make required. */
export const READY_CHECK = 'sluice/ready';
export const GATE_CHECKS = 'sluice/gate/';
const MAX_TITLE_CHARACTERS = 140;

/** The checks of a proposal: one for all gates, with these annotations, and one for each gate of these types. */
export function checksOf(
  { gates, enforcement }: Explanation,
  gateTypes: readonly string[],
  annotations: readonly Annotation[] = [],
): Check[] {
  const own = gateTypes.flatMap((type) => {
    const gate = gates.find((one) => one.type === type);
    return gate === undefined ? [] : gateCheck(gate);
  });
  const ready = readyCheck(gates, enforcement);
  return [annotations.length === 0 ? ready : { ...ready, annotations }, ...own];
}

function readyCheck(gates: readonly GateExplanation[], enforcement: string): Check {
  const closed = gates.filter(({ open }) => !open);
  if (closed.length === 0) {
    const title =
      gates.length === 0
        ? 'It has no gates'
        : gates.length === 1
          ? 'Its gate is open'
          : `All ${gates.length} gates are open`;
    return { name: READY_CHECK, state: 'success', title };
  }
  const names = closed.map(({ type, settledBy }) => `${type} (settled by ${settledBy})`).join(', ');
  const unenforced = enforcement === 'enforce' ? '' : ', which its repository does not enforce';
  return {
    name: READY_CHECK,
    state: enforcement === 'enforce' ? stateOf(closed) : 'success',
    title: plainLine(`${closed.length} of ${gates.length} gates closed${unenforced}: ${names}`, MAX_TITLE_CHARACTERS),
  };
}

function gateCheck(gate: GateExplanation): Check {
  return {
    name: `${GATE_CHECKS}${gate.type}`,
    state: gate.open ? 'success' : stateOf([gate]),
    title: plainLine(gate.explanation, MAX_TITLE_CHARACTERS),
  };
}

/** A gate whose condition is False has failed; every other closed gate can still open by itself. */
function stateOf(closed: readonly GateExplanation[]): 'failure' | 'pending' {
  return closed.some(({ condition }) => condition?.status === 'False') ? 'failure' : 'pending';
}
