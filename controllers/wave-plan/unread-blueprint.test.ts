import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, type WaveBench, waveBench } from '../../test/support/wave-bench.ts';
import { holdingPlan } from './holding-plan.ts';

let world: Fixture;
let bench: WaveBench;

/** Three packages that were made from a blueprint in another repository. */
beforeEach(async () => {
  world = await fixture(new ManualClock());
  bench = await waveBench(world);
  await world.register('blueprints');
  const draft = await world.draft('blueprints/web/v1', { 'a.yaml': 'a: 1\n' });
  await world.settle(draft.name);
  const blueprint = await world.publish(draft.name);
  for (const name of ['a', 'b', 'c']) {
    const source = { type: 'clone', upstream: { revision: blueprint.name } } as const;
    const made = await world.store.create('apps', { package: name, workspace: 'w1', source }, ANNA);
    await world.settle(made.name);
    await world.store.update(made.name, { action: 'propose' }, ANNA);
  }
});
afterEach(() => world[Symbol.asyncDispose]());

/** As after a restart while the Git host of the blueprint does not respond: its Repository is there, and is not open. */
async function restartWithoutBlueprint(): Promise<void> {
  await world.store.remove('default/blueprints');
  bench.restart();
  await bench.settle();
}

async function phasesOf(spec: object): Promise<string[]> {
  const selector = { repositories: ['apps'], blueprint: { repository: 'blueprints', package: 'web' } };
  await bench.plan({ ...BY_CONDITION, selector, ...spec });
  await bench.settle();
  return bench.phases();
}
const kinds = (phases: readonly string[]) => phases.map((one) => one.slice(2)).sort();

test.each([
  ['in a wave in progress', [{ name: 'all', percent: 100, maxConcurrency: 1 }], 'Assigned'],
  [
    'before their wave',
    [
      { name: 'canary', count: 1 },
      { name: 'all', percent: 100 },
    ],
    'Pending',
  ],
])('a blueprint that cannot be read takes no target out of the plan: %s', async (_place, waves, phase) => {
  const before = await phasesOf({ waves });
  expect(kinds(before)).toEqual(['Approved', phase, phase].sort());
  await restartWithoutBlueprint();
  expect(await bench.phases()).toEqual(before);
  const { message } = (await bench.read()).status ?? {};
  expect(message).toContain('what it selects is known once repository blueprints can be read');
  await bench.verify();
  await bench.settle();
  expect((await bench.read()).status?.phase).toBe('Running');
  for (const one of world.store.list({ repository: 'apps', lifecycle: 'Proposed' }))
    expect((await holdingPlan(one, world))?.metadata.name).toBe('web');
  const repository = await world.client.get(repositoryKind, { namespace: 'default', name: 'blueprints' });
  await world.client.delete(repositoryKind, { namespace: 'default', name: 'blueprints' });
  await world.register('blueprints', { repo: repository.spec.git?.repo ?? '' });
  for (let round = 0; round < 3; round += 1) {
    await bench.settle();
    await bench.verify();
  }
  await bench.settle();
  expect(bench.published()).toHaveLength(3);
  expect((await bench.read()).status?.phase).toBe('Completed');
});

test('a plan does not start before its blueprint can be read, and a deleted one holds what was made from it', async () => {
  await world.store.remove('default/blueprints');
  await phasesOf({ waves: [{ name: 'all', percent: 100 }] });
  expect((await bench.read()).status).toMatchObject({
    phase: 'Pending',
    message: expect.stringMatching(/^it starts once repository blueprints can be read/),
  });
  await world.client.delete(wavePlanKind, { namespace: 'default', name: 'web' });
  await bench.settle();
  const ready = findCondition((await bench.read()).status?.conditions, 'Ready');
  expect(ready?.message).toContain('what was made from its blueprint in blueprints, which cannot be read');
});
