import type { Command } from 'commander';
import { examples, type Finish, listOf, withActor, withData, withOutput } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

/** `sluice migrate …`. */
export function addMigrateCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const migrate = program.command('migrate').description('move to Sluice from another system');
  const porch = migrate
    .command('porch')
    .description(
      'register the repositories of a Porch in Sluice, and check that both show every package revision alike',
    )
    .option('--kubeconfig <file>', 'kubeconfig of the cluster with Porch (default: $KUBECONFIG)')
    .option('--context <name>', 'context of that kubeconfig')
    .option('-n, --namespace <name>', 'only the repositories of this namespace (default: all)')
    .option('--only <repositories>', 'only these repositories, with commas', listOf)
    .option('--to-kubeconfig <file>', 'kubeconfig of the Sluice server to migrate to, in place of a data folder')
    .option('--to-context <name>', 'context of --to-kubeconfig')
    .option('--yes', 'register the repositories and copy labels, annotations and owners of package revisions')
    .option('--include-secrets', 'copy the Secrets with the credentials of the repositories too')
    .option('--same-cluster', 'Sluice will run in the cluster of Porch: owners of package revisions keep their uids')
    .option('--no-contents', 'do not compare the files of the package revisions')
    .option('--wait <duration>', 'how long the server may take to read each new repository (default: 60s)')
    .option('-v, --verbose', 'print which server or data folder is used')
    .addHelpText(
      'after',
      `
Without --yes nothing is changed: the command prints what it would register, and compares the repositories that Sluice already has. It never
writes to the cluster with Porch. Run it again at any time: what is there stays, and what is missing is added.
Exit code 1 if a package revision differs, or a repository cannot be migrated.`,
    );
  examples(
    withOutput(withActor(withData(porch)), ['table', 'yaml', 'json']),
    'sluice migrate porch --kubeconfig porch.kubeconfig',
    'sluice migrate porch --kubeconfig porch.kubeconfig --yes --include-secrets --data /srv/sluice',
    'sluice migrate porch --kubeconfig porch.kubeconfig --to-kubeconfig sluice.kubeconfig -n team --yes',
  ).action(async (options) => {
    finish(await (await import('./migrate-porch.ts')).migratePorch(options, invocation));
  });
}
