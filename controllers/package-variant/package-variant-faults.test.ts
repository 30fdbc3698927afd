import { expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { fixture } from '../../test/support/fixture.ts';
import { variantBench } from '../../test/support/variant-bench.ts';

test('each write may fail, before or after it took effect: another attempt completes it, with one draft', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await variantBench(world);
  const WRITES = ['create', 'change', 'update', 'updateStatus', 'delete'];
  /** The n-th write fails. */
  const failing = (target: object, counter: { left: number }, after: boolean): never =>
    new Proxy(target, {
      get: (object, property) => {
        const value = Reflect.get(object, property) as unknown;
        if (property === 'as') return () => failing(object, counter, after);
        if (typeof value !== 'function') return value;
        if (!WRITES.includes(String(property))) return value.bind(object);
        return async (...request: unknown[]) => {
          const context = request.at(-1);
          const isDryRun = typeof context === 'object' && context !== null && Reflect.get(context, 'dryRun') === true;
          if (isDryRun || counter.left-- !== 0) return value.apply(object, request);
          if (after) await value.apply(object, request);
          throw new SluiceError('Unavailable', 'killed');
        };
      },
    }) as never;
  await world.client.create(configMapKind, { metadata: { name: 'edge-1' }, data: { region: 'us' } });
  const site =
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: site\n  annotations:\n    kpt.dev/config-injection: required\ndata: {}\n';
  await bench.publishBlueprint({ 'site.yaml': site });
  let killed = 0;
  for (const after of [false, true]) {
    for (let write = 0; write < 4; write += 1) {
      const name = `v${after ? 'a' : 'b'}${write}`;
      await bench.variant({ downstream: { repo: 'edge', package: name }, injectors: [{ name: 'edge-1' }] }, name);
      const kill = async () => {
        const counter = { left: write };
        const run = bench.on({
          store: failing(world.store, counter, after),
          client: failing(world.client, counter, after),
        });
        await run(name).catch((error: unknown) => {
          if (!(error instanceof Error && error.message === 'killed')) throw error;
          killed += 1;
        });
      };
      const draft = `edge.${name}.packagevariant-1`;
      await kill();
      await bench.reconcile(name);
      expect(bench.downstream(name)).toEqual(['packagevariant-1 Draft']);
      expect(world.store.get(draft).tip.parents).toEqual([world.store.repository('edge').index.mainHead]);
      await world.client.patch(
        packageVariantKind,
        { namespace: 'default', name },
        { spec: { labels: { a: 'b' }, packageContext: { data: { k: 'v' } } } },
      );
      await kill();
      await bench.reconcile(name);
      expect(await bench.text(draft, 'package-context.yaml')).toContain('k: v');
      await world.publish(draft);
      await world.client.patch(
        packageVariantKind,
        { namespace: 'default', name },
        { spec: { packageContext: { data: { k: 'w' } } } },
      );
      await kill();
      await bench.reconcile(name);
      expect(bench.downstream(name)).toEqual(['packagevariant-1 Published v1', 'packagevariant-2 Draft']);
      await world.client.delete(packageVariantKind, { namespace: 'default', name });
      await kill();
      await bench.reconcile(name);
      expect(bench.downstream(name)).toEqual(['packagevariant-1 DeletionProposed v1']);
      expect(await world.client.find(packageVariantKind, { namespace: 'default', name })).toBeUndefined();
    }
  }
  // Each of the four steps has two writes at least.
  expect(killed).toBeGreaterThanOrEqual(16);
});
