import { messageOf } from '../../foundation/sluice-error.ts';
import type { Access } from '../access/access.ts';
import { printable, printableLines } from '../output/printable.ts';
import type { Invocation, Outcome } from '../program/invocation.ts';
import { isExpected } from '../program/report-error.ts';

/**
 * Does one thing for each name, one after the other, and goes on after a failure; told as porchctl tells it: `<name> proposed`
 * on stdout, `<name> failed (<error>)` on stderr, all errors once more at the end, exit code 1. Which
 * server was asked is told after them.
 */
export async function forEachName(
  names: readonly string[],
  { terminal }: Invocation,
  { server, where }: Pick<Access, 'server' | 'where'>,
  action: (name: string) => Promise<string>,
): Promise<Outcome> {
  const failures: string[] = [];
  for (const name of names) {
    try {
      terminal.line(`${printable(name)} ${await action(name)}`);
    } catch (error) {
      // What is no error of the domain is a defect and ends the command.
      if (!isExpected(error)) throw error;
      const message = printableLines(messageOf(error));
      terminal.note(`${printable(name)} failed (${message})`);
      failures.push(message);
    }
  }
  if (failures.length === 0) return 0;
  terminal.note(`Error: errors:\n  ${failures.join('\n  ')} `);
  if (server !== undefined) terminal.note(`(asked: ${printable(where)})`);
  return 1;
}
