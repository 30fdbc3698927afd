import { DEFAULT_DATA_FOLDER } from '../../app/data-folder.ts';
import { commandLine } from '../output/command-line.ts';
import { isUnderNpm } from '../output/terminal.ts';
import type { Invocation, PlaceOptions } from './invocation.ts';

/** Makes commands that a person can copy, for the place that a command line means. */
export function commandFor(options: PlaceOptions, { environment }: Invocation): (...words: string[]) => string {
  const program = isUnderNpm(environment) ? ['npx', 'sluice'] : ['sluice'];
  const { data } = options;
  const named = data === undefined || data === DEFAULT_DATA_FOLDER ? [] : ['--data', data];
  return (...words) => commandLine([...program, ...words, ...named]);
}
