import { type Launch, quote } from './shell-text.ts';
import type { Places } from './words.ts';

export function fish(places: Places, { words: launch, isCheckout }: Launch): string {
  const lines = [
    '# Completion of sluice for fish: sluice completion fish > ~/.config/fish/completions/sluice.fish',
    'function __sluice_names',
    `  ${launch.map(quote).join(' ')} __complete $argv[1] (commandline -ct) (commandline -opc)[2..-1] 2>/dev/null </dev/null`,
    'end',
  ];
  for (const command of isCheckout ? ['sluice', 'npx'] : ['sluice']) {
    const outer = command === 'npx' ? ['__fish_seen_subcommand_from sluice'] : [];
    if (command === 'npx') lines.push("complete -c npx -a sluice -n 'not __fish_seen_subcommand_from sluice'");
    for (const [path, place] of places) lines.push(...linesOf(command, path, place, outer));
  }
  return `${lines.join('\n')}\n`;
}

function linesOf(
  command: string,
  path: string,
  { words, names, values = [] }: Places extends ReadonlyMap<string, infer Place> ? Place : never,
  outer: readonly string[],
): string[] {
  const steps = path === '' ? [] : path.split(' ');
  const seen = [...outer, ...steps.map((step) => `__fish_seen_subcommand_from ${step}`)];
  const deeper = words.filter(({ word }) => !word.startsWith('-')).map(({ word }) => word);
  if (deeper.length > 0) seen.push(`not __fish_seen_subcommand_from ${deeper.join(' ')}`);
  const condition = seen.length === 0 ? '' : ` -n ${quote(seen.join('; and '))}`;
  const head = `complete -c ${command}${condition}`;
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
