import type { ExecutedCommand } from '../../../src/package/model/record/executed-commands.ts';
import type { Explanation } from '../../../src/package/model/revision/explanation.ts';
import { gateTable } from '../text/describe-proposal.ts';
import { inlineCode } from '../text/quote.ts';
import { parseCommand, USAGE } from './parse-command.ts';

const MAX_REASONS = 20;
const MAX_SHARED = 5;
const MAX_NAMED = 5;
const MAX_ROWS = 30;

/** The reply to the last commands, in Markdown. `explanation` is shown if one of them requests it. */
export function describeCommands(entries: readonly ExecutedCommand[], explanation: Explanation | undefined): string {
  const rows = [...entries].reverse().map(({ command, user, subject, outcome, message }) => {
    const by = `${inlineCode(user)} as ${inlineCode(subject)}`;
    return `| ${inlineCode(command)} | ${by} | ${outcome === 'done' ? 'Done' : '**Refused**'}: ${inlineCode(message, 600)} |`;
  });
  const table = ['| Command | By | Result |', '|---|---|---|', ...rows].join('\n');
  const isAsked = entries.some(({ command }) => /^ *\/sluice\s+why\b/i.test(command));
  return [
    'The last commands, the newest first:',
    table,
    ...(isAsked && explanation !== undefined ? [describeWhy(explanation)] : []),
  ].join('\n\n');
}

/** An executed command, and the package revision that it was executed for; undefined for the pull request itself. */
export interface NamedCommand {
  readonly name: string | undefined;
  readonly executed: ExecutedCommand;
}

/** The reply to the last commands in a pull request that several package revisions share, in Markdown. */
export function describeSharedCommands(all: readonly NamedCommand[]): string {
  const byComment = Map.groupBy(all, ({ executed }) => executed.id);
  const sorted = [...byComment].sort(([a], [b]) => Number(BigInt(a) - BigInt(b))).slice(-MAX_SHARED);
  const entries = sorted.flatMap(([, of]): ExecutedCommand[] =>
    [...Map.groupBy(of, ({ executed: { outcome, message } }) => `${outcome} ${message}`).values()].flatMap((same) => {
      const [first] = same;
      if (first === undefined) return [];
      const names = same.flatMap(({ name }) => name ?? []).sort();
      const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
      if (names.length === 0 || isAboutNone(first)) return [first.executed];
      const message = `${names.slice(0, MAX_NAMED).join(', ')}${more}: ${first.executed.message}`;
      return [{ ...first.executed, message }];
    }),
  );
  const isAsked = entries.some(({ command }) => /^ *\/sluice\s+why\b/i.test(command));
  return [
    describeCommands(entries.slice(-MAX_ROWS), undefined),
    ...(isAsked ? ['The text of this pull request has the gates of each package, and who can open them.'] : []),
  ].join('\n\n');
}

/** Whether it cannot be read as a command for a revision: one of them answers for all, which is no news of that one. */
function isAboutNone({ name, executed: { command, message } }: NamedCommand): boolean {
  const parsed = parseCommand(command, name === undefined ? [] : [name]);
  return parsed !== undefined && 'problem' in parsed && parsed.target === undefined && parsed.problem === message;
}

/** What users without a mapping get, once for each pull request. */
export function describeUnmapped(policy: string): string {
  return `Commands of users whom policy ${inlineCode(policy)} does not list in ${inlineCode('spec.review.approvers')} are not executed. An administrator of the policy can add an entry with the name here, ${inlineCode('user')}, and the user of Sluice, ${inlineCode('subject')}. Listed users may write, in the first line of a comment: ${USAGE.map((line) => inlineCode(line)).join(', ')}.`;
}

function describeWhy({ name, lifecycle, reasons, gates, next }: Explanation): string {
  const listed = reasons.slice(0, MAX_REASONS).map(({ message }) => `- ${inlineCode(message, 600)}`);
  const steps = next.slice(0, MAX_REASONS).map((line) => `- ${inlineCode(line, 600)}`);
  return [
    `${inlineCode(name)} is ${inlineCode(lifecycle)}.`,
    ...(listed.length === 0 ? [] : [listed.join('\n')]),
    gateTable(gates),
    ...(steps.length === 0 ? [] : [`Next:\n\n${steps.join('\n')}`]),
  ].join('\n\n');
}
