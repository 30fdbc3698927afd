import { type Command, Option } from 'commander';
import {
  examples,
  type Finish,
  PLACE_HELP,
  withActor,
  withAllNamespaces,
  withHeaders,
  withOutput,
  withPlace,
} from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

/** `sluice wave …` */
export function addWaveCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const wave = program
    .command('wave')
    .description('work with wave plans, which approve revisions in waves')
    .addHelpText(
      'after',
      `
A plan in progress that is deleted keeps its hold on what has had no wave, until users have approved or rejected that, or a user who may
approve ends the plan with "sluice wave abort".
${PLACE_HELP}`,
    );
  addGet(wave, invocation, finish);
  addWatch(wave, invocation, finish);
  addSteps(wave, invocation, finish);
  addApprove(wave, invocation, finish);
}

function addGet(wave: Command, invocation: Invocation, finish: Finish): void {
  const get = wave
    .command('get')
    .description('show plans; of one plan also its waves')
    .argument('[names...]', 'names of plans (default: all)')
    .option('--targets', 'show each target of the plans');
  examples(
    withOutput(withHeaders(withAllNamespaces(withPlace(get))), ['table', 'json', 'yaml']),
    'sluice wave get',
    'sluice wave get web-v2',
    'sluice wave get web-v2 --targets',
    'sluice wave get web-v2 -o json',
  ).action(async (names, options) => {
    finish(await (await import('./wave-get.ts')).waveGet(names, options, invocation));
  });
}

function addWatch(wave: Command, invocation: Invocation, finish: Finish): void {
  const watch = wave
    .command('watch')
    .description('print a line for each wave of a plan whenever it changes, until the plan has ended')
    .argument('<name>', 'name of the plan')
    .option('--timeout <duration>', 'how long to wait, such as 2h (default: without limit)')
    .addHelpText(
      'after',
      `
The exit code is 0 once the plan is Completed, and 1 if it ends in another way, is paused because of a failure, or --timeout passes.`,
    );
  examples(
    withOutput(withPlace(watch), ['text', 'json']),
    'sluice wave watch web-v2',
    'sluice wave watch web-v2 --timeout 2h',
  ).action(async (name, options) => {
    finish(await (await import('./wave-watch.ts')).waveWatch(name, options, invocation));
  });
}

const STEPS = [
  ['pause', 'begin no approval and no wave any more, until the plan is resumed', ''],
  [
    'resume',
    'continue a plan that is paused',
    '\nOf a plan that is paused because of a failure, what has failed until now is accepted, and an analysis is made again.',
  ],
  [
    'abort',
    'end a plan for good; what it has approved stays',
    '\nWhat it held waits for approval as any proposal does: policies with automatic approval approve it at once. "sluice freeze" prevents that.',
  ],
  [
    'rollback',
    'end a plan, and publish the revisions before again, each as a new revision',
    '\nPolicies decide about these revisions as about all others: "sluice wave get" names those that wait for a user.',
  ],
] as const;

function addSteps(wave: Command, invocation: Invocation, finish: Finish): void {
  for (const [verb, description, more] of STEPS) {
    const step = wave.command(verb).description(description).argument('<name>', 'name of the plan');
    if (more !== '') step.addHelpText('after', more);
    examples(withActor(withPlace(step)), `sluice wave ${verb} web-v2`).action(async (name, options) => {
      finish(await (await import('./wave-step.ts')).waveStep(verb, name, options, invocation));
    });
  }
  const promote = wave
    .command('promote')
    .description('pass a wave without waiting for its verification, soak and analysis')
    .argument('<name>', 'name of the plan')
    .option('--past <wave>', 'the last wave that is passed (default: the one in progress)')
    .addHelpText('after', '\nApprovals that a later wave requires are still required.');
  examples(
    withActor(withPlace(promote)),
    'sluice wave promote web-v2',
    'sluice wave promote web-v2 --past canary',
  ).action(async (name, options) => {
    finish(await (await import('./wave-step.ts')).wavePromote(name, options, invocation));
  });
}

function addApprove(wave: Command, invocation: Invocation, finish: Finish): void {
  const approve = wave
    .command('approve')
    .description('approve the start of a wave')
    .argument('<name>', 'name of the plan')
    .option('--wave <wave>', 'the wave (default: the next one that requires approvals)')
    .addOption(new Option('--reason <text>', 'reason, which is recorded'))
    .addHelpText('after', '\nEach user counts once. Groups count where spec.waves[].approval.from lists them.');
  examples(
    withActor(withPlace(approve)),
    'sluice wave approve web-v2',
    'sluice wave approve web-v2 --wave broad --reason "error budget is fine"',
  ).action(async (name, options) => {
    finish(await (await import('./wave-approve.ts')).waveApprove(name, options, invocation));
  });
}
