import { SluiceError } from '../../foundation/sluice-error.ts';
import { type WavePlan, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { printFreezes } from '../access/frozen-banner.ts';
import { inAccess } from '../access/in-access.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { expectPlan } from './wave-get.ts';

type Verb = 'pause' | 'resume' | 'abort' | 'rollback';
type Options = PlaceOptions & ActorOptions;

const DONE: Readonly<Record<Verb, string>> = {
  pause: 'begins nothing any more; continue it with "sluice wave resume"',
  resume: 'continues',
  abort: 'has ended; what it has approved stays, and policies with automatic approval decide about the rest',
  rollback: 'is rolled back; "sluice wave watch" shows how far it is',
};

/** `sluice wave pause|resume|abort|rollback` */
export function waveStep(verb: Verb, name: string, options: Options, invocation: Invocation): Promise<CommandResult> {
  return change(name, options, invocation, (plan) => {
    expectOpen(plan, verb);
    return { spec: stepOf(verb, plan), text: DONE[verb] };
  });
}

/** `sluice wave promote` */
export function wavePromote(
  name: string,
  options: Options & { readonly past?: string },
  invocation: Invocation,
): Promise<CommandResult> {
  return change(name, options, invocation, (plan) => {
    const known = plan.spec.waves.map((wave) => wave.name);
    // Also of a plan that has ended: the caller may mean another one.
    if (options.past !== undefined && !known.includes(options.past))
      throw new SluiceError(
        'NotFound',
        `cannot promote ${name}: it has no wave "${options.past}"; its waves are ${known.join(', ')}`,
      );
    expectOpen(plan, 'promote');
    const current = plan.status?.waves.find(({ completedMs }) => completedMs === undefined)?.name;
    const past = options.past ?? current;
    if (past === undefined)
      throw new SluiceError(
        'Refused',
        `cannot promote ${name}: no wave is in progress; name one with --past: ${known.join(', ')}`,
      );
    const isPaused = plan.status?.phase === 'Paused' ? '; it is paused, so "sluice wave resume" has to follow' : '';
    return { spec: { promotePast: past }, text: `does not wait for wave ${past} any more${isPaused}` };
  });
}

function stepOf(verb: Verb, { status }: WavePlan): Partial<WavePlan['spec']> {
  if (verb === 'pause') return { paused: true };
  if (verb === 'resume') return { paused: false, resume: status?.pauses ?? 0 };
  return verb === 'abort' ? { abort: true } : { rollback: true };
}

/** A plan that has ended takes no step, apart from the rollback of one that is completed. */
function expectOpen({ metadata: { name }, status }: WavePlan, verb: string): void {
  const { phase } = status ?? {};
  const isOver = phase === 'Aborted' || phase === 'RolledBack' || phase === 'RollingBack';
  if (!isOver && (phase !== 'Completed' || verb === 'rollback')) return;
  throw new SluiceError(
    'Refused',
    `cannot ${verb} ${name}: it is ${phase}; create another WavePlan for the revisions that are left`,
  );
}

function change(
  name: string,
  options: Options,
  invocation: Invocation,
  decide: (plan: WavePlan) => { readonly spec: Partial<WavePlan['spec']>; readonly text: string },
): Promise<CommandResult> {
  return inAccess(
    options,
    invocation,
    async (access) => {
      const plan = await expectPlan(access, name);
      const { spec, text } = decide(plan);
      await printFreezes(access, invocation.terminal, access.namespace);
      await access.client.update(wavePlanKind, { ...plan, spec: { ...plan.spec, ...spec } });
      const later = access.server === undefined ? ' once "sluice up" runs' : '';
      invocation.terminal.line(`${printable(name)} ${text}${later}`);
      return 0;
    },
    true,
  );
}
