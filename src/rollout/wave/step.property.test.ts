import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import { currentWave } from './follow-waves.ts';
import type { Action, Observations } from './observation.ts';
import { INITIAL_STATE, type PlanState, type TargetRecord } from './plan-state.ts';
import { restoreState } from './restore-state.ts';
import { type Step, step } from './step.ts';
import { WaveModel } from './testing-model.ts';
import { planSpec, World, type WorldEvent, worldEvents } from './testing-world.ts';
import { replay, type Transition } from './transition.ts';
import { mayLeave, membersOf } from './wave-members.ts';
import { limitOf, type PlanSpec, percentOf } from './wave-spec.ts';

const START = ['a', 'b', 'c', 'e', 'h'];

/** What the selector selects changes with the spec. */
function isEdit({ type }: WorldEvent): boolean {
  return type === 'spec' || type === 'deselect' || type === 'mistype';
}

function isDeselection(transition: Transition): boolean {
  return transition.type === 'Skipped' && transition.isDeselected === true;
}

function approvalsIn(actions: readonly Action[]): string[] {
  return actions.flatMap((action) => (action.type === 'Approve' ? action.id : [])).sort();
}

test('after any events the state machine is where an independent model is, and approves the same targets', () => {
  const phases = new Set<string>();
  let resumed = 0;
  fc.assert(
    fc.property(planSpec, worldEvents(false), (first, events) => {
      const world = new World(START);
      const model = new WaveModel();
      let spec = first;
      let state: PlanState = INITIAL_STATE;
      let actions: readonly Action[] = [];
      for (const event of [{ type: 'wait' as const, ms: 0 }, ...events]) {
        world.apply(event, actions, state.targets);
        if (event.type === 'spec') spec = { ...spec, ...event.spec };
        const ms = event.type === 'wait' ? event.ms : 0;
        const observations = { ...world.observations, isEdited: isEdit(event) };
        const next = step(spec, state, observations, ms);
        const approved = model.observe(spec, observations, ms);
        if (next.transitions.some((one) => one.type === 'Reopened' && one.wave !== undefined)) resumed += 1;
        expectSame(approvalsIn(next.actions), approved);
        if (next.state.phase !== 'RolledBack') expectSame(phaseOf(next.state), phaseIn(model));
        if (model.ended === undefined)
          expectSame(
            next.state.waves.map(({ name, completedMs }) => [name, completedMs !== undefined, idsOf(next.state, name)]),
            model.parts.map(({ name, isDone }) => [name, isDone, model.members(name)]),
          );
        phases.add(next.state.phase);
        // The model has no end of a rollback.
        if (next.state.phase === 'RolledBack') return;
        ({ state, actions } = next);
      }
    }),
    { numRuns: ALL_RUNS ? 100_000 : runs(20_000) },
  );
  if (ALL_RUNS) expect(phases.size).toBe(7);
  if (ALL_RUNS) expect(resumed).toBeGreaterThan(0);
}, 600_000);

/** Of millions of comparisons only one that fails may be expensive. */
function expectSame(actual: unknown, expected: unknown): void {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) expect(actual).toEqual(expected);
}

function idsOf(state: PlanState, wave: string): string[] {
  return membersOf(state, wave)
    .map(({ id }) => id)
    .sort();
}

/** What differs between pauses is compared by the pauses themselves. */
function phaseOf({ phase }: PlanState): string {
  return phase === 'Pending' ? 'Running' : phase;
}

function phaseIn({ ended, isHeld, isStopped }: WaveModel): string {
  if (ended === 'aborted') return 'Aborted';
  if (ended === 'back') return 'RollingBack';
  if (ended === 'completed') return 'Completed';
  return isHeld || isStopped ? 'Paused' : 'Running';
}

