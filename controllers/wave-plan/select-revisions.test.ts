import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { type VariantBench, variantBench } from '../../test/support/variant-bench.ts';
import { waveExplainer } from './explain-wave.ts';
import { heldEarlier, holdingPlan } from './holding-plan.ts';
import { readSelection } from './select-revisions.ts';
import { wavePlanController } from './wave-plan-controller.ts';

const SURROUNDINGS = { resolvers: [], disabled: [], running: true, now: 0, actor: 'anna' };

test('a plan selects by variant set, blueprint, labels and names; why says which wave a revision waits for', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await variantBench(world);
  await bench.variant({ labels: { tier: 'edge' } });
  const { client, store } = world;
  const { apiVersion, kind, metadata } = await client.create(packageVariantSetKind, {
    metadata: { name: 'fleet' },
    spec: { upstream: { repo: 'blueprints', package: 'web' }, targets: [{ repositories: [{ name: 'edge' }] }] },
  });
  const set = { apiVersion, kind, name: 'fleet', uid: metadata.uid, controller: true };
  const variant = { namespace: 'default', name: 'web-edge' };
  await client.patch(packageVariantKind, variant, { metadata: { ownerReferences: [set] } as never });
  await bench.reconcile();
  const revision = await store.update('edge.web.packagevariant-1', { action: 'propose' }, ANNA);
  if (revision === undefined) throw new Error('it was not proposed');
  const plan = (selector: object) =>
    wavePlanKind.complete({
      metadata: { name: 'web', namespace: 'default' },
      spec: { selector, waves: [{ name: 'all', percent: 100 }] },
    });
  const selects = async (selector: object) =>
    (await readSelection(plan(selector), { client, store })).isSelected(revision);
  const blueprint = { repository: 'blueprints', package: 'web' };
  for (const selector of [
    {},
    { variantSet: 'fleet' },
    { blueprint },
    { blueprint: { ...blueprint, revision: 1 }, variantSet: 'fleet', repositories: ['edge'] },
    { packageSelector: { matchLabels: { tier: 'edge' } } },
  ])
    expect(await selects(selector), JSON.stringify(selector)).toBe(true);
  for (const selector of [
    { variantSet: 'other' },
    { blueprint: { ...blueprint, revision: 2 } },
    { blueprint: { ...blueprint, package: 'db' } },
    { packageSelector: { matchLabels: { tier: 'core' } } },
    { repositories: ['blueprints'] },
  ])
    expect(await selects(selector), JSON.stringify(selector)).toBe(false);

  const explain = async () => {
    const evaluation = await store.evaluate(`default/${revision.name}`);
    return waveExplainer({ client, store }).explain({ evaluation } as never, SURROUNDINGS);
  };
  expect(await explain()).toEqual({});
  await client.create(wavePlanKind, plan({ variantSet: 'fleet' }));
  expect((await holdingPlan(revision, { client, store }))?.metadata.name).toBe('web');
  expect(await explain()).toEqual({
    reasons: [
      {
        reason: 'WaitsForWave',
        message: 'WavePlan web selects it and has not recorded it yet; the plan is Pending',
        since: '2026-01-01T00:00:00Z',
        resolvedBy:
          'WavePlan web in its waves, users who may change or end it, or users who may approve the revision ahead of its wave',
      },
    ],
    next: ['sluice wave get web'],
  });
  await client.patch(wavePlanKind, { namespace: 'default', name: 'web' }, { spec: { abort: true } });
  expect(await explain()).toEqual({});
});

