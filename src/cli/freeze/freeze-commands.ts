import type { Command } from 'commander';
import { examples, type Finish, PLACE_HELP, withActor, withHeaders, withOutput, withPlace } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

const SYSTEM_HELP = 'namespace whose freezes are in force in all (default: the one that the server reports)';

/** `sluice freeze …` */
export function addFreezeCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const freeze = program
    .command('freeze')
    .description('stop all approvals, waves and deliveries of a namespace at once, or of all namespaces')
    .option('--reason <text>', 'why; shown to the users who wait')
    .option('--until <time>', 'when it ends: a duration such as 2h, or a time such as 2026-01-02T15:04:05Z')
    .option('--name <name>', 'name of the Freeze (default: freeze- and the time)')
    .option('-A, --all-namespaces', 'stop those of all namespaces')
    .option('--system-namespace <name>', SYSTEM_HELP)
    .addHelpText(
      'after',
      `
Nothing is approved and nothing is delivered until the freeze ends: by "sluice freeze end", or at the time of --until. Users whom a policy
lists in spec.approval.breakGlass may still publish with "sluice rpkg approve --break-glass --reason"; it is delivered after the freeze.
${PLACE_HELP}`,
    );
  examples(
    withActor(withPlace(freeze)),
    'sluice freeze --reason "the core network is being repaired"',
    'sluice freeze --reason "end of the year" --until 2027-01-04T08:00:00Z --all-namespaces',
    'sluice freeze get',
    'sluice freeze end freeze-20260102-150405',
  ).action(async (options) => {
    finish(await (await import('./freeze-start.ts')).freezeStart(options, invocation));
  });

  const get = freeze
    .command('get')
    .description('list freezes of the namespace and of all namespaces')
    .option('-A, --all-namespaces', 'those of every namespace')
    .option('--system-namespace <name>', SYSTEM_HELP);
  examples(
    withHeaders(withOutput(withPlace(get), ['table', 'json', 'yaml'])),
    'sluice freeze get',
    'sluice freeze get --all-namespaces -o json',
  ).action(async (_options, command) => {
    finish(await (await import('./freeze-get.ts')).freezeGet(command.optsWithGlobals(), invocation));
  });

  const end = freeze
    .command('end')
    .description('end freezes, so that approvals and deliveries continue')
    .argument('<names...>', 'names of freezes')
    .option('-A, --all-namespaces', 'freezes of all namespaces')
    .option('--system-namespace <name>', SYSTEM_HELP);
  examples(
    withActor(withPlace(end)),
    'sluice freeze end freeze-20260102-150405',
    'sluice freeze end year-end --all-namespaces',
  ).action(async (names, _options, command) => {
    finish(await (await import('./freeze-end.ts')).freezeEnd(names, command.optsWithGlobals(), invocation));
  });
}
