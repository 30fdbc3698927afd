import { expect, test, vi } from 'vitest';
import { approvalController } from '../../../controllers/approval/approval-controller.ts';
import { ANNA, fixture } from '../../../test/support/fixture.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { ObjectReaders } from './object-readers.ts';
import { planHolds } from './plan-holds.ts';

const UPSTREAM = { repo: 'blueprints', package: 'web' };

test('an automatic approval reads the plans again, and lists no variants; a plan that was created a moment before holds', async () => {
  await using world = await fixture();
  await world.register('apps');
  const { client, store } = world;
  const variantSet = await client.create(packageVariantSetKind, {
    metadata: { name: 'fleet' },
    spec: { upstream: UPSTREAM, targets: [{ repositories: [{ name: 'apps' }] }] },
  });
  const { apiVersion, kind, metadata } = variantSet;
  const set = { apiVersion, kind, name: 'fleet', uid: metadata.uid, controller: true };
  await client.create(packageVariantKind, {
    metadata: { name: 'web', ownerReferences: [set] },
    spec: { upstream: UPSTREAM, downstream: { repo: 'apps', package: 'web' } },
  });
  await client.create(packagePolicyKind, { metadata: { name: 'all' }, spec: { approval: { automatic: true } } });
  const plan = (name: string) => ({
    metadata: { name, namespace: 'default' },
    spec: { selector: { variantSet: name }, waves: [{ name: 'all', percent: 100 }] },
  });
  await client.create(wavePlanKind, plan('other'));
  const readers = new ObjectReaders({ client, clock: systemClock });
  await readers.start();
  try {
    const holds = planHolds({ store, readers: () => readers, client });
    const recorder = world.recorder('controller:approval');
    const controller = approvalController({ client, store, clock: systemClock, recorder, holds });
    const propose = async (path: 'apps/db/w1' | 'apps/web/w1') => {
      const { name } = await world.draft(path);
      await world.settle(name);
      await store.update(name, { action: 'propose' }, ANNA);
      return name;
    };
    const [db, web] = [await propose('apps/db/w1'), await propose('apps/web/w1')];
    const reconcile = (name: string) =>
      controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
    const lists = vi.spyOn(client, 'list');
    await reconcile(db);
    expect(store.get(db).lifecycle).toBe('Published');
    expect(lists.mock.calls.map(([of]) => of.kind)).toEqual(['WavePlan']);
    await client.create(wavePlanKind, plan('fleet'));
    await reconcile(web);
    expect(store.get(web).lifecycle).toBe('Proposed');
    expect((await world.events(web)).join('\n')).toMatch(/^ApprovalBlocked: WavePlan fleet holds it/m);
    expect(new Set(lists.mock.calls.map(([of]) => of.kind))).toEqual(new Set(['WavePlan', 'Event']));
  } finally {
    await readers.stop();
  }
});
