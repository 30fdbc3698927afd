import { waveRecordsOf } from '../../../controllers/wave-plan/plan-records.ts';
import { planSpecOf } from '../../../controllers/wave-plan/plan-spec.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type WavePlan, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { isPassed } from '../../rollout/wave/follow-waves.ts';
import { inPackages } from '../access/in-packages.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { expectPlan } from './wave-get.ts';

type Verb = 'pause' | 'resume' | 'abort' | 'rollback';
type Options = PlaceOptions & ActorOptions;

/** `<name>` stands for that of the plan. */
const DONE: Readonly<Record<Verb, string>> = {
  pause: 'begins nothing any more; continue it with "sluice wave resume <name>"',
  resume: 'continues',
  abort: 'ends; what it has approved stays, and policies with automatic approval decide about the rest',
  rollback: 'is rolled back; "sluice wave watch <name>" shows how far it is',
};

/** Of a step that changes nothing. */
const ALREADY: Readonly<Record<Verb, string>> = {
  pause: 'is paused already; continue it with "sluice wave resume <name>"',
  resume: 'was requested to continue already',
  abort:
    'was requested to end already; what it has approved stays, and policies with automatic approval decide about the rest',
  rollback: 'was requested to be rolled back already; "sluice wave watch <name>" shows how far it is',
};

/** `sluice wave pause|resume|abort|rollback` */
export function waveStep(verb: Verb, name: string, options: Options, invocation: Invocation): Promise<CommandResult> {
  return change(name, options, invocation, (plan, { isServed, user }) => {
    expectOpen(plan, verb, isServed);
    if (verb === 'resume' && !plan.spec.paused && plan.status?.phase !== 'Paused')
      return { spec: undefined, text: 'is not paused' };
    if (isRequested(verb, plan)) return { spec: undefined, text: ALREADY[verb] };
    return { spec: stepOf(verb, plan, user), text: DONE[verb] };
  });
}

/** `sluice wave promote` */
export function wavePromote(
  name: string,
  options: Options & { readonly past?: string },
  invocation: Invocation,
): Promise<CommandResult> {
  return change(name, options, invocation, (plan, { isServed }) => {
    const known = plan.spec.waves.map((wave) => wave.name);
    // Also of a plan that has ended: the caller may mean another one.
    if (options.past !== undefined && !known.includes(options.past))
      throw new SluiceError(
        'NotFound',
        `cannot promote ${name}: it has no wave "${options.past}"; its waves are ${known.join(', ')}`,
      );
    expectOpen(plan, 'promote', isServed);
    const current = plan.status?.waves.find(({ completedMs }) => completedMs === undefined)?.name;
    const past = options.past ?? current;
    if (past === undefined)
      throw new SluiceError(
        'Refused',
        `cannot promote ${name}: no wave is in progress; name one with --past: ${known.join(', ')}`,
      );
    const { phase, pause } = plan.status ?? {};
    // It is paused until the wave is passed, if it was removed from the spec.
    const isStopped = (phase === 'Paused' && pause?.cause !== 'WaveRemoved') || plan.spec.paused;
    const isPaused = isStopped ? '; it is paused, so "sluice wave resume <name>" has to follow' : '';
    if (isPassed({ waves: waveRecordsOf(plan) }, past, planSpecOf(plan)))
      return { spec: undefined, text: `was requested already not to wait for wave ${past}${isPaused}` };
    return { spec: { promotePast: past }, text: `does not wait for wave ${past} any more${isPaused}` };
  });
}

/** True for a step without an effect, as an earlier request has it already. */
function isRequested(verb: Verb, { spec, status }: WavePlan): boolean {
  switch (verb) {
    case 'pause':
      return spec.paused;
    case 'resume':
      return !spec.paused && spec.resume >= (status?.pauses ?? 0);
    default:
      return verb === 'abort' ? spec.abort : spec.rollback;
  }
}

function stepOf(verb: Verb, { status }: WavePlan, user: string): Partial<WavePlan['spec']> {
  if (verb === 'pause') return { paused: true, pausedBy: user };
  if (verb === 'resume') return { paused: false, resume: status?.pauses ?? 0 };
  return verb === 'abort' ? { abort: true } : { rollback: true };
}

/**
 * A plan that has ended takes no step, apart from the rollback of one that is completed; nor does one whose end was requested. `isServed`: a server
 * carries that out.
 */
export function expectOpen({ metadata, spec, status }: WavePlan, verb: string, isServed: boolean): void {
  const { name, deletionTimestamp } = metadata;
  const { phase } = status ?? {};
  const refuse = (why: string) => new SluiceError('Refused', `cannot ${verb} ${name}: ${why}`);
  const isOver = phase === 'Aborted' || phase === 'RolledBack' || phase === 'RollingBack';
  if (isOver || (phase === 'Completed' && verb !== 'rollback'))
    throw refuse(`it is ${phase}; create another WavePlan for the revisions that are left`);
  if (deletionTimestamp !== undefined && verb !== 'abort')
    throw refuse(
      `it is being deleted, and approves nothing any more; "sluice wave abort ${name}" ends its hold on what is left`,
    );
  // The abort takes precedence.
  const end = spec.abort ? 'abort' : spec.rollback && verb !== 'abort' ? 'rollback' : undefined;
  if (end === undefined || end === verb) return;
  const next = isServed ? 'in a moment' : 'once "sluice up" runs: start it';
  throw refuse(
    `a user requested its ${end}, which ends it ${next}; create another WavePlan for the revisions that are left`,
  );
}

interface Requester {
  /** A server carries the request out. */
  readonly isServed: boolean;
  readonly user: string;
}

interface Decision {
  /** Undefined if nothing is to be changed. */
  readonly spec: Partial<WavePlan['spec']> | undefined;
  readonly text: string;
}

function change(
  name: string,
  options: Options,
  invocation: Invocation,
  decide: (plan: WavePlan, by: Requester) => Decision,
): Promise<CommandResult> {
  return inPackages(
    options,
    invocation,
    async (access) => {
      const plan = await expectPlan(access, name);
      const isServed = access.server !== undefined;
      const { spec, text } = decide(plan, { isServed, user: (await access.caller()).name });
      if (spec !== undefined) {
        // Who paused it is known of this pause only.
        const { pausedBy: _before, ...kept } = plan.spec;
        const by = spec.paused === undefined ? plan.spec : kept;
        await access.client.update(wavePlanKind, { ...plan, spec: { ...by, ...spec } });
      }
      const later = isServed || spec === undefined ? '' : ' once "sluice up" runs';
      invocation.terminal.line(`${printable(name)} ${text.replaceAll('<name>', () => printable(name))}${later}`);
      return 0;
    },
    true,
  );
}
