import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { parseJsonPath } from '../../src/resource/schema/structural/json-path.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, type WaveBench, waveBench } from '../../test/support/wave-bench.ts';
import { approvalController } from '../approval/approval-controller.ts';

const KEY = { namespace: 'default', name: 'web' };
const BERTA = { ...ANNA, actor: { name: 'berta' } };

let world: Fixture;
let bench: WaveBench;

beforeEach(async () => {
  world = await fixture();
  bench = await waveBench(world);
  await world.client.create(packagePolicyKind, { metadata: { name: 'auto' }, spec: { approval: { automatic: true } } });
  await bench.propose('a', 'b', 'c');
  await expect.poll(() => world.policyFor(world.store.get('apps.a.w1')).automatic).toEqual(['auto']);
  await bench.plan({
    waves: [
      { name: 'one', count: 1 },
      { name: 'all', percent: 100 },
    ],
    ...BY_CONDITION,
  });
  await bench.settle();
});
afterEach(() => world[Symbol.asyncDispose]());

const find = () => world.client.find(wavePlanKind, KEY);
/** As a cluster prints it, which has the paths only, and as the embedded server does. */
async function printed() {
  const plan = await bench.read();
  const columns = (wavePlanKind.printerColumns ?? []).filter(({ name }) => name === 'Phase' || name === 'Wave');
  const byPath = columns.map(({ name, jsonPath = '' }) => [name, parseJsonPath(jsonPath).first(plan)]);
  expect(byPath).toEqual(columns.map(({ name, value }) => [name, value(plan)]));
  return Object.fromEntries(byPath) as Record<string, unknown>;
}

/** Names of the proposals after the automatic approval has seen all of them. */
async function leftProposed(): Promise<string[]> {
  const { client, store } = world;
  const recorder = world.recorder('controller:approval');
  const controller = approvalController({ client, store, clock: systemClock, recorder });
  const proposed = () => store.list({ lifecycle: 'Proposed' }).map(({ name }) => name);
  for (const name of proposed())
    await controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
  return proposed().sort();
}

test('a plan that is deleted in flight holds what has had no wave, until users decide about it', async () => {
  expect(bench.published()).toHaveLength(1);
  expect(await printed()).toEqual({ Phase: 'Running', Wave: 'one' });
  const waiting = await leftProposed();
  expect(waiting).toHaveLength(2);
  await world.client.delete(wavePlanKind, KEY);
  expect(await bench.settle()).toBeGreaterThan(0);
  expect(await leftProposed()).toEqual(waiting);
  const { status } = await bench.read();
  expect(status?.message).toBe(
    `it is deleted, approves nothing any more, and holds 2 proposed revisions (${waiting.join(', ')}) until users approve or reject them, or a user who may approve ends the hold with "sluice wave abort web"`,
  );
  expect(findCondition(status?.conditions, 'Ready')).toMatchObject({ status: 'False', reason: 'DeletionHeld' });
  expect(await printed()).toEqual({ Phase: 'DeletionHeld', Wave: undefined });
  expect(await world.events('web')).toContainEqual(expect.stringMatching(/^DeletionHeld: /));
  // The verification of its wave begins no other one.
  await bench.verify();
  await bench.settle();
  bench.restart();
  await bench.settle();
  expect(await leftProposed()).toEqual(waiting);

  // Users can approve at any time; without a revision that it holds the plan is gone.
  const [first = '', second = ''] = waiting;
  await world.store.update(first, { action: 'approve' }, BERTA);
  await bench.settle();
  expect(await leftProposed()).toEqual([second]);
  await world.store.update(second, { action: 'reject' }, BERTA);
  await bench.settle();
  expect(await find()).toBeUndefined();
});

test('an abort ends the hold of a deleted plan, and policies decide about the rest', async () => {
  await world.client.delete(wavePlanKind, KEY);
  await bench.settle();
  await bench.change({ abort: true });
  await bench.settle();
  expect(await find()).toBeUndefined();
  expect(await leftProposed()).toEqual([]);
});

test('a plan that has ended is deleted at once', async () => {
  await bench.change({ abort: true });
  await bench.settle();
  await world.client.delete(wavePlanKind, KEY);
  await bench.settle();
  expect(await find()).toBeUndefined();
});

test('a plan that holds nothing is no plan in progress while other finalizers keep it', async () => {
  await bench.change({ abort: true });
  const { metadata, ...plan } = await bench.read();
  const finalizers = [...(metadata.finalizers ?? []), 'example.com/keep'];
  await world.client.update(wavePlanKind, { ...plan, metadata: { ...metadata, finalizers } });
  await world.client.delete(wavePlanKind, KEY);
  await bench.settle();
  expect(await printed()).toEqual({ Phase: 'Deleting', Wave: undefined });
  expect((await bench.read()).metadata.finalizers).toEqual(['example.com/keep']);
  await bench.settle();
  expect(await printed()).toEqual({ Phase: 'Deleting', Wave: undefined });
});
