import { Argument, type Command, Option } from 'commander';
import { SluiceError } from '../foundation/sluice-error.ts';
import { examples, type Finish, several, withActor, withData, withOutput } from './access/options.ts';
import type { Invocation } from './output/invocation.ts';
import { addTransferCommands } from './transfer/transfer-commands.ts';

/** `sluice up`, `demo`, `backup`, `restore`, `verify`, `token`, `version` and `completion`. */
export function addServiceCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const up = program
    .command('up')
    .description('run all controllers on the registered repositories')
    .option('--config <path>', 'file or folder with manifests to register first; can be given several times', several)
    .option(
      '--listen <host:port>',
      'where to serve the Kubernetes API (default: loopback, the port of the previous run, else a free one)',
    )
    .option('--no-listen', 'do not serve the Kubernetes API')
    .option(
      '--webhook-listen <host:port>',
      'serve webhooks of Git hosts here too, and nothing else, without TLS: for an ingress in front of it',
    )
    .option('--until-idle', 'end when nothing is queued, running or retrying; print what waits')
    .addOption(new Option('--log <form>', 'format of the log').choices(['text', 'json']).default('text'))
    .option('--namespace-objects <n>', 'how many objects clients may store in each namespace; default: 50000')
    .option('--namespace-size <MiB>', 'how much they may have together; default: 256')
    .addHelpText(
      'after',
      `
kubectl --kubeconfig <data>/kubeconfig works while it runs. Ctrl-C finishes what runs and ends; a second one ends at once.
With --until-idle the API is served only where --listen says so, and the exit code is 0, or 1 if a repository
cannot be used or a controller failed.`,
    );
  examples(
    withActor(withData(withWork(up))),
    'sluice up',
    'sluice up --listen 127.0.0.1:6443',
    'sluice up --data d --config conf/ --until-idle',
    'sluice up --allow-git-host gitea:3000 --git-ca corporate-ca.pem',
    'sluice up --resolver ./license.ts --disable approval',
  ).action(async (options) => {
    finish(await (await import('./up/up.ts')).up(options, invocation));
  });

  const serve = program
    .command('serve')
    .description('run as an extension of a cluster, behind its kube-apiserver')
    .addOption(
      new Option('--role <role>', 'what this process does; one Lease for each role')
        .choices(['both', 'api', 'controllers'] as const)
        .default('both' as const),
    )
    .option(
      '--kubeconfig <file>',
      'kubeconfig of the cluster (default: $KUBECONFIG, else the service account of the pod)',
    )
    .option('--context <name>', 'context of the kubeconfig')
    .option(
      '-n, --namespace <name>',
      'namespace of its Lease, Secrets and trust ledger (default: $POD_NAMESPACE, that of the pod, else sluice-system)',
    )
    .option('--cache-dir <folder>', 'folder of mirrors and caches, which may be lost', '/var/cache/sluice')
    .option('--listen <host:port>', 'where to serve the API, health checks and metrics with TLS', '0.0.0.0:8443')
    .option('--webhook-listen <host:port>', 'serve webhooks of Git hosts here too, without TLS; default: not')
    .option('--service <name>', 'Service that leads to this server, for its certificate', 'sluice')
    .option('--lease-duration <duration>', 'how long a standby waits before it replaces a silent leader', '15s')
    .option('--renew-deadline <duration>', 'how long a leader works without renewing its Lease', '10s')
    .option('--retry-period <duration>', 'time between two renewals', '2s')
    .option(
      '--identity <name>',
      'name of this replica in the Lease (default: $POD_NAME or the host name, and a random part)',
    )
    .addOption(
      new Option('--log <form>', 'format of the log (default: text on a terminal, else json)').choices([
        'text',
        'json',
      ]),
    );
  examples(
    withWork(serve).addHelpText(
      'after',
      `
It serves the package kinds (porch.kpt.dev) through API aggregation; the cluster keeps all other objects, which are
custom resources. One replica leads; the others keep their mirrors up to date, so that one of them can take its place.
SIGTERM finishes what runs, releases the Lease and ends with 0. A replica that loses its Lease ends with 1.
Without --signing-key-secret it signs with the Secret sluice-signing-key of its namespace, which it creates.`,
    ),
    'sluice serve',
    'sluice serve --role api --cache-dir /cache',
    'sluice serve --kubeconfig admin.kubeconfig --namespace sluice-system --listen 127.0.0.1:8443',
  ).action(async (options) => {
    finish(await (await import('./serve/serve.ts')).serve(options, invocation));
  });

  const demo = program
    .command('demo')
    .description('run the quick start, packages of examples/quickstart on their way to two edge sites; or a fleet')
    .addArgument(
      new Argument('[scenario]', 'quickstart, or fleet: examples/fleet, one blueprint in 25 clusters, in three waves')
        .choices(['quickstart', 'fleet'])
        .default('quickstart'),
    )
    .option('--serve', 'keep the data folder and go on until Ctrl-C')
    .addHelpText(
      'after',
      '\nWithout --serve it uses a fresh temporary folder, unless --data names one, and ends by itself.',
    );
  examples(withData(demo), 'sluice demo', 'sluice demo --serve --data .sluice', 'sluice demo fleet').action(
    async (scenario, options) => {
      if (scenario === 'fleet' && options.serve === true) {
        throw new SluiceError(
          'InvalidInput',
          'sluice demo fleet ends by itself; leave out --serve, or use --data to keep its result',
        );
      }
      if (scenario === 'fleet') finish(await (await import('./demo/fleet-demo.ts')).fleetDemo(options, invocation));
      else finish(await (await import('./demo/demo.ts')).demo(options, invocation));
    },
  );

  const backup = program
    .command('backup')
    .description('copy all objects that are not packages into a file, also while "sluice up" runs')
    .argument('<file>', 'file to write the copy to')
    .option('--force', 'replace an existing file')
    .addHelpText(
      'after',
      `
Packages live in their Git repositories: back those up too. It contains the trust ledger: which keys are trusted, and the last
statement of each revision. Private keys, certificates and tokens of the server are not in it; a new data folder gets new ones. The file holds credentials of repositories: only its owner can read it.`,
    );
  examples(withData(backup), 'sluice backup objects-2026-01-31.db').action(async (file, options) => {
    finish(await (await import('./data/backup.ts')).backup(file, options, invocation));
  });

  const restore = program
    .command('restore')
    .description('replace all objects that are not packages by those of a backup')
    .argument('<file>', 'what "sluice backup" wrote')
    .addHelpText(
      'after',
      `
Stop "sluice up" first. The backup is checked before anything changes, and the current objects are moved to another file. The trust
ledger of the backup is merged into the current one, which keeps everything: revoked keys stay revoked.
Packages live in their Git repositories and stay as they are.`,
    );
  examples(withData(restore), 'sluice restore objects-2026-01-31.db').action(async (file, options) => {
    finish(await (await import('./data/restore.ts')).restore(file, options, invocation));
  });

  addTransferCommands(program, invocation, finish);

  const verify = program
    .command('verify')
    .description('check all statements in a repository or a clone of it, without a server')
    .argument('[repository]', 'bare repository, or a clone')
    .option('--allowed-signers <file>', 'keys that count, as "sluice key show --allowed-signers" prints them')
    .option('--branch <branch>', 'branch that published packages are on', 'main')
    .option('--directory <folder>', 'folder of the packages in the repository', '/')
    .option('--id <id>', 'id that the repository must have')
    .option('--all', 'print also what is in band')
    .option('--pre-receive', 'run as a pre-receive hook: check the push that stdin describes')
    .addHelpText(
      'after',
      `
Without --allowed-signers the keys of the data folder count, with its revocations and the last statement of each revision.
With --allowed-signers and --data, the keys of the file count, and the data folder provides only the last statement of each revision. It is not changed.
A clone needs the whole history and the tags; the error says how to fetch them.
Exit code 1 if something does not count, 2 for wrong usage and for a clone that lacks history or tags. As a hook, 1 refuses the push.`,
    );
  examples(
    withOutput(withData(verify), ['text', 'json', 'yaml']),
    'sluice verify /srv/git/blueprints.git --allowed-signers allowed-signers',
    'sluice verify . --all',
    'exec sluice verify --pre-receive --allowed-signers /etc/sluice/allowed-signers',
  ).action(async (path, options) => {
    finish(await (await import('./verify/verify.ts')).verify(path, options, invocation));
  });

  const token = program.command('token').description('access to the server for other users');
  examples(token, 'sluice token create ci --group deployers > ci.kubeconfig');
  const create = token
    .command('create')
    .description('make a token for a user, and print a kubeconfig with it')
    .argument('<name>', 'name of the user, as roles name it')
    .option('--group <name>', 'group of the user; can be given several times', several)
    .option('--expires <duration>', 'how long it is valid, such as 720h (default: no expiry)')
    .addHelpText(
      'after',
      '\nThe token is shown this once; <data>/tokens.csv keeps its hash, and removing its line revokes the token.',
    );
  examples(
    withOutput(withData(create), ['kubeconfig', 'token']).option(
      '--kubeconfig <file>',
      'kubeconfig in the data folder of the server (default: $KUBECONFIG, where no data folder is named)',
    ),
    'sluice token create ci --group deployers --expires 720h > ci.kubeconfig',
  ).action(async (name, options) => {
    finish(await (await import('./data/token-create.ts')).tokenCreate(name, options, invocation));
  });

  const version = program.command('version').description('versions of sluice, Node.js and Git');
  examples(withOutput(version, ['text', 'json', 'yaml']), 'sluice version -o json').action(async (options) => {
    finish(await (await import('./version.ts')).version(options, invocation));
  });

  const completion = program
    .command('completion')
    .description('print a script that completes commands and options')
    .addArgument(new Argument('<shell>', 'shell to print it for').choices(['bash', 'zsh', 'fish']));
  examples(
    completion,
    'source <(sluice completion bash)',
    'sluice completion fish > ~/.config/fish/completions/sluice.fish',
  ).action(async (shell) => {
    finish((await import('./completion.ts')).completion(shell, program, invocation));
  });
}

