import { DEFAULT_DATA_FOLDER } from '../../app/data/data-folder.ts';
import { commandLine } from '../../foundation/text/command-line.ts';
import { isUnderNpm } from '../output/terminal.ts';
import type { Invocation, PlaceOptions } from './invocation.ts';

/** Makes commands that a person can copy, for the place that a command line means. */
export function commandFor(options: PlaceOptions, invocation: Invocation): (...words: string[]) => string {
  const [program, place] = [programOf(invocation), placeWords(options)];
  return (...words) => commandLine([...program, ...words, ...place]);
}

/**
 * Adds the place that a command line means to commands of explanations, which begin with `sluice `, if need be after what has to be done
 * first; other texts stay.
 */
export function placedCommand(options: PlaceOptions, invocation: Invocation): (text: string) => string {
  const program = commandLine(programOf(invocation));
  const place = placeWords(options);
  const end = place.length === 0 ? '' : ` ${commandLine(place)}`;
  return (text) =>
    text.replace(/^((?:.*, then: )?)sluice (.*)$/s, (_all, before, words) => `${before}${program} ${words}${end}`);
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
