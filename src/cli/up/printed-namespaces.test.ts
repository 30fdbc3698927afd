import { expect, test } from 'vitest';
import { placedHints } from '../access/hints/command-for.ts';
import { Terminal } from '../output/terminal.ts';
import { textSink, timelineSink } from './log-sinks.ts';
import { printWaitReport } from './wait-report.ts';

/** A terminal of a command line with `-n team` and a context, and what is printed on it. */
function terminalOfTeam() {
  const lines: string[] = [];
  const sink = { write: (text: string) => lines.push(text) };
  const terminal = new Terminal(sink, sink, { NO_COLOR: '1' }, 'sluice');
  terminal.completeCommands = placedHints({ namespace: 'team', context: 'prod' }, { terminal, environment: {} });
  return { terminal, lines };
}

const message = 'it waits longer; "sluice repo sync x" reads it';
const ofDefault = 'it waits longer; "sluice repo sync x --context prod" reads it';
const ofTeam = 'it waits longer; "sluice repo sync x -n team --context prod" reads it';

test('a command in the log is for the namespace of the entry, whatever that of the command line is', () => {
  const { terminal, lines } = terminalOfTeam();
  const entry = { at: 0, level: 'warn', event: 'Failed', subject: 'x', message } as const;
  for (const log of [textSink(terminal), timelineSink(terminal, 0)])
    for (const namespace of ['default', 'team']) log({ ...entry, fields: { namespace } });
  expect(lines.map((line) => line.slice(line.indexOf('it waits')))).toEqual(
    [ofDefault, ofTeam, ofDefault, ofTeam].map((text) => `${text}\n`),
  );
});

test('a command in the report of what waits is for the namespace of the object', () => {
  const { terminal, lines } = terminalOfTeam();
  const objects = ['default', 'team'].map((namespace) => ({ namespace, name: 'x', message }));
  const works = ['default', 'team'].map((namespace) => ({
    what: `repository ${namespace}/x`,
    message,
    due: '',
    reason: message,
  }));
  const none = { revisions: [], more: 0 };
  printWaitReport(terminal, { ...none, repositories: objects, targets: objects, failing: works, timers: works });
  const found = lines.filter((line) => line.includes('it waits'));
  expect(found).toHaveLength(8);
  for (const [at, line] of found.entries()) expect(line).toContain(at % 2 === 0 ? ofDefault : ofTeam);
});
