import { spacedWords } from '../../foundation/text/spaced-words.ts';
import { age } from '../../foundation/time/age.ts';
import { PUSH_ACTOR } from '../../package/model/gates/verdict.ts';
import { claimedName } from '../../package/model/revision/attribution.ts';
import type { DeliveryExplanation, Explanation, GateExplanation } from '../../package/model/revision/explanation.ts';
import { printable } from '../output/printable.ts';
import type { Style, Terminal } from '../output/terminal.ts';

const LIFECYCLE_STYLES: Readonly<Record<string, Style>> = {
  Draft: 'yellow',
  Proposed: 'cyan',
  Published: 'green',
  DeletionProposed: 'red',
};

/** The reason of a Freeze; it comes first, so that it is not overlooked. */
const FROZEN = 'Frozen';

/** Prints a human-readable explanation. `now` in milliseconds since the epoch. */
export function printExplanation(terminal: Terminal, explanation: Explanation, now: number): void {
  const { name, lifecycle, gates, reasons, delivery, next } = explanation;
  const number = explanation.revision > 0 ? ` v${explanation.revision}${explanation.latest ? ' (latest)' : ''}` : '';
  const state = terminal.style(LIFECYCLE_STYLES[lifecycle] ?? 'white', `${lifecycle}${number}`);
  for (const reason of reasons)
    if (reason.reason === FROZEN) terminal.line(terminal.style('red', `FROZEN: ${printable(reason.message)}`));
  terminal.line(`${terminal.style('bold', printable(name))}  ${state}`);
  const { last } = explanation;
  terminal.line(
    `  package ${printable(explanation.package)} in repository ${printable(explanation.repository)}, workspace ${printable(explanation.workspace)}`,
  );
  const commit = explanation.commit.slice(0, 12);
  if (last === undefined) terminal.line(`  the main branch at ${commit}`);
  else
    terminal.line(
      `  commit ${commit}, last ${printable(last.action)} ${printable(byText(last.by))} ${since(last.at, now)}`,
    );
  if (explanation.enforcement !== 'enforce') {
    terminal.line(
      `  gates are not enforced in this repository (sluice.dev/gates: ${printable(explanation.enforcement)})`,
    );
  }
  terminal.line();
  if (gates.length === 0) terminal.line('It has no gates.');
  else {
    const open = gates.filter((gate) => gate.open).length;
    terminal.line(`Gates: ${open} of ${gates.length} open`);
    for (const gate of gates) printGate(terminal, gate, now);
  }
  printUsers(terminal, explanation);
  if (reasons.length > 0) {
    terminal.line();
    terminal.line('Why it is here:');
    for (const reason of reasons) printReason(terminal, reason, now);
  }
  if (explanation.resolvers.length > 0) {
    terminal.line();
    terminal.line('Resolvers, in this order:');
    for (const { name, claims, waitsFor } of explanation.resolvers) {
      const wait = waitsFor.length === 0 ? '' : `, after ${waitsFor.join(', ')}`;
      terminal.line(`  ${terminal.style('bold', printable(name))}: ${printable(`${claims.join(', ')}${wait}`)}`);
    }
  }
  if (delivery.length > 0) {
    terminal.line();
    terminal.line('Delivery:');
    for (const target of delivery) printDelivery(terminal, target, now);
  }
  printCommands(terminal, 'Next:', next);
  printCommands(terminal, next.length > 0 ? 'Alternatives:' : 'Next:', explanation.alternatives ?? []);
}

/** A name that anyone can write into a commit is shown as a claim. */
function byText(by: string): string {
  const name = claimedName(by);
  return name === undefined ? `by ${by}` : `by an unknown user (its commit names ${name}, unproven)`;
}

function printCommands(terminal: Terminal, title: string, commands: readonly string[]): void {
  if (commands.length === 0) return;
  terminal.line();
  terminal.line(title);
  for (const command of commands) terminal.line(`  ${terminal.style('bold', printable(command))}`);
}

function printReason(
  terminal: Terminal,
  { message, since: from, until, resolvedBy }: Explanation['reasons'][number],
  now: number,
): void {
  terminal.line(`  - ${printable(message)}`);
  const detail = (label: string, text: string) => terminal.line(`      ${label.padEnd(11)} ${printable(text)}`);
  if (from !== undefined) detail('since', `${from} (${since(from, now)})`);
  if (until !== undefined) detail('until', until);
  if (resolvedBy !== undefined) detail('resolved by', resolvedBy);
}

