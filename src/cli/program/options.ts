import { type Command, InvalidArgumentError, Option } from 'commander';
import { OUTPUT_FORMATS } from '../output/structured.ts';
import type { Outcome } from './invocation.ts';

/** Where a command hands over what it ended with. */
export type Finish = (outcome: Outcome) => void;

export function withData(command: Command): Command {
  return command.option('--data <folder>', 'data folder (default: $SLUICE_DATA, else .sluice)');
}

export function withActor(command: Command): Command {
  return command
    .option('--as <name>', 'who asks (default: $SLUICE_USER, else the user of the system)')
    .option('--as-group <group...>', 'groups of who asks');
}

export function withOutput(command: Command, formats: readonly string[] = OUTPUT_FORMATS): Command {
  return command.addOption(
    new Option('-o, --output <format>', 'form of the output').choices(formats).default(formats[0]),
  );
}

export function withHeaders(command: Command): Command {
  return command.option('--no-headers', 'leave the header of the table out');
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
