import { DEFAULT_DATA_FOLDER } from '../../app/data/data-folder.ts';
import { commandLine } from '../../foundation/text/command-line.ts';
import { isUnderNpm } from '../output/terminal.ts';
import type { Invocation, PlaceOptions } from './invocation.ts';

const AS_OTHER = / --as(?:-group)? (?:'[^']*'|[^\s']+)/g;

/** Makes commands that a person can copy, for the place that a command line means. */
export function commandFor(options: PlaceOptions, invocation: Invocation): (...words: string[]) => string {
  const [program, place] = [programOf(invocation), placeWords(options)];
  return (...words) => commandLine([...program, ...words, ...place]);
}

/**
 * Adds the place that a command line means to commands of explanations, which begin with `sluice `, if need be after what has to be done
 * first; other texts stay. In a data folder a command can act for any user. With `isServer` it names none: a server knows its users, and
 * another user runs the command with an own kubeconfig.
 */
export function placedCommand(
  options: PlaceOptions,
  invocation: Invocation,
  isServer = false,
): (text: string) => string {
  const program = commandLine(programOf(invocation));
  const place = placeWords(options);
  const end = place.length === 0 ? '' : ` ${commandLine(place)}`;
  const asCaller = (words: string) => (isServer ? words.replaceAll(AS_OTHER, '') : words);
  return (text) =>
    text.replace(
      /^((?:.*, then: )?)sluice (.*)$/s,
      (_all, before: string, words: string) => `${before}${program} ${asCaller(words)}${end}`,
    );
}

function programOf({ environment }: Invocation): string[] {
  return isUnderNpm(environment) ? ['npx', 'sluice'] : ['sluice'];
}

function placeWords({ data, kubeconfig, context }: PlaceOptions): string[] {
  return [
    ...(data === undefined || data === DEFAULT_DATA_FOLDER ? [] : ['--data', data]),
    ...(kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]),
    ...(context === undefined ? [] : ['--context', context]),
  ];
}
