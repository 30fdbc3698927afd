import { type Launch, quote } from './shell-text.ts';
import type { Places } from './words.ts';

export function fish(places: Places, { words: launch, isCheckout }: Launch): string {
  const lines = [
    '# Completion of sluice for fish: sluice completion fish > ~/.config/fish/completions/sluice.fish',
    'function __sluice_names',
    `  ${launch.map(quote).join(' ')} __complete $argv[1] (commandline -ct) (commandline -opc)[2..-1] 2>/dev/null </dev/null`,
    'end',
    // An argument may be the word of another command, so that it does not suffice that a word was seen.
    `set -g __sluice_paths ${[...places.keys()]
      .filter((path) => path !== '')
      .map(quote)
      .join(' ')}`,
    'function __sluice_at',
    '  set -l line (commandline -opc)',
    '  if test "$line[1]" = npx',
    '    test "$line[2]" = sluice; or return 1',
    '    set -e line[1]',
    '  end',
    '  # Asked once for each command.',
    '  if test "$line" != "$__sluice_line"',
    '    set -g __sluice_line "$line"',
    "    set -g __sluice_place ''",
    '    for word in $line[2..-1]',
    '      set -l longer (string trim -- "$__sluice_place $word")',
    '      contains -- "$longer" $__sluice_paths; and set -g __sluice_place "$longer"',
    '    end',
    '  end',
    '  test "$__sluice_place" = "$argv"',
    'end',
  ];
  if (isCheckout) lines.push(`complete -c npx -a sluice -n 'test (count (commandline -opc)) -eq 1'`);
  for (const command of isCheckout ? ['sluice', 'npx'] : ['sluice'])
    for (const [path, place] of places) lines.push(...linesOf(command, path, place));
  return `${lines.join('\n')}\n`;
}

function linesOf(
  command: string,
  path: string,
  { words, names, values = [] }: Places extends ReadonlyMap<string, infer Place> ? Place : never,
): string[] {
  const head = `complete -c ${command} -n ${quote(`__sluice_at ${path}`.trim())}`;
  const lines = words.map(({ word, help, short, values: choices, names: looked }) => {
    if (!word.startsWith('-')) return `${head} -f -a ${word} -d ${quote(help)}`;
    const flag = `-l ${word.slice(2)}${short === undefined ? '' : ` -s ${short.slice(1)}`}`;
    const taken = looked === undefined ? (choices ?? []).join(' ') : `(__sluice_names ${looked})`;
    const takes = choices === undefined ? '' : taken === '' ? ' -r' : ` -x -a ${quote(taken)}`;
    return `${head} ${flag}${takes} -d ${quote(help)}`;
  });
  if (values.length > 0) lines.push(`${head} -f -a ${quote(values.join(' '))}`);
  if (names !== undefined) lines.push(`${head} -a ${quote(`(__sluice_names ${names})`)}`);
  return lines;
}
