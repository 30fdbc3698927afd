import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../../src/resource/object/condition.ts';
import { type Fixture, fixture } from '../../../test/support/fixture.ts';
import { BY_CONDITION, type WaveBench, waveBench } from '../../../test/support/wave-bench.ts';
import { specNotes } from '../describe-plan.ts';

const ALL = { waves: [{ name: 'all', percent: 100, approval: { manual: true } }] };

let world: Fixture;
let bench: WaveBench;
beforeEach(async () => {
  world = await fixture();
  bench = await waveBench(world);
});
afterEach(() => world[Symbol.asyncDispose]());

const condition = async (type: 'Selected' | 'Verifiable') => {
  const found = findCondition((await bench.read()).status?.conditions, type);
  return found && { status: found.status, reason: found.reason, message: found.message };
};

async function target(name: string, selector: object, more: object = {}): Promise<void> {
  const git = { repo: await world.bare(name) };
  await world.client.create(deliveryTargetKind, { metadata: { name }, spec: { selector, git, ...more } });
}

test('a selector that selects nothing says so, with the names that do not exist, until it selects something', async () => {
  await bench.propose('a', 'b');
  await bench.plan({ ...ALL, ...BY_CONDITION, selector: { repositories: ['app'], variantSet: 'fleet' } });
  await bench.settle();
  const message =
    'its selector selects none of the 2 Proposed revisions of its namespace; its selector names the repository app, which is not registered; did you mean apps?; its selector names the PackageVariantSet fleet, which does not exist; it starts once it selects one that is proposed: propose one, or correct spec.selector';
  expect(await condition('Selected')).toEqual({ status: 'False', reason: 'NothingSelected', message });
  expect(await world.events('web')).toEqual([`NothingSelected: ${message}`]);
  expect(specNotes(await bench.read())).toEqual([message]);
  await bench.settle();
  expect(await world.events('web')).toHaveLength(1);

  await bench.change({ selector: { repositories: ['apps'], variantSet: null } });
  await bench.settle();
  expect(await condition('Selected')).toEqual({
    status: 'True',
    reason: 'TargetsSelected',
    message: 'it has 2 targets',
  });
  expect(specNotes(await bench.read())).toEqual([]);
});

test('an empty selector says that it selects everything', async () => {
  await bench.propose('a', 'b', 'c');
  await bench.plan({ ...ALL, ...BY_CONDITION });
  await bench.settle();
  const message =
    'it has 3 targets: spec.selector is empty, so that it selects every revision that is proposed in its namespace';
  expect(await condition('Selected')).toEqual({ status: 'True', reason: 'EverythingSelected', message });
  expect(specNotes(await bench.read())).toEqual([message]);
});

test('a plan whose targets no engine reports on says so, with the next step', async () => {
  await bench.propose('a');
  await bench.plan({ ...ALL, selector: { repositories: ['apps'] } });
  await bench.settle();
  const next =
    'set spec.engine of a DeliveryTarget that delivers it, or name a condition or a probe in spec.verification; "sluice wave promote web" passes a wave without verification';
  const none = `nothing reports whether apps/a is healthy: no DeliveryTarget with spec.engine selects it; ${next}`;
  expect(await condition('Verifiable')).toEqual({ status: 'False', reason: 'NoReader', message: none });
  expect(await world.events('web')).toEqual([`NoReader: ${none}`]);

  await target('edge', {});
  await target('other', { packages: ['b'] }, { engine: { type: 'Flux' } });
  await bench.settle();
  expect((await condition('Verifiable'))?.message).toContain(
    'no DeliveryTarget with spec.engine selects it (without it: edge); ',
  );

  await target('read', { packages: ['a'] }, { engine: { type: 'Flux' } });
  await bench.settle();
  expect(await condition('Verifiable')).toEqual({ status: 'True', reason: 'ReadByEngines', message: '' });
  expect(await world.events('web')).toHaveLength(1);

  await bench.change({ verification: { deployed: { targets: ['edge'] } } });
  await bench.settle();
  expect((await condition('Verifiable'))?.message).toContain(
    'no DeliveryTarget of spec.verification.deployed (edge) with spec.engine',
  );
  await bench.change({ verification: { deployed: null, ...BY_CONDITION.verification } });
  await bench.settle();
  expect(await condition('Verifiable')).toBeUndefined();
});

