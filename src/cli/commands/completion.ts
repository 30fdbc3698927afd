import type { Command } from 'commander';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Invocation, Outcome } from '../program/invocation.ts';

/** The words that may follow each command, by the words before: `rpkg get` to its options and sub-commands. */
type Words = ReadonlyMap<string, readonly Word[]>;

interface Word {
  readonly word: string;
  readonly help: string;
  /** What an option takes: one of these, or anything if there are none; undefined for what takes nothing. */
  readonly values?: readonly string[];
  readonly short?: string;
}

const SCRIPTS: Readonly<Record<string, (words: Words) => string>> = { bash, zsh, fish };

/** `sluice completion bash|zsh|fish`: a script that needs no sluice while it completes. */
export function completion(shell: string, program: Command, { terminal }: Invocation): Outcome {
  const script = SCRIPTS[shell];
  if (script === undefined || !Object.hasOwn(SCRIPTS, shell)) {
    throw new SluiceError(
      'InvalidInput',
      `there is completion for ${Object.keys(SCRIPTS).join(', ')}, not for ${shell}`,
    );
  }
  const words = new Map<string, Word[]>();
  collect(program, '', words);
  terminal.out.write(script(words));
  return 0;
}

function collect(command: Command, path: string, words: Map<string, Word[]>): void {
  const help = command.createHelp();
  const entries: Word[] = help.visibleCommands(command).map((sub) => ({ word: sub.name(), help: sub.description() }));
  for (const option of help.visibleOptions(command)) {
    const word = option.long ?? option.short;
    if (word === undefined) continue;
    const takes = option.required || option.optional;
    entries.push({
      ...{ word, help: option.description },
      ...(takes ? { values: option.argChoices ?? [] } : {}),
      ...(option.short === undefined ? {} : { short: option.short }),
    });
  }
  words.set(path, entries);
  for (const sub of command.commands) {
    for (const name of [sub.name(), ...sub.aliases()]) collect(sub, `${path} ${name}`.trim(), words);
  }
}

function bash(words: Words): string {
  const cases = [...words].map(
    ([path, entries]) => `    ${quote(path)}) words=${quote(entries.map(({ word }) => word).join(' '))} ;;`,
  );
  const values = [...words].flatMap(([path, entries]) =>
    entries.flatMap(({ word, short, values: choices }) => {
      if (choices === undefined) return [];
      const patterns = [word, short ?? word].map((name) => quote(`${path} ${name}`)).join('|');
      return `    ${patterns}) words=${quote(choices.join(' '))} ;;`;
    }),
  );
  const paths = [...words.keys()].map(quote).join(' ');
  return `# Completion of sluice for bash: source <(sluice completion bash)
_sluice() {
  local place="" word words="" current="\${COMP_WORDS[COMP_CWORD]}"
  local -a paths=(${paths})
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    local longer="\${place:+$place }$word" known
    for known in "\${paths[@]}"; do
      if [[ "$known" == "$longer" ]]; then place="$longer"; break; fi
    done
  done
  case "$place" in
${cases.join('\n')}
  esac
  # Options are offered to who begins one; after a command that takes no further one come names and files.
  if [[ "$current" != -* ]]; then
    local -a plain=()
    for word in $words; do [[ "$word" == -* ]] || plain+=("$word"); done
    words="\${plain[*]}"
  fi
  case "$place \${COMP_WORDS[COMP_CWORD-1]}" in
${values.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sluice sluice
`;
}

function zsh(words: Words): string {
  const cases = [...words].map(([path, entries]) => {
    const items = entries.map(({ word, help }) => quote(`${word.replaceAll(':', '\\:')}:${help}`));
    return `    ${quote(path)}) items=(${items.join(' ')}) ;;`;
  });
  return `#compdef sluice
# Completion of sluice for zsh: sluice completion zsh > "\${fpath[1]}/_sluice", or source <(sluice completion zsh)
_sluice() {
  local place="" word longer
  local -a items paths
  paths=(${[...words.keys()].map(quote).join(' ')})
  for word in "\${(@)words[2,CURRENT-1]}"; do
    longer="\${place:+$place }$word"
    if (( \${paths[(Ie)$longer]} )); then place="$longer"; fi
  done
  case "$place" in
${cases.join('\n')}
  esac
  _describe 'sluice' items || _files
}
if [[ "\${funcstack[1]}" == "_sluice" ]]; then _sluice "$@"; else compdef _sluice sluice; fi
`;
}

function fish(words: Words): string {
  const lines = ['# Completion of sluice for fish: sluice completion fish > ~/.config/fish/completions/sluice.fish'];
  for (const [path, entries] of words) {
    const steps = path === '' ? [] : path.split(' ');
    const seen = steps.map((step) => `__fish_seen_subcommand_from ${step}`);
    const deeper = entries.filter(({ word }) => !word.startsWith('-')).map(({ word }) => word);
    if (deeper.length > 0) seen.push(`not __fish_seen_subcommand_from ${deeper.join(' ')}`);
    const condition = seen.length === 0 ? '' : ` -n ${quote(seen.join('; and '))}`;
    for (const { word, help } of entries) {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${word}`;
      lines.push(`complete -c sluice${condition} ${what} -d ${quote(help)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** In single quotes, for all three shells. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}
