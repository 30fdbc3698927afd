import { type Command, Option } from 'commander';
import { examples, type Finish } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

/** `sluice check`: for pipelines of repositories, with or without a server that watches them. */
export function addCheckCommand(program: Command, invocation: Invocation, finish: Finish): void {
  const check = program
    .command('check')
    .description('check the packages that a branch changes, without any server: for pull requests')
    .argument('[folder]', 'folder of the working tree', '.')
    .option('--base <revision>', 'what the branch is merged into', 'origin/main')
    .option('--merge', 'check what the base becomes by the merge, and not the files that are checked out')
    .option('--all', 'check every package below the folder, which need not be in Git')
    .option('--require-gates', 'a closed gate is an error')
    .addOption(
      new Option('-o, --output <format>', 'output format; github: annotations of a workflow')
        .choices(['text', 'json', 'yaml', 'github'])
        .default('text'),
    )
    .addHelpText(
      'after',
      `
Checks the files as they are checked out, committed or not, or with --merge as they will be after the merge: Kptfiles as strictly as kpt does, YAML, whether the result of the pipeline is committed, and gates.
Only built-in functions run, so that it can be used on branches of strangers. Exit code 0 without an error, 1 if a package has one or the merge conflicts, 2 for wrong usage.`,
    );
  examples(
    check,
    'sluice check',
    'sluice check --base HEAD^1 -o github',
    'sluice check --base origin/main --merge',
    'sluice check --all packages/',
  ).action(async (folder, options) => {
    finish(await (await import('./check.ts')).check(folder, options, invocation));
  });
}
