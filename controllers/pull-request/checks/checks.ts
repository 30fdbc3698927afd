import type { Annotation, Check } from '../../../src/forge/forge.ts';
import type { Explanation, GateExplanation } from '../../../src/package/model/revision/explanation.ts';
import type { BlockingRule } from '../../../src/package/model/revision/revision-state.ts';
import { gateTable } from '../text/describe-proposal.ts';
import { rulesLine, rulesTable } from '../text/describe-rules.ts';
import { inlineCode, plainLine } from '../text/quote.ts';
import { type LastingRefusal, refusalIn } from '../text/refusal.ts';

/** The check that administrators make required. */
export const READY_CHECK = 'sluice/ready';
export const GATE_CHECKS = 'sluice/gate/';
const MAX_REFUSAL_CHARACTERS = 2000;
const MAX_TITLE_CHARACTERS = 140;
const MAX_NEXT = 20;

/**
 * The checks of a proposal: one for all gates and for the rules that keep it from being published, with these annotations, and one for each gate of
 * these types. `url` is the pull request, which has the tables of the gates and rules too.
 */
export function checksOf(
  {
    explanation: { gates, enforcement, next, reasons },
    rules,
    progress,
  }: {
    readonly explanation: Pick<Explanation, 'gates' | 'enforcement' | 'next' | 'reasons'>;
    readonly rules: readonly BlockingRule[];
    readonly progress?: string | undefined;
  },
  gateTypes: readonly string[],
  url: string,
  annotations: readonly Annotation[] = [],
): Check[] {
  const own = gateTypes.flatMap((type) => {
    const gate = gates.find((one) => one.type === type);
    return gate === undefined ? [] : gateCheck(gate);
  });
  const refusal = refusalIn(reasons);
  // Which packages are in flight changes with each delivery.
  const isInFlight = rules.some(({ rule }) => rule === 'InFlight');
  const steps = isInFlight ? next.filter((line) => !line.startsWith('sluice why ')) : next;
  const text = [...(rules.length === 0 ? [] : [rulesTable(rules)]), textOf(gates, steps)].join('\n\n');
  const ready =
    refusal === undefined
      ? { ...withProgress(withRules(readyCheck(gates, enforcement), rules), progress), text }
      : { ...refusedCheck(refusal), text: `${inlineCode(refusal.message, MAX_REFUSAL_CHARACTERS)}\n\n${text}` };
  return [annotations.length === 0 ? ready : { ...ready, annotations }, ...own].map((check) => ({ ...check, url }));
}

/** The kernel refuses every approval then, whatever the gates are. */
function refusedCheck({ title }: LastingRefusal): Check {
  return { name: READY_CHECK, state: 'failure', title: plainLine(title, MAX_TITLE_CHARACTERS) };
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

/** Rules hold it up whether or not the repository enforces its gates. */
function withRules(check: Check, rules: readonly BlockingRule[]): Check {
  // Gates and other rules can open while no user looks.
  const foreign = rules.filter(({ rule }) => rule === 'ForeignFiles');
  if (foreign.length > 0)
    return { ...check, state: 'failure', title: plainLine(rulesLine(foreign), MAX_TITLE_CHARACTERS) };
  if (rules.length === 0 || check.state !== 'success') return check;
  // All others end by themselves, or by an act that the proposal outlives.
  const state = rules.some(({ rule }) => rule === 'RecordLost') ? 'failure' : 'pending';
  return { ...check, state, title: plainLine(rulesLine(rules), MAX_TITLE_CHARACTERS) };
}

/** Who has to merge: not each user whose merge the host permits. */
function withProgress(check: Check, progress: string | undefined): Check {
  if (progress === undefined || check.state !== 'success') return check;
  return { ...check, title: plainLine(`${check.title}; ${progress}`, MAX_TITLE_CHARACTERS) };
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
