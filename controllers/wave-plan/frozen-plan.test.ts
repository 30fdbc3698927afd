import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { freezesAt } from '../../src/package/model/policy/approval-rules.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, type WaveBench, waveBench } from '../../test/support/wave-bench.ts';

const NOW = Date.parse('2026-01-14T10:00:00Z');
const TWO = {
  waves: [
    { name: 'canary', count: 1, soak: '90s' },
    { name: 'all', percent: 100 },
  ],
  ...BY_CONDITION,
  progressDeadline: '1m',
};

let clock: ManualClock;
let world: Fixture;
let bench: WaveBench;

beforeEach(async () => {
  clock = new ManualClock(NOW);
  world = await fixture(clock);
  bench = await waveBench(world);
});
afterEach(() => world[Symbol.asyncDispose]());

async function start(spec: object = TWO): Promise<void> {
  await bench.propose('a', 'b', 'c');
  await bench.plan(spec);
  await bench.settle();
}

const freeze = (namespace = 'default', until?: string) =>
  world.client.create(freezeKind, {
    metadata: { name: 'stop', namespace },
    spec: { reason: 'core repair', ...(until === undefined ? {} : { until }) },
  });
const thaw = (namespace = 'default') => world.client.delete(freezeKind, { namespace, name: 'stop' });
const status = async () => (await bench.read()).status;

/** Time passes by both clocks while the plan is observed. */
async function pass(minutes: number): Promise<void> {
  for (let at = 0; at < minutes * 2; at += 1) {
    bench.monotonicMs += 30_000;
    clock.advance(30_000);
    await bench.settle();
  }
}

test.each(['default', 'sluice-system'])(
  'while a Freeze of %s is in force the time of the plan stops',
  async (where) => {
    await start();
    bench.monotonicMs += 30_000;
    await bench.settle();
    await freeze(where, '2026-01-14T10:10:00Z');
    await pass(9);
    const frozen = await bench.read();
    const text = `frozen by Freeze ${where}/stop since 2026-01-14T10:00:00Z until 2026-01-14T10:10:00Z (core repair)`;
    expect(frozen.status).toMatchObject({ phase: 'Running', elapsedMs: 30_000 });
    expect(frozen.status?.message).toContain(`${text}; wave canary: 0 of 1 targets verified`);
    expect(frozen.status?.freezes).toEqual([
      { namespace: where, name: 'stop', reason: 'core repair', until: '2026-01-14T10:10:00Z' },
    ]);
    expect(findCondition(frozen.status?.conditions, 'Frozen')).toMatchObject({
      status: 'True',
      message: expect.stringContaining(text),
    });
    expect(wavePlanKind.printerColumns.find(({ name }) => name === 'Frozen')?.value?.(frozen)).toBe('stop');
    expect((await bench.phases()).filter((one) => /Failed|Assigned/.test(one))).toEqual([]);
    // It is observed again at the end of the freeze; what passed until then does not count either.
    bench.monotonicMs += 30_000;
    expect(await bench.settle()).toBe(30_000);
    bench.monotonicMs += 30_000;
    clock.advance(60_000);
    await bench.settle();
    expect(await status()).toMatchObject({ elapsedMs: 30_000, message: 'wave canary: 0 of 1 targets verified' });
    expect((await status())?.freezes).toBeUndefined();
    expect(findCondition((await status())?.conditions, 'Frozen')?.status).toBe('False');
    expect((await world.events('web')).slice(1)).toEqual([
      expect.stringMatching(/^Frozen: nothing is approved, and the time of the plan stops: .*core repair/),
      'FreezeEnded: no Freeze is in force; the plan continues',
    ]);
    bench.monotonicMs += 30_000;
    await bench.settle();
    expect((await status())?.pause?.cause).toBe('MaxFailures');
  },
);

test('a soak does not go on in a freeze, and no wave begins; a target that becomes unhealthy in it starts the soak again', async () => {
  await start();
  await bench.verify();
  await bench.settle();
  await freeze();
  await pass(10);
  expect(bench.published()).toHaveLength(1);
  await thaw();
  await bench.settle();
  bench.monotonicMs += 60_000;
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  await freeze();
  await bench.verify(undefined, 'False');
  await bench.settle();
  await bench.verify();
  await bench.settle();
  await thaw();
  await bench.settle();
  expect(await status()).toMatchObject({ phase: 'Running', pauses: 0 });
  bench.monotonicMs += 60_000;
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  bench.monotonicMs += 30_000;
  await bench.settle();
  expect(bench.published()).toHaveLength(3);
});

test('onFailure rolls nothing back in a freeze; what is still bad at its end is rolled back then', async () => {
  await start({ ...TWO, onFailure: 'Rollback' });
  await freeze();
  await bench.verify(undefined, 'False');
  await pass(5);
  expect(await status()).toMatchObject({ phase: 'Running', targets: { failed: 1 } });
  await thaw();
  await bench.settle();
  expect((await status())?.phase).toBe('RolledBack');
});

test('a rollback that a user requests in a freeze is prepared, and published when the freeze has ended', async () => {
  await bench.propose('a');
  await world.store.update('apps.a.w1', { action: 'approve' }, { ...ANNA, actor: { name: 'berta' } });
  const name = await bench.proposeNext('a');
  await bench.plan(TWO);
  await bench.settle();
  await freeze();
  await expect.poll(() => world.policyFor(world.store.get(name)).freezes).toHaveLength(1);
  await bench.change({ rollback: true });
  await bench.settle();
  await pass(1);
  expect(await status()).toMatchObject({
    phase: 'RollingBack',
    message: expect.stringMatching(
      /core repair\); 1 targets are being rolled back; apps\/a: apps.a.rollback-v2 waits: .*stop/,
    ),
  });
  expect(world.store.get('apps.a.rollback-v2').lifecycle).toBe('Proposed');
  await thaw();
  await expect.poll(() => freezesAt(world.policyFor(world.store.get(name)).freezes, clock.now())).toEqual([]);
  await bench.settle();
  await bench.settle();
  expect((await status())?.phase).toBe('RolledBack');
  expect(bench.published()).toContain('a v3');
});

test('neither a restart nor a jump of a clock in a freeze adds to the time of the plan', async () => {
  await start();
  await freeze();
  await bench.settle();
  bench.monotonicMs += 50_000;
  bench.restart();
  bench.monotonicMs += 50_000;
  clock.advance(24 * 3_600_000);
  await bench.settle();
  bench.monotonicMs += 50_000;
  await thaw();
  await bench.settle();
  clock.advance(24 * 3_600_000);
  await bench.settle();
  expect(await status()).toMatchObject({ phase: 'Running', elapsedMs: 0 });
  expect((await status())?.freezes).toBeUndefined();
});

test('a plan that is created in a freeze records its targets, and begins when the freeze has ended', async () => {
  await freeze();
  await start();
  expect(await bench.phases()).toEqual(['a Pending', 'b Pending', 'c Pending']);
  expect((await status())?.phase).toBe('Pending');
  await thaw();
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
});
