import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { waveTargetKind } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, type WaveBench, waveBench } from '../../test/support/wave-bench.ts';

let world: Fixture;
let bench: WaveBench;

beforeEach(async () => {
  world = await fixture();
  bench = await waveBench(world);
});
afterEach(() => world[Symbol.asyncDispose]());

const ALL = { waves: [{ name: 'all', percent: 100 }], ...BY_CONDITION };

test('a plan that is created later does not pass what an earlier one waits for', async () => {
  await bench.propose('a', 'b');
  await bench.plan({ ...ALL, waves: [{ name: 'all', percent: 100, approval: { manual: true } }] }, 'careful');
  await bench.settle('careful');
  await bench.plan({ ...ALL, selector: { packages: ['a'] } }, 'hasty');
  await bench.settle('hasty');
  expect(bench.published()).toEqual([]);
  const [held] = await bench.targets('hasty');
  expect(held?.record?.reason).toContain(
    'WavePlan careful selects it too and was created before: it decides, until it ends or is aborted with "sluice wave abort careful"',
  );
  await bench.change({ abort: true }, 'careful');
  await bench.settle('careful');
  bench.monotonicMs += 20_000;
  await bench.settle('hasty');
  expect(bench.published()).toEqual(['a v1']);
});

test('of plans that are created at the same time, the name decides', async () => {
  await bench.propose('a');
  await bench.plan(ALL, 'b-plan');
  await bench.plan(ALL, 'a-plan');
  await bench.settle('b-plan');
  expect(bench.published()).toEqual([]);
  await bench.settle('a-plan');
  expect(bench.published()).toEqual(['a v1']);
});

test('the record of a target stays as long as its plan, also when users delete it', async () => {
  await bench.propose('a', 'b');
  await bench.plan({ ...ALL, waves: [{ name: 'one', count: 1 }, ...ALL.waves] });
  await bench.settle();
  const before = await bench.phases();
  expect(before.filter((phase) => phase.endsWith('Approved'))).toHaveLength(1);
  for (const { metadata } of await bench.targets())
    await world.client.delete(waveTargetKind, { namespace: 'default', name: metadata.name });
  bench.restart();
  await bench.settle();
  expect(await bench.phases()).toEqual(before);
  await bench.verify();
  await bench.settle();
  expect(bench.published()).toHaveLength(2);

  await bench.change({ abort: true });
  await bench.settle();
  await world.client.delete(wavePlanKind, { namespace: 'default', name: 'web' });
  await bench.settle();
  expect(await world.client.find(wavePlanKind, { namespace: 'default', name: 'web' })).toBeUndefined();
  expect(await bench.targets()).toEqual([]);
});

describe('the records of a plan', () => {
  const KEY = { namespace: 'default', name: 'web' };
  beforeEach(async () => {
    await bench.propose('a');
    await bench.plan(ALL);
    await bench.settle();
    expect(await bench.phases()).toEqual(['a Approved']);
  });
  const deleteTargets = async () => {
    for (const { metadata } of await bench.targets())
      await world.client.delete(waveTargetKind, { namespace: 'default', name: metadata.name });
  };
  const orphan = async () => {
    for (const target of await bench.targets())
      await world.client.update(waveTargetKind, { ...target, metadata: { ...target.metadata, ownerReferences: [] } });
  };

  test('can be deleted after a plan whose finalizer a user has removed', async () => {
    const plan = await bench.read();
    await world.client.update(wavePlanKind, { ...plan, metadata: { ...plan.metadata, finalizers: [] } });
    await world.client.delete(wavePlanKind, KEY);
    await bench.settle();
    await deleteTargets();
    expect(await bench.targets()).toEqual([]);
  });

  test('can be deleted after a plan that left them without an owner', async () => {
    await orphan();
    await bench.change({ abort: true });
    await world.client.delete(wavePlanKind, KEY);
    await bench.settle();
    await deleteTargets();
    expect(await bench.targets()).toEqual([]);
  });

  test('make room for those of a later plan with the same name', async () => {
    await orphan();
    await bench.change({ abort: true });
    await world.client.delete(wavePlanKind, KEY);
    await bench.settle();
    await bench.proposeNext('a');
    // Times of creation have whole seconds.
    await new Promise((resolve) => setTimeout(resolve, 1001));
    await bench.plan(ALL);
    await bench.settle();
    expect(bench.published()).toEqual(['a v1', 'a v2']);
    expect(await bench.phases()).toEqual(['a Approved']);
  });
});

test('a template that does not exist is reported before its wave is published', async () => {
  await bench.propose('a');
  const waves = [{ name: 'all', percent: 100, approval: { manual: true }, analysis: [{ template: 'errors' }] }];
  await bench.plan({ ...ALL, waves });
  await bench.settle();
  expect((await bench.read()).status?.message).toMatch(
    /waits for 1 of 1 approvals .*; AnalysisTemplate errors does not exist, which a wave needs: create it$/,
  );
});
