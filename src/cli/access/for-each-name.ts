import { messageOf } from '../../foundation/sluice-error.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable, printableLines } from '../output/printable.ts';
import { isExpected } from '../output/report-error.ts';
import type { Access } from './access.ts';
import { commandFor } from './hints/command-for.ts';
import { nextCommands } from './hints/next-commands.ts';

/**
 * Runs one operation for each name, one after the other, and continues after a failure: `<name> proposed` on stdout,
 * `<name> failed (<error>)` on stderr, exit code 1. Errors are not repeated at the end, as porchctl does. If an operation on
 * a server failed, the last line on stderr names that server. With `options`, lines with the next commands follow a refusal that
 * names none.
 */
export async function forEachName(
  names: readonly string[],
  invocation: Invocation,
  { server, where }: Pick<Access, 'server' | 'where'>,
  action: (name: string) => Promise<string>,
  options?: PlaceOptions,
): Promise<CommandResult> {
  const { terminal } = invocation;
  let failures = 0;
  for (const name of names) {
    try {
      terminal.line(`${printable(name)} ${await action(name)}`);
    } catch (error) {
      // Any other error is a defect and ends the command.
      if (!isExpected(error)) throw error;
      terminal.note(`${printable(name)} failed (${printableLines(messageOf(error))})`);
      if (options !== undefined)
        for (const words of nextCommands(messageOf(error), name))
          terminal.note(`Next: ${commandFor(options, invocation)(...words)}`);
      failures += 1;
    }
  }
  if (failures === 0) return 0;
  if (server !== undefined) terminal.note(`(server: ${printable(where)})`);
  return 1;
}
