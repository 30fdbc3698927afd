import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandResult } from '../output/invocation.ts';
import { OUTPUT_FORMATS } from '../output/structured.ts';

/** Receives the result of a command. */
export type Finish = (outcome: CommandResult) => void;

export function withData(command: Command): Command {
  return command.option('--data <folder>', 'data folder (default: $SLUICE_DATA, else .sluice)');
}

/** For commands that work on a server as well. The description of `-n` names its default. */
export function withPlace(
  command: Command,
  namespace = 'namespace (default: that of the context, else "default")',
): Command {
  return withData(command)
    .option('--kubeconfig <file>', 'kubeconfig of a server to work on in place of a data folder')
    .option('--context <name>', 'context of the kubeconfig')
    .option('-n, --namespace <name>', namespace)
    .option('-v, --verbose', 'print which server or data folder is used');
}

export function withAllNamespaces(command: Command): Command {
  return command.option('-A, --all-namespaces', 'from all namespaces');
}

/** Text after the help of groups of commands that work on servers. */
export const PLACE_HELP = `
They work on a server or on a data folder, the first of these that is given:
  --kubeconfig FILE       the server of a kubeconfig: one of "sluice up", or any Porch server
  --data, $SLUICE_DATA    a data folder: through its "sluice up" if one runs, else on the folder itself
  $KUBECONFIG             the server of a kubeconfig
  .sluice                 the data folder, as with --data
-v prints which one is used.`;

export function withActor(command: Command): Command {
  return command
    .option('--as <name>', 'user of the request (default: $SLUICE_USER, else the user of the system)')
    .option('--as-group <group...>', 'groups of the user');
}

export function withOutput(command: Command, formats: readonly string[] = OUTPUT_FORMATS): Command {
  return command.addOption(new Option('-o, --output <format>', 'output format').choices(formats).default(formats[0]));
}

export function withHeaders(command: Command): Command {
  return command.option('--no-headers', 'print the table without its header');
}

export function examples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`);
}

export function integer(text: string): number {
  if (!/^-?\d{1,9}$/.test(text)) throw new InvalidArgumentError('expected a whole number.');
  return Number(text);
}

/** A comma-separated list that may also be given several times. */
export function listOf(text: string, before: readonly string[] = []): string[] {
  const words = text.split(',').map((word) => word.trim());
  return [...before, ...words.filter((word) => word !== '')];
}

/** An option that may be given several times. */
export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}
