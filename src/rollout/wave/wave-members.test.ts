import { expect, test } from 'vitest';
import type { Action } from './observation.ts';
import { INITIAL_STATE, type PlanState } from './plan-state.ts';
import { step } from './step.ts';
import { World, type WorldEvent } from './testing-world.ts';
import { membersOf } from './wave-members.ts';
import type { PlanSpec, WaveSize, WaveSpec } from './wave-spec.ts';

const HOUR_MS = 3_600_000;

function wave(name: string, size: WaveSize, changes: Partial<WaveSpec> = {}): WaveSpec {
  return { name, size, soakMs: 0, approvals: 0, analyses: 0, maxConcurrency: undefined, ...changes };
}

function planOf(...waves: WaveSpec[]): PlanSpec {
  return {
    waves,
    ...{ maxFailures: { count: 0 }, maxUnreachable: { count: 0 }, progressDeadlineMs: HOUR_MS, onFailure: 'Pause' },
    ...{ paused: false, abort: false, rollback: false, resume: 0, promotePast: undefined },
  };
}

/** A plan in a world: after each event it makes steps until it waits. */
class Course {
  readonly world: World;
  readonly spec: PlanSpec;
  state: PlanState = INITIAL_STATE;
  #actions: readonly Action[] = [];

  constructor(spec: PlanSpec, proposed: readonly string[]) {
    this.spec = spec;
    this.world = new World(proposed);
    this.after();
  }

