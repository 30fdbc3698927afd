import type { Command } from 'commander';
import { examples, type Finish, withHeaders, withOutput } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

const FOLDER = 'folder of a package, or a Kptfile';

/** `sluice kptfile …`: on files only, without a data folder and without Git. */
export function addKptfileCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const kptfile = program.command('kptfile').description('check and edit the Kptfile of a folder, without any server');
  examples(kptfile, 'sluice kptfile lint ./web-shop', 'sluice kptfile gates ./web-shop');

  const lint = kptfile
    .command('lint')
    .description('validate Kptfiles as strictly as kpt does, with line and column')
    .argument('[folders...]', FOLDER)
    .addHelpText('after', '\nExit code 0 without errors, 1 with errors.');
  examples(
    withOutput(lint, ['text', 'json', 'yaml']),
    'sluice kptfile lint ./web-shop',
    'sluice kptfile lint */Kptfile',
    'sluice kptfile lint ./web-shop -o json',
  ).action(async (folders, options) => {
    finish(await (await import('./kptfile-lint.ts')).kptfileLint(folders, options, invocation));
  });

  const gates = kptfile
    .command('gates')
    .description('list the readiness gates of a package and their conditions')
    .argument('[folder]', FOLDER, '.')
    .addHelpText(
      'after',
      `
The conditions are read from the Kptfile; only a repository knows for which content they were set.
Exit code 0 if every gate is True (or there is none), 3 if one is not, 2 if the Kptfile cannot be read.`,
    );
  examples(
    withHeaders(withOutput(gates, ['table', 'json', 'yaml'])),
    'sluice kptfile gates ./web-shop',
    'sluice kptfile gates ./web-shop && deploy.sh',
  ).action(async (folder, options) => {
    finish(await (await import('./kptfile-gates.ts')).kptfileGates(folder, options, invocation));
  });

  const condition = kptfile.command('condition').description('set or remove a condition; no other line changes');
  examples(condition, 'sluice kptfile condition set Tested True ./web-shop');
  const set = condition
    .command('set')
    .description('set a condition')
    .argument('<type>', 'condition type')
    .argument('<status>', 'True, False or Unknown')
    .argument('[folder]', FOLDER, '.')
    .option('--reason <word>', 'one word for programs')
    .option('--message <text>', 'human-readable message');
  examples(set, 'sluice kptfile condition set Tested True ./web-shop --message "ran the suite"').action(
    async (type, status, folder, options) => {
      const { kptfileConditionSet: setCondition } = await import('./kptfile-condition.ts');
      finish(await setCondition(type, status, folder, options, invocation));
    },
  );
  const remove = condition
    .command('rm')
    .description('remove a condition')
    .argument('<type>', 'condition type')
    .argument('[folder]', FOLDER, '.');
  examples(remove, 'sluice kptfile condition rm Tested ./web-shop').action(async (type, folder) => {
    finish(await (await import('./kptfile-condition.ts')).kptfileConditionRemove(type, folder, invocation));
  });
}