/** Options of the commands that run controllers. */
function withWork(command: Command): Command {
  return command
    .option('--resolver <file>', 'module with a resolver; can be given several times', several)
    .option('--function-programs <folder>', 'folder whose programs pipelines may run (exec); default: none')
    .addOption(
      new Option('--kustomize <program>', 'kustomize, for delivery targets with render: kustomize').env(
        'SLUICE_KUSTOMIZE',
      ),
    )
    .addOption(new Option('--helm <program>', 'helm, for delivery targets with render: helm').env('SLUICE_HELM'))
    .option('--containers', 'run functions that are not built in as containers, without network and privileges')
    .option('--require-image-digest', 'run only images that are named by their digest')
    .option(
      '--default-image-prefix <registry>',
      'registry of images that name none; default: ghcr.io/kptdev/krm-functions-catalog',
    )
    .option('--render-status', 'write status.renderStatus, which older kpt rejects, into all Kptfiles')
    .option(
      '--disk-budget <MiB>',
      'disk space of mirrors and hosted repositories above which Sluice removes what it can fetch again; default: no limit',
    )
    .option(
      '--allow-git-host <host[:port]>',
      'Git host that may be at a local address or use plain http, such as gitea:3000; can be given several times',
      several,
    )
    .option(
      '--git-ca <file>',
      'certificates in PEM of authorities that Git hosts may be signed by, besides the usual ones',
    )
    .option('--disable <controller>', 'disable a controller; can be given several times', several);
}