describe('a plan holds', () => {
  const WAVES = [{ name: 'all', percent: 100, approval: { required: 1, from: ['ben'] } }];
  const EDI = { ...ANNA, actor: { name: 'edi' } };
  const without = (text: string | undefined) =>
    Buffer.from((text ?? '').replace(/^upstream:\n(?: .*\n)+/m, '').replace(/^upstreamLock:\n(?: .*\n)+/m, ''));
  let world: Fixture;
  let bench: VariantBench;
  beforeEach(async () => {
    world = await fixture(new ManualClock());
    bench = await variantBench(world);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const plan = (selector: object, name = 'web') =>
    world.client.create(
      wavePlanKind,
      wavePlanKind.complete({ metadata: { name, namespace: 'default' }, spec: { selector, waves: WAVES } }),
    );
  /** Has the controller of plans, as a process that has just started, record what it observes. */
  const observe = async (name = 'web') => {
    const { client, store, clock } = world;
    const analyses = { start: async () => undefined, read: async () => undefined } as never;
    const controller = wavePlanController({ client, store, clock, analyses, probe: {} as never });
    await controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
  };
  const holderOf = async (name: string) => (await holdingPlan(world.store.get(name), world))?.metadata.name;
  const isSelected = async (name: string) =>
    (
      await readSelection(await world.client.get(wavePlanKind, { namespace: 'default', name: 'web' }), world)
    ).isSelected(world.store.get(name));

  /** A variant of the set `fleet` with a proposed draft. */
  const proposedVariant = async () => {
    await bench.variant();
    const { apiVersion, kind, metadata } = await world.client.create(packageVariantSetKind, {
      metadata: { name: 'fleet' },
      spec: { upstream: { repo: 'blueprints', package: 'web' }, targets: [{ repositories: [{ name: 'edge' }] }] },
    });
    const set = { apiVersion, kind, name: 'fleet', uid: metadata.uid, controller: true };
    await patchVariant({ metadata: { ownerReferences: [set] } });
    await bench.reconcile();
    const name = 'edge.web.packagevariant-1';
    await world.store.update(name, { action: 'propose' }, ANNA);
    return name;
  };
  const patchVariant = (patch: object) =>
    world.client.patch(packageVariantKind, { namespace: 'default', name: 'web-edge' }, patch as never);

  test.each([
    ['leaves its set', () => patchVariant({ metadata: { ownerReferences: [] } })],
    ['loses its set', () => world.client.delete(packageVariantSetKind, { namespace: 'default', name: 'fleet' })],
  ])('a target whose variant %s, until it ends', async (_what, change) => {
    await plan({ variantSet: 'fleet' });
    const name = await proposedVariant();
    await observe();
    await change();
    expect(await isSelected(name)).toBe(false);
    expect(await holderOf(name)).toBe('web');
    // Once the target is skipped too.
    await observe();
    expect(await holderOf(name)).toBe('web');
    const evaluation = await world.store.evaluate(`default/${name}`);
    const { reasons } = await waveExplainer(world).explain({ evaluation } as never, SURROUNDINGS);
    expect(reasons?.[0]?.message).toMatch(
      /^WavePlan web holds it, since its package is one of its targets, and does not approve it; it is free when/,
    );
    const later = await plan({}, 'web-later');
    expect([...(await heldEarlier([world.store.get(name)], later, world)).values()]).toMatchObject([
      { metadata: { name: 'web' } },
    ]);
    await world.client.patch(wavePlanKind, { namespace: 'default', name: 'web-later' }, { spec: { abort: true } });
    await world.client.patch(wavePlanKind, { namespace: 'default', name: 'web' }, { spec: { abort: true } });
    expect(await holderOf(name)).toBeUndefined();
  });

  test('a target that a label of its variant takes out, and not one of an earlier plan with its name', async () => {
    await plan({ packageSelector: { matchLabels: { tier: 'edge' } } });
    await bench.variant({ labels: { tier: 'edge' } });
    await bench.reconcile();
    const name = 'edge.web.packagevariant-1';
    await world.store.update(name, { action: 'propose' }, ANNA);
    await observe();
    await patchVariant({ spec: { labels: { tier: 'lab' } } });
    await bench.reconcile();
    expect(world.store.get(name).record?.labels).toMatchObject({ tier: 'lab' });
    expect(await holderOf(name)).toBe('web');
    const key = { namespace: 'default', name: 'web' };
    await world.client.patch(wavePlanKind, key, { metadata: { finalizers: null } } as never);
    await world.client.delete(wavePlanKind, key);
    await plan({ packageSelector: { matchLabels: { tier: 'edge' } } });
    expect(await holderOf(name)).toBeUndefined();
  });

  test('a revision that a user made in a package of its set, which it does not approve', async () => {
    await plan({ variantSet: 'fleet' });
    await world.store.update(await proposedVariant(), { action: 'approve' }, { ...ANNA, actor: { name: 'ben' } });
    const source = { type: 'copy', source: 'edge.web.packagevariant-1' } as const;
    const own = await world.store.create('edge', { package: 'web', workspace: 'own', source }, EDI);
    await world.store.update(own.name, { action: 'propose' }, ANNA);
    expect(await isSelected(own.name)).toBe(false);
    expect(await holderOf(own.name)).toBe('web');
  });

  test('what a Kptfile with an excluded label names', async () => {
    await plan({ packageSelector: { matchExpressions: [{ key: 'exempt', operator: 'DoesNotExist' }] } });
    const own = await world.draft('edge/own/v1', { 'a.yaml': 'a: 1\n' });
    const kptfile = (await bench.text(own.name, 'Kptfile')).replace(
      'metadata:\n',
      'metadata:\n  labels:\n    exempt: x\n',
    );
    await world.store.change(own.name, { files: new Map([['Kptfile', Buffer.from(kptfile)]]) }, EDI);
    expect(world.store.get(own.name).kptfile?.metadata?.labels).toEqual({ exempt: 'x' });
    expect(await isSelected(own.name)).toBe(false);
    expect(await holderOf(own.name)).toBe('web');
  });

  test('a clone of its blueprint whose Kptfile names no upstream any more, and a copy of that', async () => {
    await plan({ blueprint: { repository: 'blueprints', package: 'web', revision: 1 } });
    const blueprint = world.store.list({ repository: 'blueprints', package: 'web' }).find((one) => one.revision === 1);
    if (blueprint === undefined) throw new Error('there is no blueprint');
    const source = { type: 'clone', upstream: { revision: blueprint.name } } as const;
    const { name } = await world.store.create('edge', { package: 'own', workspace: 'v1', source }, EDI);
    expect(await holderOf(name)).toBe('web');
    const kptfile = without(await bench.text(name, 'Kptfile'));
    await world.store.change(name, { files: new Map([['Kptfile', kptfile]]) }, EDI);
    expect(world.store.get(name).kptfile?.upstream).toBeUndefined();
    expect(await isSelected(name)).toBe(false);
    expect(await holderOf(name)).toBe('web');
    await world.publish(name);
    const copy = { type: 'copy', source: name } as const;
    const copied = await world.store.create('edge', { package: 'own', workspace: 'v2', source: copy }, EDI);
    expect(await holderOf(copied.name)).toBe('web');
    await world.client.patch(
      wavePlanKind,
      { namespace: 'default', name: 'web' },
      { spec: { selector: { blueprint: { repository: 'blueprints', package: 'web', revision: 2 } } } },
    );
    expect(await holderOf(copied.name)).toBeUndefined();
  });
});

test('what the selections of many plans depend on is read once', async () => {
  await using world = await fixture(new ManualClock());
  const { store } = world;
  const reads: string[] = [];
  const client = new Proxy(world.client, {
    get: (target, name, receiver) => {
      const value = Reflect.get(target, name, receiver);
      if (name !== 'list' && name !== 'find') return typeof value === 'function' ? value.bind(target) : value;
      return (kind: Kind, ...rest: unknown[]) => {
        reads.push(`${name} ${kind.kind}`);
        return value.call(target, kind, ...rest);
      };
    },
  });
  const created: Stored<WavePlan>[] = [];
  for (let number = 0; number < 8; number += 1)
    created.push(
      await world.client.create(wavePlanKind, {
        metadata: { name: `plan-${number}` },
        spec: { selector: { packages: [`p${number}`] }, waves: [{ name: 'all', percent: 100 }] },
      }),
    );
  await world.register('apps');
  const draft = await world.draft('apps/p6/w1', { 'a.yaml': 'a: 1\n' });
  const [last] = created.slice(-1);
  if (last === undefined) throw new Error('none was created');
  const revision = store.get(draft.name);
  const holders = await heldEarlier([revision], last, { client, store });
  expect(holders.get(revision)?.metadata.name).toBe('plan-6');
  expect(reads).toEqual(['list WavePlan', 'list Repository']);
});
