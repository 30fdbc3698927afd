import type { Command } from 'commander';
import { examples, type Finish, PLACE_HELP, withActor, withPlace } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

const NAMESPACE = 'only the objects of this namespace, and the namespace itself (default: all)';

/** `sluice export` and `sluice import`. */
export function addTransferCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const exported = program
    .command('export')
    .description('write all objects that are not packages as YAML, for "sluice import" on another server')
    .argument('[file]', 'where to write them, for the owner only (default: standard output)')
    .option('--include-secrets', 'export Secrets too, with credentials and signing keys; requires a file')
    .option('--force', 'replace an existing file')
    .addHelpText(
      'after',
      `
What servers set (uid, times, status) is left out, and so is what they or controllers create: events, leases, default roles, tokens.
Of a cluster, only objects in namespaces that have objects of Sluice.
Packages are in their Git repositories, and stay there. "sluice backup" copies a whole data folder in place of moving it.
${PLACE_HELP}`,
    );
  examples(
    withActor(withPlace(exported, NAMESPACE)),
    'sluice export objects.yaml --include-secrets',
    'sluice export --kubeconfig cluster.kubeconfig -n team > team.yaml',
  ).action(async (file, options) => {
    finish(await (await import('./export.ts')).exportObjects(file, options, invocation));
  });

  const imported = program
    .command('import')
    .description('create the objects of files that "sluice export" wrote')
    .argument('<file...>', 'YAML or JSON')
    .option('--dry-run', 'print what would change, and change nothing')
    .option('--force', 'overwrite existing objects that differ')
    .addHelpText(
      'after',
      `
An object that exists and differs is a conflict: it stays as it is, unless --force is given. Importing the same file again changes
nothing. Exit code 1 if there are conflicts or an object cannot be created, 2 if a file is invalid.
${PLACE_HELP}`,
    );
  examples(
    withActor(withPlace(imported, NAMESPACE)),
    'sluice import objects.yaml --dry-run',
    'sluice import objects.yaml --kubeconfig cluster.kubeconfig',
  ).action(async (files, options) => {
    finish(await (await import('./import.ts')).importObjects(files, options, invocation));
  });
}
