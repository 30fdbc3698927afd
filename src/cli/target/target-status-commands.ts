import { type Command, Option } from 'commander';
import {
  examples,
  type Finish,
  withActor,
  withAllNamespaces,
  withHeaders,
  withOutput,
  withPlace,
} from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

/** `sluice target get` */
export function addTargetGet(target: Command, invocation: Invocation, finish: Finish): void {
  const get = target
    .command('get')
    .description('show what is delivered, synced and healthy')
    .argument('[names...]', 'names of targets (default: all)')
    .option('--packages', 'show each package of the targets')
    .option('--unhealthy', 'with --packages: only those that are not both synced and healthy');
  examples(
    withOutput(withHeaders(withAllNamespaces(withPlace(get))), ['table', 'json', 'yaml']),
    'sluice target get',
    'sluice target get edge-east --packages --unhealthy',
    'sluice target get edge-east -o json',
  ).action(async (names, options) => {
    finish(await (await import('./target-get.ts')).targetGet(names, options, invocation));
  });
}

/** `sluice target watch` */
export function addTargetWatch(target: Command, invocation: Invocation, finish: Finish): void {
  const watch = target
    .command('watch')
    .description('print each change of a target, or wait until it, or a package revision on it, is synced or healthy')
    .argument('<name>', 'name of the target')
    .addOption(new Option('--until <state>', 'end when the last delivery is so').choices(['synced', 'healthy']))
    .option('--revision <name>', 'end when the target delivers this package revision, and it is as --until says')
    .option('--timeout <duration>', 'how long to wait, such as 10m (default: without limit)')
    .addHelpText(
      'after',
      `
--until counts once everything that the target selects is delivered (Ready is True for the present spec). With --revision only that package
counts. The exit code is 0 once the state is reached, and 1 if it is not reached within --timeout, or if the target does not deliver the
revision: it refuses it, is suspended, or has a pin, a rollback or a later revision of the package.`,
    );
  examples(
    withOutput(withPlace(watch), ['text', 'json']),
    'sluice target watch edge-east',
    'sluice target watch edge-east --until healthy --timeout 10m',
    'sluice target watch edge-east --until healthy --revision packages.web-shop.v2 --timeout 10m',
  ).action(async (name, options) => {
    finish(await (await import('./target-watch.ts')).targetWatch(name, options, invocation));
  });
}

/** `sluice target resume` */
export function addTargetResume(target: Command, invocation: Invocation, finish: Finish): void {
  const resume = target
    .command('resume')
    .description('end rollbacks: deliver again the revision that the target went back from')
    .argument('<name>', 'name of the target')
    .argument('[package]', 'path of the package, with or without its repository (default: all packages)')
    .addHelpText(
      'after',
      `
The command names the failed revision in the annotation sluice.dev/resume; it is not rolled back again. The next publication of a package
ends its rollback too. "sluice target get <name> -o yaml" shows the rollbacks of a target.`,
    );
  examples(
    withActor(withPlace(resume)),
    'sluice target resume edge-east',
    'sluice target resume edge-east packages/web-shop',
  ).action(async (name, path, options) => {
    finish(await (await import('./target-resume.ts')).targetResume(name, path, options, invocation));
  });
}
