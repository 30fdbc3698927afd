import type { Annotation, Check } from '../../../src/forge/forge.ts';
import type { Explanation, GateExplanation } from '../../../src/package/model/revision/explanation.ts';
import { gateTable } from '../text/describe-proposal.ts';
import { inlineCode, plainLine } from '../text/quote.ts';

/** The check that administrators make required. */
export const READY_CHECK = 'sluice/ready';
export const GATE_CHECKS = 'sluice/gate/';
/** As the kernel refuses every approval then, whatever the gates are. */
export const CONFLICT_REASON = 'Conflicted';
const CONFLICT_CHECK = {
  name: READY_CHECK,
  state: 'failure',
  title: 'The package was edited on the main branch, which conflicts with the proposal',
} as const;
const MAX_CONFLICT_CHARACTERS = 2000;
const MAX_TITLE_CHARACTERS = 140;
const MAX_NEXT = 20;

/**
 * The checks of a proposal: one for all gates, with these annotations, and one for each gate of these types. `url` is the pull request, which has
 * the table of the gates too.
 */
export function checksOf(
  { gates, enforcement, next, reasons }: Pick<Explanation, 'gates' | 'enforcement' | 'next' | 'reasons'>,
  gateTypes: readonly string[],
  url: string,
  annotations: readonly Annotation[] = [],
): Check[] {
  const own = gateTypes.flatMap((type) => {
    const gate = gates.find((one) => one.type === type);
    return gate === undefined ? [] : gateCheck(gate);
  });
  const conflict = reasons.find(({ reason }) => reason === CONFLICT_REASON);
  const ready =
    conflict === undefined
      ? { ...readyCheck(gates, enforcement), text: textOf(gates, next) }
      : {
          ...CONFLICT_CHECK,
          text: `${inlineCode(conflict.message, MAX_CONFLICT_CHARACTERS)}\n\n${textOf(gates, next)}`,
        };
  return [annotations.length === 0 ? ready : { ...ready, annotations }, ...own].map((check) => ({ ...check, url }));
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
    text: textOf([gate], gate.next === undefined ? [] : [gate.next]),
  };
}

/** What `sluice why` reports of gates, in Markdown. */
function textOf(gates: readonly GateExplanation[], next: readonly string[]): string {
  const steps = next.slice(0, MAX_NEXT).map((line) => `- ${inlineCode(line)}`);
  return [gateTable(gates), ...(steps.length === 0 ? [] : [`Next:\n\n${steps.join('\n')}`])].join('\n\n');
}

/** A gate whose condition is False has failed; every other closed gate can still open by itself. */
function stateOf(closed: readonly GateExplanation[]): 'failure' | 'pending' {
  return closed.some(({ condition }) => condition?.status === 'False') ? 'failure' : 'pending';
}
