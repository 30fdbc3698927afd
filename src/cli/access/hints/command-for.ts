import { DEFAULT_DATA_FOLDER } from '../../../app/data/data-folder.ts';
import { commandLine } from '../../../foundation/text/command-line.ts';
import type { Invocation, PlaceOptions } from '../../output/invocation.ts';

const AS_OTHER = / --as(?<group>-group)? (?:'(?<quoted>[^']*)'|(?<plain>[^\s']+))/g;

/** Adopting reads Git and signs, which no server does for its clients. */
const ADOPT_PLACE = 'in a data folder whose key the server trusts (docs/trust.md)';

/** Stands in explanations for any user but the caller. */
const OTHER_USER = 'other-user';

/** Makes commands that a person can copy, for the place that a command line means. */
export function commandFor(options: PlaceOptions, invocation: Invocation): (...words: string[]) => string {
  const [program, place] = [invocation.terminal.program, placeWords(options)];
  return (...words) => commandLine([...program, ...words, ...place]);
}

/**
 * Adds the place that a command line means to commands of explanations, which begin with `sluice `, if need be after what has to be done
 * first; other texts stay. In a data folder a command can act for any user. With `isServer` the text names the user instead: a server
 * authenticates its users, so another user runs the command with their own kubeconfig.
 */
export function placedCommand(
  options: PlaceOptions,
  invocation: Invocation,
  isServer = false,
): (text: string) => string {
  const program = commandLine(invocation.terminal.program);
  const place = placeWords(options);
  const end = place.length === 0 ? '' : ` ${commandLine(place)}`;
  return (text) =>
    text.replace(/^((?:.*, then: )?)sluice (.*)$/s, (_all, before: string, words: string) => {
      if (isServer && words.startsWith('repo adopt ')) return `${before}${ADOPT_PLACE}: ${program} ${words}`;
      const command = `${program} ${isServer ? words.replaceAll(AS_OTHER, '') : words}${end}`;
      return `${before}${isServer ? actorText(words) : ''}${command}`;
    });
}

/** The users for whom a command has to run; empty for the caller. */
function actorText(words: string): string {
  const users = [...words.matchAll(AS_OTHER)].map(({ groups = {} }) => {
    const name = groups.quoted ?? groups.plain ?? '';
    if (groups.group !== undefined) return `a member of group:${name}`;
    return name === OTHER_USER ? 'another user' : name;
  });
  return users.length === 0 ? '' : `as ${users.join(', ')}: `;
}

/** A message whose quoted commands work on the place that a command line means. */
export function placedHints(message: string, options: PlaceOptions): string {
  const place = placeWords(options);
  if (place.length === 0) return message;
  const kubeconfigOnly = options.data === undefined;
  return message.replaceAll(/"(sluice (?:rpkg|repo|why) [^"]*)"/g, (quoted, command: string) =>
    / --(?:data|kubeconfig)\b/.test(command) || (kubeconfigOnly && command.startsWith('sluice repo adopt'))
      ? quoted
      : `"${command} ${commandLine(place)}"`,
  );
}

function placeWords({ data, kubeconfig, context }: PlaceOptions): string[] {
  return [
    ...(data === undefined || data === DEFAULT_DATA_FOLDER ? [] : ['--data', data]),
    ...(kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]),
    ...(context === undefined ? [] : ['--context', context]),
  ];
}