  after(...events: WorldEvent[]): this {
    for (const event of [...events, { type: 'wait', ms: 0 } as const]) {
      this.world.apply(event, this.#actions, this.state.targets);
      let ms = event.type === 'wait' ? event.ms : 0;
      for (let isNew = true; isNew; ms = 0) {
        const next = step(this.spec, this.state, this.world.observations, ms);
        ({ state: this.state, actions: this.#actions } = next);
        isNew = next.transitions.length > 0;
      }
    }
    return this;
  }

  withdraw(...ids: readonly string[]): this {
    return this.after(...ids.map((id): WorldEvent => ({ type: 'withdraw', id })));
  }

  propose(...ids: readonly string[]): this {
    return this.after(...ids.map((id): WorldEvent => ({ type: 'propose', id, isOther: true })));
  }

  /** Publishes what the plan has intended, and verifies it. */
  deliver(): this {
    const ids = [...this.state.targets.keys()];
    return this.after({ type: 'carryOut', most: 100 }, { type: 'verify', ids, result: 'Verified' });
  }

  members(name: string): string[] {
    return membersOf(this.state, name).map(({ id }) => id);
  }

  /** The next ones of the order that are in no wave. */
  waiting(): string[] {
    return [...this.state.targets.values()].flatMap(({ id, phase }) => (phase === 'Pending' ? id : []));
  }

  /** Names of the waves that have started, with + if completed. */
  waves(): string[] {
    return this.state.waves.map(({ name, completedMs }) => (completedMs === undefined ? name : `${name}+`));
  }
}

const CANARY = [
  wave('canary', { percent: 1 }, { soakMs: 24 * HOUR_MS, analyses: 1 }),
  wave('rest', { percent: 100 }),
] as const;

test('a wave whose targets are removed before their approval takes the next ones, and keeps its soak and its analysis', () => {
  const course = new Course(planOf(...CANARY), ['c1', 'c2', 'c3', 'c4']);
  const removed: string[] = [];
  for (let left = 4; left > 2; left -= 1) {
    const [first = ''] = course.members('canary');
    removed.push(first);
    course.withdraw(first);
    expect(course.waves()).toEqual(['canary']);
    expect(course.members('canary')).toHaveLength(1);
  }
  expect(new Set(removed).size).toBe(2);
  course.deliver().after({ type: 'wait', ms: 23 * HOUR_MS }, { type: 'carryOut', most: 1 });
  course.after({ type: 'analyse', phase: 'Successful' });
  expect(course.waves()).toEqual(['canary']);
  course.after({ type: 'wait', ms: HOUR_MS });
  expect(course.waves()).toEqual(['canary+', 'rest']);
});

test('without a target left a wave waits for the next one that joins, however it was removed', () => {
  const course = new Course(planOf(...CANARY), ['c1', 'c2']);
  course.withdraw('c1', 'c2').after({ type: 'wait', ms: 48 * HOUR_MS });
  expect([course.waves(), course.members('canary'), course.state.phase]).toEqual([['canary'], [], 'Running']);
  course.propose('c2', 'c1');
  expect(course.waves()).toEqual(['canary']);
  expect(course.members('canary')).toHaveLength(1);
});

test('a wave that is emptied while the waves before have its part is not over, also if its targets are proposed again', () => {
  const course = new Course(
    planOf(
      ...[wave('canary', { count: 1 }), wave('half', { percent: 50 }, { soakMs: HOUR_MS })],
      ...[wave('rest', { percent: 100 })],
    ),
    ['c1', 'c2', 'c3', 'c4'],
  );
  course.deliver();
  const half = course.members('half');
  expect(half).toHaveLength(1);
  course.withdraw(...course.waiting(), ...half);
  expect(course.waves()).toEqual(['canary+', 'half']);
  course.propose(...half);
  // One of two is approved already, so that 50 % has no room, and the wave that follows must not begin.
  expect([course.waves(), course.members('half')]).toEqual([['canary+', 'half'], []]);
  course.propose('c8', 'c9');
  expect(course.members('half')).toHaveLength(1);
});

test('a wave of which some targets were approved before the others were removed is verified by those', () => {
  const course = new Course(
    planOf(
      wave('half', { percent: 50 }, { soakMs: HOUR_MS, maxConcurrency: { count: 1 } }),
      wave('rest', { percent: 100 }),
    ),
    ['c1', 'c2', 'c3', 'c4'],
  );
  course.after({ type: 'carryOut', most: 1 });
  const open = [...course.state.targets.values()].filter(({ published }) => published === undefined);
  course.withdraw(...open.map(({ id }) => id));
  expect(course.members('half')).toHaveLength(1);
  course.propose('c8');
  expect(course.waves()).toEqual(['half']);
  course.deliver().after({ type: 'wait', ms: HOUR_MS - 1 });
  expect(course.waves()).toEqual(['half']);
  course.after({ type: 'wait', ms: 1 });
  expect(course.waves()).toEqual(['half+', 'rest']);
});

test('a proposal of another workspace takes the place of the first one in its wave', () => {
  const course = new Course(planOf(...CANARY), ['c1', 'c2', 'c3']);
  const [first = ''] = course.members('canary');
  course.world.apply({ type: 'withdraw', id: first }, [], course.state.targets);
  course.propose(first);
  expect(course.members('canary')).toEqual([first]);
  expect(course.state.targets.get(first)?.revision).toBe(`${first}.w2`);
  expect(course.waves()).toEqual(['canary']);
});

test('a wave that finds no target when it starts is completed at once; a plan without targets does not start', () => {
  const spec = planOf(wave('half', { percent: 50 }), wave('same', { percent: 50 }), wave('rest', { percent: 100 }));
  const course = new Course({ ...spec, paused: true }, ['c1', 'c2']);
  course.withdraw('c1', 'c2');
  const started = new Course(spec, ['c1', 'c2']).deliver();
  expect(started.waves()).toEqual(['half+', 'same+', 'rest']);
  const empty = new Course(spec, []);
  empty.state = { ...course.state, phase: 'Pending' };
  empty.after();
  expect([empty.state.targets.size, empty.waves()]).toEqual([2, []]);
});

test('targets that are removed make the part of a wave smaller before its approvals, and what is approved stays', () => {
  const ids = Array.from({ length: 16 }, (_, number) => `c${number}`);
  const course = new Course(
    planOf(wave('quarter', { percent: 25 }, { maxConcurrency: { count: 1 } }), wave('rest', { percent: 100 })),
    ids,
  );
  const members = course.members('quarter');
  expect(members).toHaveLength(4);
  course.withdraw(...ids.filter((id) => !members.includes(id)));
  expect(course.members('quarter')).toHaveLength(1);
  course.deliver();
  expect(course.waves()).toEqual(['quarter+', 'rest']);
  const approved = new Course(planOf(wave('quarter', { percent: 25 }), wave('rest', { percent: 100 })), ids);
  approved.after({ type: 'carryOut', most: 3 });
  approved.withdraw(...approved.waiting());
  expect(approved.members('quarter')).toHaveLength(3);
});

test('targets that join later do not enlarge the part of those before, also if there are fewer of these by then', () => {
  const first = ['c1', 'c2', 'c3', 'c4'];
  const later = Array.from({ length: 12 }, (_, number) => `j${number}`);
  const course = new Course(planOf(wave('quarter', { percent: 25 }), wave('rest', { percent: 100 })), first);
  expect(course.members('quarter')).toHaveLength(1);
  course.propose(...later);
  expect(course.members('quarter').filter((id) => first.includes(id))).toHaveLength(1);
  // The plan as a whole has its percentage.
  expect(course.members('quarter')).toHaveLength(4);
  const mixed = new Course(planOf(wave('half', { percent: 50 }), wave('rest', { percent: 100 })), first);
  mixed.propose(...later).withdraw(...mixed.waiting().filter((id) => first.includes(id)));
  expect(mixed.members('half').filter((id) => first.includes(id))).toHaveLength(1);
});

test('a verified wave does not grow, so that proposals do not start its soak again', () => {
  const course = new Course(planOf(...CANARY), ['c1']).deliver();
  for (let number = 0; number < 150; number += 1)
    course.world.apply({ type: 'propose', id: `j${number}`, isOther: false }, [], course.state.targets);
  course.after();
  expect(course.members('canary')).toEqual(['c1']);
  expect(course.state.waves[0]?.verifiedMs).toBeDefined();
});

test('keys of the order are those of the start', () => {
  const spec = planOf(wave('one', { count: 1 }, { approvals: 1 }));
  const course = new Course(spec, ['c1', 'c2', 'c3']);
  const keys = () => [...course.state.targets.values()].map(({ order }) => order.key);
  const before = keys();
  course.after({ type: 'approveWave' });
  const start = keys();
  expect(start).not.toEqual(before);
  const [first] = course.members('one');
  expect(course.state.targets.get(first ?? '')?.order.key).toBe(start.toSorted()[0]);
  course.propose('c9');
  expect(keys().slice(0, 3)).toEqual(start);
});

test('a wave that becomes smaller keeps what joined first, and takes nothing that joined later in its place', () => {
  const course = new Course(planOf(wave('one', { percent: 60 })), ['a', 'b', 'c', 'e', 'h']);
  course.after({ type: 'deselect', ids: ['i'] }, { type: 'propose', id: 'i', isOther: false });
  course.after({ type: 'propose', id: 'd', isOther: false });
  const before = membersOf(course.state, 'one').map(({ id }) => id);
  expect(before).toContain('d');
  const others = ['a', 'b', 'c'].filter((id) => !before.includes(id));
  course.after({ type: 'deselect', ids: others });
  const after = membersOf(course.state, 'one').map(({ id }) => id);
  expect(after).toHaveLength(3);
  expect(before).toEqual(expect.arrayContaining(after));
});
