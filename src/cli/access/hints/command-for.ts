import { DEFAULT_DATA_FOLDER } from '../../../app/data/data-folder.ts';
import { commandLine } from '../../../foundation/text/command-line.ts';
import type { Invocation, PlaceOptions } from '../../output/invocation.ts';
import type { CompleteCommands } from '../../output/terminal.ts';

const AS_OTHER = / --as(?<group>-group)? (?:'(?<quoted>[^']*)'|(?<plain>[^\s']+))/g;

/** Adopting reads Git and signs, which no server does for its clients. */
const ADOPT_PLACE = 'in a data folder whose key the server trusts (docs/trust.md)';

/** Stands in explanations for any user but the caller. */
const OTHER_USER = 'other-user';

/** First words of commands that work on a namespace of a server or a data folder, and take --data, --kubeconfig, --context and -n. */
export const PLACED_GROUPS: readonly string[] = ['rpkg', 'repo', 'why', 'wave', 'freeze', 'target', 'dora'];
const PLACED = new RegExp(`(?<=(["\`]))sluice ((?:${PLACED_GROUPS.join('|')})(?: [^"\`\\\\\\n]*)?)(?=\\1)`, 'g');

type Target = { readonly [Name in 'data' | 'kubeconfig' | 'context' | 'namespace']?: string | undefined };

/** Makes commands that a person can copy, for the target of a command line. */
export function commandFor(options: PlaceOptions, { terminal }: Invocation): (...words: string[]) => string {
  return (...words) =>
    `${commandLine([...terminal.program, ...words])}${placeText(commandLine(words), options, terminal.defaultNamespace)}`;
}

/**
 * Adds the target of a command line to commands of explanations, which begin with `sluice `, if need be after what has to be done
 * first; other texts stay. `namespace` is that of the explained object. In a data folder a command can act for any user. With `isServer`
 * the text names the user instead: a server authenticates its users, so another user runs the command with their own kubeconfig.
 */
export function placedCommand(
  options: PlaceOptions,
  { terminal }: Invocation,
  isServer = false,
): (text: string, namespace?: string) => string {
  const program = commandLine(terminal.program);
  return (text, namespace) =>
    text.replace(/^((?:.*, then: )?)sluice (.*)$/s, (_all, before: string, words: string) => {
      const meant = { namespace: namespace ?? options.namespace };
      const place = (target: Target) => placeText(words, { ...target, ...meant }, terminal.defaultNamespace);
      if (isServer && words.startsWith('repo adopt '))
        return `${before}${ADOPT_PLACE}: ${program} ${words}${place({})}`;
      const command = `${program} ${isServer ? words.replaceAll(AS_OTHER, '') : words}${place(options)}`;
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

/** Completes the quoted commands of messages for the target of a command line; see `Terminal.copyable`. */
export function placedHints(options: PlaceOptions, { terminal }: Invocation): CompleteCommands {
  return (message, namespace) =>
    message.replaceAll(PLACED, (command, _quote, words: string) => {
      // An adoption is for no server.
      const { data, kubeconfig, context } = words.startsWith('repo adopt') ? { data: options.data } : options;
      const meant = { ...{ data, kubeconfig, context }, namespace: namespace ?? options.namespace };
      return `${command}${placeText(words, meant, terminal.defaultNamespace)}`;
    });
}

/** The options that a command lacks to work on the target that is meant, in the namespace that is meant. */
function placeText(words: string, { data, kubeconfig, context, namespace }: Target, defaultNamespace: string): string {
  const isNamespaced =
    PLACED_GROUPS.includes(words.split(' ', 1)[0] ?? '') && !/ (?:-n|--namespace|-A|--all-namespaces)\b/.test(words);
  const isPlaced = / --(?:data|kubeconfig|context)\b/.test(words);
  const place = [
    ...(isNamespaced && namespace !== undefined && namespace !== defaultNamespace ? ['-n', namespace] : []),
    ...(isPlaced || data === undefined || data === DEFAULT_DATA_FOLDER ? [] : ['--data', data]),
    ...(isPlaced || kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]),
    ...(isPlaced || context === undefined ? [] : ['--context', context]),
  ];
  return place.length === 0 ? '' : ` ${commandLine(place)}`;
}
