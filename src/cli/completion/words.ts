import type { Command } from 'commander';
import { builtIns } from '../../function/built-in/index.ts';

/** Names that are looked up while a line is completed. */
export type NameKind =
  | 'revisions'
  | 'repositories'
  | 'targets'
  | 'plans'
  | 'waves'
  | 'freezes'
  | 'conditions'
  | 'explained';

export interface Word {
  readonly word: string;
  readonly help: string;
  /** Values of the option: one of these, or anything if the list is empty; undefined for a flag. */
  readonly values?: readonly string[];
  /** Kind of the option's values, if they are looked up. */
  readonly names?: NameKind;
  readonly short?: string;
}

/** The words that may follow a command. */
export interface CursorPosition {
  readonly words: readonly Word[];
  /** Kind of the arguments, if they are looked up. */
  readonly names?: NameKind;
  /** Arguments that are known. */
  readonly values?: readonly string[];
}

/** By the words before: `rpkg get` to what may follow. */
export type Places = ReadonlyMap<string, CursorPosition>;

const REVISIONS: ReadonlySet<string> = new Set([
  ...['get', 'pull', 'history', 'tree', 'diff', 'preview', 'clone', 'copy', 'revert', 'upgrade', 'push'].map(
    (verb) => `rpkg ${verb}`,
  ),
  ...['propose', 'approve', 'reject', 'propose-delete', 'del'].map((verb) => `rpkg ${verb}`),
]);
/** Their arguments are a revision, a type of its conditions, and a status. */
const CONDITIONS: ReadonlySet<string> = new Set(['rpkg condition set', 'rpkg condition rm']);
const REPOSITORIES: ReadonlySet<string> = new Set(
  ['get', 'sync', 'unreg', 'edit', 'adopt'].map((verb) => `repo ${verb}`),
);
const TARGETS: ReadonlySet<string> = new Set(['get', 'watch', 'resume'].map((verb) => `target ${verb}`));
const PLANS: ReadonlySet<string> = new Set(
  ['get', 'watch', 'pause', 'resume', 'abort', 'rollback', 'promote', 'approve'].map((verb) => `wave ${verb}`),
);
/** Kinds of the values of options, also of those that only one command has. */
const OPTION_NAMES: ReadonlyMap<string, NameKind> = new Map([
  ['--repository', 'repositories'],
  ['--target', 'targets'],
  ['wave promote --past', 'waves'],
  ['wave approve --wave', 'waves'],
]);

/** Returns the words that may follow each command of a program. */
export function placesOf(program: Command): Places {
  const places = new Map<string, CursorPosition>();
  collect(program, '', '', places);
  return places;
}

/** `path` is as it is written, with aliases; `name` with the names of the commands. */
function collect(command: Command, path: string, name: string, places: Map<string, CursorPosition>): void {
  const help = command.createHelp();
  const words: Word[] = help.visibleCommands(command).map((sub) => ({ word: sub.name(), help: sub.description() }));
  for (const option of help.visibleOptions(command)) {
    const word = option.long ?? option.short;
    if (word === undefined) continue;
    const takes = option.required || option.optional;
    const looked = OPTION_NAMES.get(word) ?? OPTION_NAMES.get(`${name} ${word}`);
    const choices = word === '--image' ? functionNames() : (option.argChoices ?? []);
    words.push({
      ...{ word, help: option.description },
      ...(takes ? { values: choices } : {}),
      ...(looked === undefined ? {} : { names: looked }),
      ...(option.short === undefined ? {} : { short: option.short }),
    });
  }
  const names = namesOf(name);
  const values = name === 'fn doc' ? functionNames() : (command.registeredArguments[0]?.argChoices ?? []);
  places.set(path, {
    words,
    ...(names === undefined ? {} : { names }),
    ...(values.length === 0 ? {} : { values }),
  });
  for (const sub of command.commands) {
    for (const word of [sub.name(), ...sub.aliases()])
      collect(sub, `${path} ${word}`.trim(), `${name} ${sub.name()}`.trim(), places);
  }
}

function functionNames(): string[] {
  return builtIns.map((each) => each.name).sort();
}

function namesOf(command: string): NameKind | undefined {
  if (REVISIONS.has(command)) return 'revisions';
  if (command === 'why') return 'explained';
  if (CONDITIONS.has(command)) return 'conditions';
  if (TARGETS.has(command)) return 'targets';
  if (PLANS.has(command)) return 'plans';
  if (command === 'freeze end') return 'freezes';
  return REPOSITORIES.has(command) ? 'repositories' : undefined;
}