test('with crashes at any write: no wave before the one before it is done, no approval too many, none twice', () => {
  let reopened = 0;
  fc.assert(
    fc.property(planSpec, worldEvents(true), (first, events) => {
      const world = new World(START);
      const log = new Log();
      let spec = first;
      let recorded: PlanState = INITIAL_STATE;
      let actions: readonly Action[] = [];
      let written: number | undefined;
      let isEdited = false;
      for (const event of [{ type: 'wait' as const, ms: 0 }, ...events]) {
        if (event.type === 'crash') {
          // In the step that the next event leads to.
          ({ written } = event);
          continue;
        }
        world.apply(event, actions, recorded.targets);
        if (event.type === 'spec') spec = { ...spec, ...event.spec };
        if (isEdit(event)) isEdited = true;
        const observations = { ...world.observations, isEdited };
        const next = step(spec, recorded, observations, event.type === 'wait' ? event.ms : 0);
        if (next.transitions.some(({ type }) => type === 'Reopened')) reopened += 1;
        // The transitions of a step are its whole effect.
        expect(replay(recorded, next.transitions)).toEqual(next.state);
        // What is not seen to be selected may be.
        if (world.isBlind) expect(next.transitions.filter(isDeselection)).toEqual([]);
        expectFixpoint(spec, next, world);
        if (written !== undefined) {
          recorded = crash(recorded, next, written);
          written = undefined;
          actions = [];
          continue;
        }
        isEdited = false;
        log.check(spec, recorded, next, world.observations);
        recorded = restoreState(next.state, next.state.targets.values());
        expect(recorded).toEqual(next.state);
        ({ actions } = next);
      }
      expect(new Set(world.published).size).toBe(world.published.length);
    }),
    { numRuns: runs(20_000) },
  );
  if (ALL_RUNS) expect(reopened).toBeGreaterThan(0);
}, 600_000);

/** Without new observations a plan comes to an end of its transitions. */
function expectFixpoint(spec: PlanSpec, next: Step, world: World): void {
  let last = next;
  for (let rounds = 0; last.transitions.length > 0; rounds += 1) {
    expect(rounds).toBeLessThan(5);
    last = step(spec, last.state, world.observations, 0);
  }
}

/** The process ends after it has written some of the records of targets, and not that of the plan. */
function crash(before: PlanState, { state }: Step, written: number): PlanState {
  const changed = [...state.targets.values()].filter((target) => before.targets.get(target.id) !== target);
  const records = new Map<string, TargetRecord>(before.targets);
  for (const target of changed.slice(0, written)) records.set(target.id, target);
  if (changed.length < written) return restoreState(state, records.values());
  return restoreState(before, records.values());
}

/** Checks each step on its own. */
class Log {
  #isFinal = false;