test('a wave whose selector selects no target has a warning, since it is over at once', async () => {
  await bench.propose('a');
  await bench.plan({
    waves: [
      { name: 'canary', selector: { packages: ['aa'] } },
      { name: 'all', percent: 100 },
    ],
    ...BY_CONDITION,
  });
  await bench.settle();
  expect(await world.events('web')).toContain(
    'WaveStarted: wave canary has started with 0 targets: its selector selects none that is left; "sluice wave get web --targets" lists all',
  );
});

test('once an engine reports on the plan, DeliveryTargets are compared again only when the plan changes', async () => {
  await bench.propose('a');
  await target('read', {}, { engine: { type: 'Flux' } });
  await bench.plan({ ...ALL, selector: { repositories: ['apps'] } });
  await bench.settle();
  await world.client.delete(deliveryTargetKind, { namespace: 'default', name: 'read' });
  await bench.settle();
  expect(await condition('Verifiable')).toMatchObject({ status: 'True' });
  await bench.change({ maxFailures: 1 });
  await bench.settle();
  expect(await condition('Verifiable')).toMatchObject({ status: 'False' });
});

describe('a typing error in the selector of a plan in progress', () => {
  const SPEC = {
    waves: [
      { name: 'one', count: 1 },
      { name: 'all', percent: 100 },
    ],
    ...BY_CONDITION,
  };
  const SELECTED = { selector: { repositories: ['apps'] } };
  beforeEach(async () => {
    await bench.propose('a', 'b', 'c');
    await bench.plan({ ...SPEC, ...SELECTED });
    await bench.settle();
    expect(bench.published()).toHaveLength(1);
  });
  const phase = async () => (await bench.read()).status?.phase;

  test('is reported although the plan completes without the rest, which is back after the correction', async () => {
    await bench.change({ selector: { repositories: ['app'] } });
    await bench.verify();
    await bench.settle();
    expect(await phase()).toBe('Completed');
    const [first = ''] = bench.published();
    const rest = ['a', 'b', 'c'].filter((one) => !first.startsWith(one)).map((one) => `apps/${one}`);
    const message = `its selector names the repository app, which is not registered; did you mean apps?; correct spec.selector: 2 targets (${rest.join(', ')}), still proposed, would be back`;
    expect(await condition('Selected')).toEqual({ status: 'False', reason: 'NothingSelected', message });
    expect(specNotes(await bench.read())).toEqual([message]);
    expect(await world.events('web')).toContain(`NothingSelected: ${message}`);
    // A change that corrects nothing leaves it over.
    await bench.change({ maxFailures: 1 });
    bench.restart();
    await bench.settle();
    expect(await phase()).toBe('Completed');

    await bench.change(SELECTED);
    await bench.settle();
    expect(await phase()).toBe('Running');
    expect(await condition('Selected')).toMatchObject({ status: 'True', message: 'it has 3 targets' });
    expect(bench.published()).toHaveLength(3);
    await bench.verify();
    await bench.settle();
    const { status } = await bench.read();
    expect(status?.phase).toBe('Completed');
    expect(status?.waves.map(({ name, targets }) => [name, targets])).toEqual([
      ['one', 1],
      ['all', 2],
    ]);
    expect(status?.targets).toMatchObject({ total: 3, verified: 3, skipped: 0 });
    expect(specNotes(await bench.read())).toEqual([]);
  });

  test('of a completed plan is reported, and what the plan did stays', async () => {
    await bench.verify();
    await bench.settle();
    await bench.verify();
    await bench.settle();
    const before = (await bench.read()).status;
    expect(before).toMatchObject({ phase: 'Completed', targets: { verified: 3 } });
    await bench.change({ selector: { repositories: ['app'] } });
    await bench.settle();
    const message =
      'its selector names the repository app, which is not registered; did you mean apps?; correct spec.selector';
    expect(await condition('Selected')).toEqual({ status: 'False', reason: 'NothingSelected', message });
    const { status } = await bench.read();
    expect({ ...status, conditions: [], observedGeneration: 0 }).toEqual({
      ...{ ...before, conditions: [], observedGeneration: 0, elapsedMs: status?.elapsedMs },
    });
    await bench.change(SELECTED);
    await bench.settle();
    expect(await phase()).toBe('Completed');
    expect(await condition('Selected')).toMatchObject({ status: 'True', message: 'it has 3 targets' });
  });

  test('leaves a plan that is rolled back as it is', async () => {
    await bench.change({ selector: { packages: bench.published().map((text) => text.slice(0, 1)) } });
    await bench.verify();
    await bench.settle();
    await bench.change({ selector: { packages: ['a', 'b', 'c'] }, rollback: true });
    await bench.settle();
    expect(await phase()).toBe('RolledBack');
    expect(bench.published()).toHaveLength(1);
  });
});
