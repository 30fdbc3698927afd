import type { Command } from 'commander';
import {
  examples,
  type Finish,
  PLACE_HELP,
  several,
  withActor,
  withAllNamespaces,
  withHeaders,
  withOutput,
  withPlace,
} from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

/** `sluice repo …` */
export function addRepoCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const repo = program
    .command('repo')
    .description('register and look at Git repositories with packages')
    .addHelpText('after', PLACE_HELP);
  examples(repo, 'sluice repo reg /srv/git/blueprints.git', 'sluice repo get');

  const reg = repo
    .command('reg')
    .alias('register')
    .description('register a Git repository')
    .argument(
      '<address>',
      'https://, ssh:// or file:// URL, <user>@<host>:<path>, the path of a bare repository, or sluice:///<name>.git for one that Sluice keeps',
    )
    .option('--name <name>', 'name of the repository (default: the last part of the address)')
    .option('--branch <branch>', 'branch that published packages are on', 'main')
    .option('--create-branch', 'create the branch if it does not exist')
    .option('--directory <folder>', 'folder of the packages in the repository', '/')
    .option(
      '--wait <duration>',
      'how long to wait until its packages can be used, such as 5m; one that fails is not kept',
    )
    .option('--no-wait', 'register it whether or not it can be used');
  examples(
    withActor(withPlace(withSettings(reg))),
    'sluice repo reg /srv/git/blueprints.git',
    'sluice repo reg https://git.example.com/edge.git --name edge --deployment --repo-basic-username ci --repo-basic-password-file token.txt',
    'sluice repo reg git@git.example.com:edge.git --repo-ssh-key-file id_ed25519 --known-hosts-file known_hosts',
  ).action(async (address, options) => {
    finish(await (await import('./repo-reg.ts')).repoReg(address, options, invocation));
  });

  const edit = withSettings(repo.command('edit'))
    .description('change a registered repository: credentials, labels and the like, and read it again')
    .argument('<name>', 'name of the repository')
    .option('--no-deployment', 'clusters do not sync from this repository')
    .addHelpText(
      'after',
      `
Only what is given changes. --label <key>- removes a label. Address, branch and folder cannot change: register the repository under another name.`,
    );
  examples(
    withActor(withPlace(edit)),
    'sluice repo edit edge --repo-basic-username ci --repo-basic-password-file new-token.txt',
    'sluice repo edit edge --gates warn --label tier=test --label old-',
  ).action(async (name, options) => {
    finish(await (await import('./repo-edit.ts')).repoEdit(name, options, invocation));
  });

  const get = repo
    .command('get')
    .description('list registered repositories, and whether they can be read')
    .argument('[names...]', 'only these');
  examples(
    withHeaders(withOutput(withAllNamespaces(withPlace(get)))),
    'sluice repo get',
    'sluice repo get blueprints -o yaml',
  ).action(async (names, options) => {
    finish(await (await import('./repo-get.ts')).repoGet(names, options, invocation));
  });

  const unreg = repo
    .command('unreg')
    .alias('unregister')
    .description('unregister repositories; their content stays as it is')
    .argument('<names...>', 'names of repositories')
    .option('--keep-auth-secret', 'keep the secret with the credentials');
  examples(withActor(withPlace(unreg)), 'sluice repo unreg blueprints').action(async (names, options) => {
    finish(await (await import('./repo-unreg.ts')).repoUnreg(names, options, invocation));
  });

  const sync = repo
    .command('sync')
    .description('read repositories again now')
    .argument('[names...]', 'names of repositories')
    .option('--all', 'all registered repositories');
  examples(withActor(withPlace(sync)), 'sluice repo sync blueprints', 'sluice repo sync --all').action(
    async (names, options) => {
      finish(await (await import('./repo-sync.ts')).repoSync(names, options, invocation));
    },
  );

  const adopt = repo
    .command('adopt')
    .description('sign tags and records that no trusted statement covers, so that they count')
    .argument('<name>', 'name of the repository')
    .option('--yes', 'do it; without it the command only prints what it would do')
    .option('--only <glob>', 'only tags that match, such as "web/*" or "**/v1"')
    .option('--new-id', 'give a copy of another registered repository a new id, and adopt nothing')
    .option('--ledger-namespace <name>', 'namespace of "sluice serve" in the cluster (default: sluice-system)')
    .addHelpText(
      'after',
      `
Look at the list first: what is adopted is delivered like what Sluice published. It becomes one signed statement, and a tag that moves
afterwards counts no longer. Drafts keep their metadata and start without verdicts. docs/trust.md explains it.
It works on a data folder, also while "sluice up" runs, or with --kubeconfig on the trust ledger of "sluice serve" in a cluster. Both read
the result the next time that they read the repository.`,
    );
  examples(
    withOutput(withActor(withPlace(adopt)), ['text', 'json', 'yaml']),
    'sluice repo adopt blueprints',
    'sluice repo adopt blueprints --only "web/*" --yes',
    'sluice repo adopt copy --new-id --yes',
    'sluice repo adopt apps -n team --kubeconfig cluster.kubeconfig',
  ).action(async (name, options) => {
    finish(await (await import('./repo-adopt.ts')).repoAdopt(name, options, invocation));
  });
}

/** Adds the options that can also be changed later. */
function withSettings(command: Command): Command {
  return command
    .option('--description <text>', 'what it is for')
    .option('--deployment', 'clusters sync from this repository')
    .option('--label <key=value>', 'label of the repository; can be given several times', several)
    .option(
      '--gates <mode>',
      'enforce, warn or off: whether closed gates refuse a step, cause a warning, or are ignored',
    )
    .option('--repo-basic-username <name>', 'user name for https')
    .option('--repo-basic-password-file <file>', 'file with the password or token for https; - reads it from stdin')
    .option(
      '--repo-basic-password <text>',
      'the password itself; other users of this machine can see it while the command runs',
    )
    .option('--repo-ssh-key-file <file>', 'private key for ssh, without a passphrase; - reads it from stdin')
    .option('--known-hosts-file <file>', 'known_hosts for ssh: the keys of the host, as ssh-keyscan prints them')
    .option('--ca-file <file>', 'certificates (PEM) of an authority of your own, for https')
    .option('--sync-schedule <cron>', 'when Sluice reads the whole repository again')
    .option(
      '--webhook-secret-file <file>',
      'file with the secret of the webhook at the Git host; - reads it from stdin',
    );
}