  check(spec: PlanSpec, before: PlanState, { state, actions }: Step, observations: Observations): void {
    const approvals = approvalsIn(actions);
    if (observations.isFrozen) this.#checkFrozen(before, state, actions);
    if (this.#isFinal) expect(actions).toEqual([]);
    if (this.#isFinal) expect(state.phase).toBe(before.phase);
    this.#isFinal = state.phase === 'Aborted' || state.phase === 'RolledBack';
    if (state.phase !== 'Running') expect(approvals).toEqual([]);
    expect(state.elapsedMs).toBeGreaterThanOrEqual(before.elapsedMs);
    const targets = [...state.targets.values()].filter(({ phase }) => phase !== 'Skipped');
    const failed = targets.filter(({ phase, isAccepted }) => phase === 'Failed' && isAccepted !== true).length;
    if (failed > limitOf(spec.maxFailures, targets.length)) expect(approvals).toEqual([]);
    for (const id of approvals) {
      const { wave, published } = state.targets.get(id) as TargetRecord;
      expect(published).toBeUndefined();
      expect(state.waves.some(({ name }) => name === wave)).toBe(true);
    }
    // All but the last are over.
    for (const [at, wave] of state.waves.entries()) {
      const next = state.waves[at + 1];
      if (next !== undefined) expect(wave.completedMs).toBeLessThanOrEqual(next.startedMs);
    }
    for (const { name } of state.waves) this.#checkCompletion(spec, state, before, name);
    for (const id of approvals) this.#checkSelected(state.targets.get(id) as TargetRecord, observations);
    if (approvals.length > 0) this.#checkSize(spec, state, approvals, observations);
  }

  /** What is approved is selected, or was approved before. */
  #checkSelected(target: TargetRecord, observations: Observations): void {
    const { candidates } = observations;
    if (candidates !== undefined && mayLeave(target, observations)) expect(candidates.has(target.id)).toBe(true);
  }

  /** What the wave in progress approves is within its size, of the targets that are in the plan now, and of those before each. */
  #checkSize(spec: PlanSpec, state: PlanState, approvals: readonly string[], observations: Observations): void {
    const current = currentWave(state)?.name;
    const { size } = spec.waves.find(({ name }) => name === current) ?? {};
    const targets = [...state.targets.values()].filter(({ phase }) => phase !== 'Skipped');
    // What is approved stays, and of what cannot be read that is not known.
    const own = targets.filter(
      (one) => one.wave === current && approvals.includes(one.id) && mayLeave(one, observations),
    );
    for (const { order } of own) {
      const until = targets.filter((one) => one.order.joined <= order.joined);
      const taken = until.filter(({ wave }) => wave !== undefined).length;
      if (size !== undefined && 'percent' in size) {
        expect(taken).toBeLessThanOrEqual(percentOf(size.percent, until.length));
        const all = targets.filter(({ wave }) => wave !== undefined).length;
        expect(all).toBeLessThanOrEqual(percentOf(size.percent, targets.length));
      }
      if (size !== undefined && 'count' in size)
        expect(membersOf(state, current ?? '').length).toBeLessThanOrEqual(size.count);
    }
  }

  /** Nothing begins, nothing becomes too old, and no failure has a consequence. */
  #checkFrozen(before: PlanState, state: PlanState, actions: readonly Action[]): void {
    expect(state.elapsedMs).toBe(before.elapsedMs);
    // Those that a reopened plan starts again are no longer started.
    expect(state.waves.length).toBeLessThanOrEqual(before.waves.length);
    expect(state.pauses).toBe(before.pauses);
    expect(actions.filter(({ type }) => type !== 'RollBack')).toEqual([]);
  }

  /** A wave that ended in this step. */
  #checkCompletion(spec: PlanSpec, state: PlanState, before: PlanState, name: string): void {
    const was = before.waves.find((wave) => wave.name === name);
    const is = state.waves.find((wave) => wave.name === name);
    if (was?.completedMs !== undefined || is?.completedMs === undefined) return;
    if (is.isPromoted === true) {
      const { promotePast } = spec;
      if (promotePast === name) return;
      // No promotion that is over passes a wave.
      expect(spec.waves.some((wave) => wave.name === promotePast)).toBe(true);
      expect(before.waves.find((wave) => wave.name === promotePast)?.completedMs).toBeUndefined();
      return;
    }
    const members = membersOf(state, name);
    const wave = spec.waves.find((one) => one.name === name);
    // It has chosen none when it started, or a user has removed the wave: otherwise what it has was verified.
    if (was === undefined && is.verifiedMs === undefined) {
      expect(members).toEqual([]);
      return;
    }
    if (wave === undefined) expect(is.isRemoved).toBe(true);
    if (wave === undefined && members.length === 0) return;
    expect(members).not.toEqual([]);
    for (const { phase } of members) expect(['Verified', 'Failed', 'Unreachable']).toContain(phase);
    const { soakMs = 0, analyses = 0 } = wave ?? {};
    expect(is.completedMs - (is.verifiedMs as number)).toBeGreaterThanOrEqual(soakMs);
    if (analyses > 0) expect(is.analysedMs).toBeDefined();
  }
}
