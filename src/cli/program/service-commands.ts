import { type Command, Option } from 'commander';
import type { Invocation } from './invocation.ts';
import { examples, type Finish, several, withActor, withData, withOutput } from './options.ts';

/** `sluice up`, `demo`, `version` and `completion`. */
export function addServiceCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const up = program
    .command('up')
    .description('run all controllers on the registered repositories')
    .option('--config <path>', 'file or folder with manifests to register first; can be given several times', several)
    .option(
      '--listen <host:port>',
      'where to serve the Kubernetes API (default: loopback, the port of last time or a free one)',
    )
    .option('--no-listen', 'do not serve the Kubernetes API')
    .option('--until-idle', 'end when nothing is queued, running or retrying; tell what waits')
    .addOption(new Option('--log <form>', 'form of the log').choices(['text', 'json']).default('text'))
    .option('--resolver <file>', 'module with a resolver; can be given several times', several)
    .option('--disable <controller>', 'leave a controller out; can be given several times', several)
    .addHelpText(
      'after',
      `
kubectl --kubeconfig <data>/kubeconfig works while it runs. Ctrl-C finishes what runs and ends; a second one ends at once.
With --until-idle the API is served only where --listen says so, and the exit code is 0, or 1 if a repository
cannot be used or a controller failed.`,
    );
  examples(
    withActor(withData(up)),
    'sluice up',
    'sluice up --listen 127.0.0.1:6443',
    'sluice up --data d --config conf/ --until-idle',
    'sluice up --resolver ./license.ts --disable approval',
  ).action(async (options) => {
    finish(await (await import('../commands/up.ts')).up(options, invocation));
  });

  const demo = program
    .command('demo')
    .description('run the quick start: packages of examples/quickstart on their way to two edge sites')
    .option('--serve', 'keep the data folder and go on until Ctrl-C')
    .addHelpText(
      'after',
      '\nWithout --serve it uses a fresh temporary folder, unless --data names one, and ends by itself.',
    );
  examples(withData(demo), 'sluice demo', 'sluice demo --serve --data .sluice').action(async (options) => {
    finish(await (await import('../commands/demo.ts')).demo(options, invocation));
  });

  const version = program.command('version').description('versions of sluice, Node.js and Git');
  examples(withOutput(version, ['text', 'json']), 'sluice version -o json').action(async (options) => {
    finish(await (await import('../commands/version.ts')).version(options, invocation));
  });

  const completion = program
    .command('completion')
    .description('print a script that completes commands and options')
    .argument('<shell>', 'bash, zsh or fish');
  examples(
    completion,
    'source <(sluice completion bash)',
    'sluice completion fish > ~/.config/fish/completions/sluice.fish',
  ).action(async (shell) => {
    finish((await import('../commands/completion.ts')).completion(shell, program, invocation));
  });
}
