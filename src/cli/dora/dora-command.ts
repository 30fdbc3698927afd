import { type Command, Option } from 'commander';
import { examples, type Finish, withAllNamespaces, withHeaders, withOutput, withPlace } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

/** `sluice dora` */
export function addDoraCommand(program: Command, invocation: Invocation, finish: Finish): void {
  const dora = program
    .command('dora')
    .description('lead time, deployment frequency, change failure rate and time to restore of delivery targets')
    .option('--target <name>', 'only of this target (default: all targets of the namespace)')
    .option('--package <path>', 'only of this package, with or without its repository')
    .addOption(
      new Option('--by <unit>', 'print a row for each of these').choices(['target', 'package']).default('target'),
    )
    .option('--since <duration>', 'changes that were delivered within this time, such as 12h or 30d', '30d')
    .addHelpText(
      'after',
      `
The last row is all of them together. The figures are computed from the last 500 changes of each target, in its status;
docs/dora.md has the definitions. "no data" is never 0.`,
    );
  examples(
    withOutput(withHeaders(withAllNamespaces(withPlace(dora))), ['table', 'json', 'yaml']),
    'sluice dora',
    'sluice dora --target edge-east --by package --since 7d',
    'sluice dora -A -o json',
  ).action(async (options) => {
    finish(await (await import('./dora.ts')).dora(options, invocation));
  });
}
