import type { EventRecorder } from '../../src/controller/event-recorder.ts';
import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { type Clock, timestamp } from '../../src/foundation/time/clock.ts';
import type { FreezeRule } from '../../src/package/model/policy/approval-rules.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { type WaveTarget, waveTargetKind } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { type Condition, findCondition, type NewCondition, setCondition } from '../../src/resource/object/condition.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import type { PlanState } from '../../src/rollout/wave/plan-state.ts';
import type { Step } from '../../src/rollout/wave/step.ts';
import type { Transition } from '../../src/rollout/wave/transition.ts';
import { membersOf } from '../../src/rollout/wave/wave-members.ts';
import type { PlanSpec } from '../../src/rollout/wave/wave-spec.ts';
import { SPEC_CONDITIONS } from './conditions/observe-conditions.ts';
import { freezeStatusOf, frozenText, withFrozenCondition } from './plan-freezes.ts';
import { completedText, type MessageContext, planMessage, waveMessage } from './plan-message.ts';
import { logOf, statusOf, targetObject } from './plan-records.ts';

export interface PlanWriterOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly recorder: Pick<EventRecorder, 'record'>;
}

export interface WriteContext extends MessageContext {
  readonly spec: PlanSpec;
  /** That of the order of the targets. */
  readonly salt: string;
  /** See `observeConditions`. */
  readonly conditions: readonly NewCondition[] | undefined;
  /** True if the time of the plan is to be recorded although nothing else has changed. */
  readonly isDue: boolean;
}

/** Writes of the targets of one plan at a time. */
const MAX_CONCURRENT_WRITES = 16;
/** Targets that one step reports events about. */
const MAX_TARGET_EVENTS = 10;

/** Records the steps of plans: first the targets, then the plan, whose record says which assignments count. */
export class PlanWriter {
  readonly #options: PlanWriterOptions;

  constructor(options: PlanWriterOptions) {
    this.#options = options;
  }

  /** Returns true if the time of the plan is recorded now. Conflict if another writer was faster; then nothing may be acted upon. */
  async write(
    plan: Stored<WavePlan>,
    objects: ReadonlyMap<string, Stored<WaveTarget>>,
    before: PlanState,
    { state, transitions }: Step,
    { spec, salt, isDue, ...context }: WriteContext,
  ): Promise<boolean> {
    const { client, clock } = this.#options;
    const { freezes, analysisOf } = context;
    const log = logOf(transitions, state.elapsedMs, timestamp(clock.now()));
    const changed = [...state.targets.values()].filter((target) => before.targets.get(target.id) !== target);
    await mapLimited(changed, MAX_CONCURRENT_WRITES, async (target) => {
      const known = objects.get(target.id);
      const entries = [...(known?.record?.log ?? []), ...(log.targets.get(target.id) ?? [])];
      const object = targetObject(plan, target, entries, known);
      if (known === undefined) await client.create(waveTargetKind, object);
      else await client.update(waveTargetKind, { ...known, ...object });
    });
    const fields = statusOf(state, plan.status, log.plan, (wave) => waveMessage(spec, state, wave, analysisOf));
    const message = planMessage({ ...plan, status: { ...plan.status, ...fields } }, state, context);
    const isDone = state.phase === 'Completed';
    const ready = { type: 'Ready', status: isDone ? 'True' : 'False', reason: state.phase, message } as const;
    const observedGeneration = plan.metadata.generation;
    const own = setCondition(plan.status?.conditions, { ...ready, observedGeneration }, clock.now());
    const known =
      context.conditions === undefined
        ? own
        : withSpecConditions(own, context.conditions, observedGeneration, clock.now());
    const conditions = withFrozenCondition(known, freezes, observedGeneration, clock);
    const frozen = freezeStatusOf(freezes);
    const freezeFields = frozen === undefined ? {} : { freezes: frozen };
    const isStarted = state.waves.length > 0;
    const order = isStarted && plan.spec.order.salt === undefined ? { salt } : {};
    const status = { ...fields, ...order, ...freezeFields, message, conditions, observedGeneration };
    const isSame = sameValue({ ...plan.status, elapsedMs: 0 }, { ...status, elapsedMs: 0 });
    if (isSame && !(isDue && state.elapsedMs > before.elapsedMs)) return false;
    await client.updateStatus(wavePlanKind, { ...plan, status });
    this.#reportFreezes(plan, freezes);
    this.#reportConditions(plan, context.conditions ?? []);
    this.#report(plan, state, transitions, spec);
    return true;
  }

