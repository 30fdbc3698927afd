import { Argument, type Command } from 'commander';
import { examples, type Finish, integer, PLACE_HELP, several, withOutput, withPlace } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';
import { addTargetGet, addTargetResume, addTargetWatch } from './target-status-commands.ts';

/** `sluice target …` */
export function addTargetCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const target = program.command('target').description('work with delivery targets').addHelpText('after', PLACE_HELP);
  addTargetGet(target, invocation, finish);
  addTargetWatch(target, invocation, finish);
  addTargetResume(target, invocation, finish);
  addInit(target, invocation, finish);
}

function addInit(target: Command, invocation: Invocation, finish: Finish): void {
  const init = target
    .command('init')
    .description('print the objects with which Argo CD or Flux syncs a target')
    .addArgument(new Argument('<engine>', 'the engine that syncs the target').choices(['argocd', 'flux']))
    .option('--target <name>', 'a DeliveryTarget, which the following options override')
    .option('--name <name>', 'name of the printed objects (default: that of the target)')
    .option('--repo <address>', 'address of the repository, as the cluster reaches it')
    .option('--branch <branch>', 'branch of the target (default: main)')
    .option('--directory <folder>', 'folder of the packages in the repository (default: /)')
    .option('--engine-namespace <name>', 'namespace of the engine (default: argocd or flux-system)')
    .option(
      '--nested',
      'Argo CD: find packages by their kustomization.yaml at any depth (default, unless render is passthrough)',
    )
    .option('--no-nested', 'Argo CD: each folder of the directory is a package, whatever files it has')
    .option('--no-prune', 'keep objects in the cluster that are no longer in Git')
    .option('--project <name>', 'Argo CD: project of the Applications', 'default')
    .option(
      '--destination <cluster>',
      'Argo CD: URL of the API server of the cluster, or its name',
      'https://kubernetes.default.svc',
    )
    .option(
      '--wave <number>',
      'Argo CD: sync wave of the ApplicationSet within an Application that contains it',
      integer,
    )
    .option('--secret <name>', 'Flux: Secret with the credentials of the repository')
    .option('--depends-on <name>', 'Flux: Kustomization that must be ready first; may be repeated', several)
    .option('--cluster-secret <name>', 'Flux: Secret with the kubeconfig of another cluster')
    .addHelpText('after', '\nWithout --target no server or data folder is needed. docs/delivery.md shows the objects.');
  examples(
    withOutput(withPlace(init), ['yaml', 'json']),
    'sluice target init argocd --target edge-east | kubectl apply -f -',
    'sluice target init flux --target edge-east --secret edge-east-git --depends-on infrastructure',
    'sluice target init flux --name edge-east --repo https://git.example.com/edge-east.git --directory clusters/edge-east',
  ).action(async (engine, options) => {
    finish(await (await import('./target-init.ts')).targetInit(engine, options, invocation));
  });
}
