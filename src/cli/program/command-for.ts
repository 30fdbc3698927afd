import { DEFAULT_DATA_FOLDER } from '../../app/data-folder.ts';
import { commandLine } from '../output/command-line.ts';
import type { Invocation, PlaceOptions } from './invocation.ts';

/** Makes commands that a person can copy, for the place that a command line means. */
export function commandFor(options: PlaceOptions, { environment }: Invocation): (...words: string[]) => string {
  // Under npm the program is not on the path.
  const underNpm = environment.npm_command !== undefined || environment.npm_lifecycle_event !== undefined;
  const program = underNpm ? ['npx', 'sluice'] : ['sluice'];
  const { data } = options;
  const named = data === undefined || data === DEFAULT_DATA_FOLDER ? [] : ['--data', data];
  return (...words) => commandLine([...program, ...words, ...named]);
}
