import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { anna, robot, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import type { Limiter } from '../../../foundation/concurrency/limiter.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { BackgroundLimits } from './background-limits.ts';
import { RequestSlots } from './request-slots.ts';

/** Takes all places; returns what frees them. */
async function occupy(limiter: Limiter): Promise<() => void> {
  const releases: (() => void)[] = [];
  for (;;) {
    const late = new AbortController();
    const taken = limiter.acquire(late.signal).then(
      (release) => releases.push(release),
      () => 0,
    );
    setImmediate(() => late.abort());
    if ((await taken) === 0) return () => void releases.map((release) => release());
  }
}

test('what controllers do waits for places that all repositories share, and what users do for none', async () => {
  await using scratch = await scratchRepository();
  const background = new BackgroundLimits(scratch.clock);
  const { store } = await scratch.open({ background });
  const draft = (name: string) => ({ package: name, workspace: 'v1', source: { type: 'init' } }) as const;
  const names = () => store.list().map(({ key }) => key.package);

  const freePlans = await occupy(background.plans);
  const made = store.create('packages', draft('robot'), robot);
  await store.create('packages', draft('user'), anna);
  await store.update('packages.user.v1', { action: 'propose' }, anna);
  expect(names()).toEqual(['user']);
  freePlans();
  await made;
  expect(names()).toEqual(['robot', 'user']);

  const freeWrites = await occupy(background.writes);
  const proposal = store.update('packages.robot.v1', { action: 'propose' }, robot);
  // It needs no place, and a write of this repository that waits for one goes with it.
  await store.update('packages.user.v1', { action: 'reject' }, anna);
  freeWrites();
  await proposal;
  expect(store.list().map(({ lifecycle }) => lifecycle)).toEqual(['Proposed', 'Draft']);
});

test('a user does not wait for the revision of a request that waits for a place among plans or writes', async () => {
  await using scratch = await scratchRepository();
  const background = new BackgroundLimits(scratch.clock);
  const { store } = await scratch.open({ background });
  const [{ name }, { name: other }] = [
    await store.create('packages', { package: 'a', workspace: 'v1', source: { type: 'init' } }, anna),
    await store.create('packages', { package: 'b', workspace: 'v1', source: { type: 'init' } }, anna),
  ];
  const label = (key: string) => ({ metadata: { labels: { [key]: '' } } });
  const labels = (of = name) => Object.keys(store.get(of).record?.labels ?? {});

  const freePlans = await occupy(background.plans);
  const planned = store.change(name, label('robot'), robot);
  await turn();
  await store.change(name, label('user'), anna);
  expect(labels()).toEqual(['user']);
  freePlans();
  await planned;
  expect(labels()).toEqual(['robot']);

  const freeWrites = await occupy(background.writes);
  // One waits in the queue of writes when the user's request comes, the other for a plan that still runs.
  const write = store.update(other, { action: 'propose' }, robot);
  const later = store.change(name, label('later'), robot);
  await turn();
  await store.change(name, label('user'), anna);
  expect(labels()).toEqual(['user']);
  await Promise.all([write, later]);
  expect(store.get(other).lifecycle).toBe('Proposed');
  freeWrites();
});

test('a write waits for a place again when no request of a user is under way', async () => {
  const clock = new ManualClock();
  const background = new BackgroundLimits(clock);
  const slots = new RequestSlots({ namespace: 'default', clock, maxWrites: 64, background });
  const free = await occupy(background.writes);
  const closing = new AbortController();
  const outcome = () => {
    const acquired = slots.acquireWrite(closing.signal);
    return acquired.then(
      () => 'acquired',
      () => 'none',
    );
  };
  const first = outcome();
  const held = await slots.occupy('a', robot, { plans: false });
  expect(await Promise.race([first, turn('waits')])).toBe('waits');
  // It waits for the revision.
  const user = slots.occupy('a', anna, { plans: true });
  expect([await first, await outcome()]).toEqual(['none', 'none']);
  held.free();
  const slot = await user;
  await expect(slots.occupy('a', anna, { plans: true })).rejects.toThrow('in progress');
  expect(await outcome()).toBe('none');
  slot.free();
  const [next, last] = [outcome(), outcome()];
  expect(await Promise.race([next, last, turn('waits')])).toBe('waits');
  free();
  expect([await next, await last]).toEqual(['acquired', 'acquired']);
  const full = await occupy(background.writes);
  const closed = outcome();
  closing.abort();
  expect(await closed).toBe('none');
  full();
});

test('slow writes of controllers keep their places while a request of a user is under way, unless that one is slow too', async () => {
  const clock = new ManualClock();
  const background = new BackgroundLimits(clock);
  const slots = new RequestSlots({ namespace: 'default', clock, maxWrites: 64, background });
  const user = await slots.occupy('a', anna, { plans: false });
  const free = await occupy(background.writes);
  const begun: string[] = [];
  const write = (name: string) => background.writes.run(async () => void begun.push(name));
  const first = write('first');
  await clock.advanceAsync(1000);
  expect(begun).toEqual([]);
  user.free();
  await first;

  const slow = await slots.occupy('a', anna, { plans: false });
  const second = write('second');
  await clock.advanceAsync(1000);
  expect(begun).toEqual(['first']);
  await clock.advanceAsync(1000);
  await second;
  slow.free();
  free();
  await write('third');
  expect(begun).toEqual(['first', 'second', 'third']);
});

test('what waits for a place delays no write of its repository, and what runs is waited for', async () => {
  const clock = new ManualClock();
  const background = new BackgroundLimits(clock);
  const slots = new RequestSlots({ namespace: 'default', clock, maxWrites: 64, background });
  const free = await occupy(background.plans);
  const occupied = slots.occupy('a', robot, { plans: true });
  await turn();
  expect(slots.planned).toBeUndefined();
  free();
  const slot = await occupied;
  const work = Promise.withResolvers<void>();
  const plan = slot.plan(() => work.promise);
  const { planned } = slots;
  expect(planned).toBeDefined();
  work.resolve();
  await Promise.all([plan, planned]);
  expect(slots.planned).toBeUndefined();
  slot.free();
});
