import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { variantBench } from '../../test/support/variant-bench.ts';
import { waveExplainer } from './explain-wave.ts';
import { holdingPlan } from './holding-plan.ts';
import { readSelection } from './select-revisions.ts';

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
        message:
          'WavePlan web selects it and has not recorded it yet; the plan is Pending; users who may approve it can do so ahead of its wave',
      },
    ],
    next: ['sluice wave get web'],
  });
  await client.patch(wavePlanKind, { namespace: 'default', name: 'web' }, { spec: { abort: true } });
  expect(await explain()).toEqual({});
});