  #reportFreezes(plan: Stored<WavePlan>, freezes: readonly FreezeRule[]): void {
    const wasFrozen = plan.status?.freezes !== undefined;
    const isFrozen = freezes.length > 0;
    if (isFrozen === wasFrozen) return;
    const { recorder } = this.#options;
    if (isFrozen) recorder.record(plan, 'Warning', 'Frozen', frozenText(freezes));
    else recorder.record(plan, 'Normal', 'FreezeEnded', 'no Freeze is in force; the plan continues');
  }

  /** A condition that became False. */
  #reportConditions(plan: Stored<WavePlan>, conditions: readonly NewCondition[]): void {
    for (const { type, status, reason, message } of conditions)
      if (status === 'False' && findCondition(plan.status?.conditions, type)?.status !== 'False')
        this.#options.recorder.record(plan, 'Warning', reason, message);
  }

  #report(plan: Stored<WavePlan>, state: PlanState, transitions: readonly Transition[], spec: PlanSpec): void {
    const { recorder } = this.#options;
    let left = MAX_TARGET_EVENTS;
    for (const transition of transitions) {
      const event = eventOf(transition, state, spec, plan.metadata.name);
      if (event === undefined) continue;
      if ('id' in transition && left-- <= 0) continue;
      recorder.record(plan, event.type, event.reason, event.message);
    }
  }
}

/** The conditions with those about the spec as they are now. */
function withSpecConditions(
  before: readonly Condition[],
  next: readonly NewCondition[],
  observedGeneration: number | undefined,
  now: number,
): readonly Condition[] {
  const isGone = ({ type }: Condition) => SPEC_CONDITIONS.includes(type) && next.every((one) => one.type !== type);
  const kept = before.some(isGone) ? before.filter((one) => !isGone(one)) : before;
  return next.reduce((all, one) => setCondition(all, { ...one, observedGeneration }, now), kept);
}

/** The transitions that users have to know of. */
function eventOf(transition: Transition, state: PlanState, spec: PlanSpec, plan: string) {
  const normal = (message: string) => ({ type: 'Normal', reason: transition.type, message }) as const;
  const warning = (message: string) => ({ type: 'Warning', reason: transition.type, message }) as const;
  switch (transition.type) {
    case 'WaveStarted': {
      const members = [...state.targets.values()].filter(({ wave }) => wave === transition.wave);
      const started = `wave ${transition.wave} has started with ${members.length} targets`;
      const isSelecting = spec.waves.some(({ name, size }) => name === transition.wave && 'selected' in size);
      if (members.length > 0 || !isSelecting) return normal(started);
      return warning(
        `${started}: its selector selects none that is left; "sluice wave get ${plan} --targets" lists all`,
      );
    }
    case 'WaveCompleted': {
      if (membersOf(state, transition.wave).length === 0)
        return normal(`wave ${transition.wave} is completed without targets, so that nothing was verified in it`);
      const pause = state.phase === 'Paused' ? '; the plan is paused, so that no other wave begins' : '';
      return normal(`wave ${transition.wave} is completed${pause}`);
    }
    case 'WavePromoted':
      return warning(`wave ${transition.wave} was passed by a user, without waiting for its results`);
    case 'RemovalAccepted':
      return warning(
        `wave ${transition.wave}, which spec.waves has no longer, ends without a soak and without an analysis: a user resumed the plan`,
      );
    case 'Paused':
      return warning(`${transition.cause}: ${transition.message}`);
    case 'Resumed':
      return normal(`pause ${transition.pause} was ended by a user, who accepts what had failed until then`);
    case 'Reopened':
      return normal('the plan goes on: a change of its spec selects targets that it had skipped');
    case 'RollbackStarted':
      return warning(`all that the plan has approved is rolled back: ${transition.reason}`);
    case 'Aborted':
      return warning('a user aborted the plan');
    case 'Completed':
      return normal(completedText(state));
    case 'RolledBack':
      return normal('the rollback is over');
    case 'Failed':
    case 'Unreachable':
    case 'Regressed':
    case 'NotRolledBack':
      return warning(`${transition.id}: ${transition.reason}`);
    case 'Ahead':
      return normal(`${transition.id} was published as v${transition.published} ahead of its wave`);
    default:
      return undefined;
  }
}