function printUsers(terminal: Terminal, { contributors, approvals }: Explanation): void {
  // Without a limit any user may approve it.
  const limited = approvals?.needed === 1 && approvals.barred.length === 0 ? undefined : approvals;
  if (contributors.length === 0 && limited === undefined) return;
  terminal.line();
  if (contributors.length > 0) {
    const names = contributors.map(contributorText).join(', ');
    terminal.line(`Changed by: ${printable(names)}`);
  }
  if (limited === undefined) return;
  const { given, needed, barred } = limited;
  const by = given.map(({ subject, at }) => `${subject} at ${at}`).join(', ');
  terminal.line(`Approvals: ${given.length} of ${needed}${by === '' ? '' : printable(`, by ${by}`)}`);
  for (const { name, because } of barred) terminal.line(`  ${printable(name)} ${because} and must not approve it`);
}

function contributorText({ name, face }: Explanation['contributors'][number]): string {
  return name === PUSH_ACTOR ? 'an unknown user (git push)' : `${name} (${face})`;
}

function printGate(terminal: Terminal, gate: GateExplanation, now: number): void {
  const word = terminal.style(gate.open ? 'green' : 'yellow', gate.open ? 'open  ' : 'closed');
  const status = gate.condition?.status ?? 'not set';
  // The condition of an expired verdict is as before.
  const isOfCondition = gate.since !== undefined && gate.state !== 'Expired';
  const sinceText = !isOfCondition ? '' : `, since ${printable(gate.since)} (${age(gate.since, now)})`;
  terminal.line(`  ${word}  ${terminal.style('bold', printable(gate.type))}`);
  const detail = (label: string, text: string) => terminal.line(`          ${label.padEnd(11)} ${printable(text)}`);
  const message = reasonText(gate.condition?.reason, gate.condition?.message);
  detail('condition', `${status}${sinceText}${message === '' ? '' : `: ${message}`}`);
  if (!gate.open) detail('why closed', gate.explanation);
  detail('required by', `${gate.requiredBy.join(', ')}${gate.approveOnly ? ', at approval only' : ''}`);
  if (gate.boundTo.length > 0) {
    const stale = gate.changed.length === 0 ? 'unchanged since' : `changed since: ${gate.changed.join(', ')}`;
    detail('issued for', `${gate.boundTo.join(', ')} (${stale})`);
  }
  for (const { source, id, value, time } of gate.external ?? []) {
    // A fact without a time, such as that nothing was found, has the first one.
    const asOf = Date.parse(time) === 0 ? '' : `, as of ${time}`;
    detail('based on', `${id} at ${source}: ${value}${asOf}`);
  }
  if (gate.givenBy !== undefined) detail('issued by', `${gate.givenBy} at ${gate.givenAt}`);
  if (gate.expires !== undefined) detail('valid until', gate.expires);
  detail('settled by', gate.settledBy);
  if (gate.deadline !== undefined) {
    detail('deadline', `${gate.deadline.due}${gate.deadline.overdue ? ', overdue' : ''}`);
  }
  if (gate.next !== undefined) detail('next', gate.next);
}

function printDelivery(terminal: Terminal, delivery: DeliveryExplanation, now: number): void {
  const { target, state, commit, at, message, deployment, notes = [] } = delivery;
  const style = state === 'Delivered' ? 'green' : state === 'Unknown' ? 'white' : 'yellow';
  const id = commit === undefined ? '' : ` commit ${commit.slice(0, 12)}`;
  const when = at === undefined ? '' : ` ${since(at, now)}`;
  terminal.line(
    `  ${terminal.style('bold', printable(target))}: ${terminal.style(style, printable(spacedWords(state)))}${id}${when}: ${printable(message)}`,
  );
  if (deployment !== undefined) {
    printDeployment(terminal, 'synced', deployment.synced, now);
    printDeployment(terminal, 'healthy', deployment.healthy, now);
  }
  for (const note of notes) terminal.line(`      ${'note'.padEnd(8)} ${printable(note)}`);
}

function printDeployment(
  terminal: Terminal,
  label: string,
  { status, reason, message, since: time }: NonNullable<DeliveryExplanation['deployment']>['synced'],
  now: number,
): void {
  const style = status === 'True' ? 'green' : status === 'False' ? 'red' : 'yellow';
  const text = reasonText(reason, message);
  terminal.line(
    `      ${label.padEnd(8)} ${terminal.style(style, printable(status))}, since ${age(time, now)}: ${printable(text)}`,
  );
}

/** A code is for programs: the message follows it, else its words replace it. */
function reasonText(reason = '', message = ''): string {
  if (reason === '') return message;
  return message === '' ? spacedWords(reason) : `${reason}: ${message}`;
}

function since(time: string, now: number): string {
  return `${age(time, now)} ago`;
}
