import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { notingReads } from '../../test/support/noting-reads.ts';
import { runs } from '../../test/support/runs.ts';
import { DEPLOYMENT, type VariantBench, variantBench } from '../../test/support/variant-bench.ts';
import { DraftRates } from '../draft-rates.ts';
import { packageVariantController } from './package-variant-controller.ts';

const POINT =
  'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: site\n  annotations:\n    kpt.dev/config-injection: required\ndata: {}\n';

let world: Fixture;
let bench: VariantBench;
let reconciled: string[];
beforeEach(async () => {
  world = await fixture();
  bench = await variantBench(world);
  reconciled = [];
});
afterEach(() => world[Symbol.asyncDispose]());

async function start(): Promise<void> {
  const { client, store, clock, registry } = world;
  // Random users delete more drafts in a minute than may be opened.
  const rates = new DraftRates({ ...clock, monotonic: () => Date.now() * 60_000 });
  const noting = notingReads(client, packageVariantKind, (name) => reconciled.push(name));
  world.manager.addController(packageVariantController({ client: noting, store, clock, kinds: registry, rates }));
  await world.manager.start();
}

async function after(act: () => Promise<unknown>): Promise<string[]> {
  await world.manager.idle();
  reconciled = [];
  await act();
  await world.manager.idle();
  return [...new Set(reconciled)].sort();
}

test('an event wakes only the variants that it concerns', async () => {
  const other = await world.draft('blueprints/api/w1', { 'site.yaml': POINT });
  await world.publish(other.name);
  await start();
  const upstream = { repo: 'blueprints', package: 'api' };
  await bench.variant({}, 'web-1');
  await bench.variant({ downstream: { repo: 'edge', package: 'web-2' } }, 'web-2');
  for (const name of ['api-1', 'api-2'])
    await bench.variant(
      { upstream, downstream: { repo: 'edge', package: name }, injectors: [{ name: `for-${name}` }] },
      name,
    );
  await world.manager.idle();
  for (const path of ['web', 'web-2', 'api-1', 'api-2']) expect(bench.downstream(path)).toHaveLength(1);

  expect(await after(() => world.draft('edge/unrelated/w1'))).toEqual([]);
  expect(await after(() => world.draft('blueprints/web/w9').catch(() => undefined))).toEqual([]);
  const edit = { files: new Map([['a.yaml', Buffer.from('a: 1\n')]]) };
  expect(await after(() => world.store.change('edge.web-2.packagevariant-1', edit, ANNA))).toEqual(['web-2']);
  expect(await after(() => bench.publishBlueprint({ 'b.yaml': 'b: 1\n' }))).toEqual(['web-1', 'web-2']);
  const map = (name: string) => world.client.create(configMapKind, { metadata: { name }, data: { a: 'b' } });
  expect(await after(() => map('unrelated'))).toEqual([]);
  expect(await after(() => map('for-api-2'))).toEqual(['api-2']);
  expect(await bench.text('edge.api-2.packagevariant-1', 'site.yaml')).toContain('a: b');
  const labels = { metadata: { labels: { a: 'b' } } };
  const key = { namespace: 'default', name: 'for-api-2' };
  expect(await after(() => world.client.patch(configMapKind, key, labels))).toEqual([]);
  expect(await after(() => world.client.delete(packageVariantKind, { namespace: 'default', name: 'web-1' }))).toEqual([
    'web-1',
  ]);
  expect(bench.downstream('web')).toEqual([]);
});

/** What users and other programs do, in any order. */
const EVENTS = ['blueprint', 'edit', 'propose', 'approve', 'reject', 'delete', 'variant', 'object', 'wait'] as const;

test('random orders of events open at most one draft per variant, and converge', async () => {
  await start();
  await bench.publishBlueprint({ 'site.yaml': POINT });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...EVENTS), { minLength: 3, maxLength: 14 }), async (events) => {
      run += 1;
      const name = `v${run}`;
      const key = { namespace: 'default', name };
      await bench.variant({ downstream: { repo: 'edge', package: name }, injectors: [{ name }] }, name);
      let step = 0;
      /** The commit and content that users added last, which nothing may remove. */
      let mine: string | undefined;
      const open = () =>
        world.store.list({ repository: 'edge', package: name }).filter(({ revision }) => revision === 0);
      const act: Record<(typeof EVENTS)[number], () => Promise<unknown>> = {
        blueprint: () => bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', `web:r${run}-${step}`) }),
        edit: async () => {
          const [draft] = open();
          if (draft?.lifecycle !== 'Draft') return;
          const files = new Map([['mine.yaml', Buffer.from(`step: ${step}\n`)]]);
          await world.store.change(draft.name, { files }, ANNA);
          mine = `step: ${step}\n`;
        },
        propose: () => transition('propose'),
        approve: () => transition('approve'),
        reject: () => transition('reject'),
        delete: async () => {
          const [draft] = open();
          if (draft === undefined) return;
          await world.store.update(draft.name, { action: 'delete' }, ANNA);
          mine = undefined;
        },
        variant: () =>
          world.client.patch(packageVariantKind, key, { spec: { packageContext: { data: { step: String(step) } } } }),
        object: async () => {
          const data = { step: String(step) };
          const known = await world.client.find(configMapKind, key);
          if (known === undefined) await world.client.create(configMapKind, { metadata: { name }, data });
          else await world.client.update(configMapKind, { ...known, data });
        },
        wait: () => world.manager.idle(),
      };
      const transition = async (action: 'propose' | 'approve' | 'reject') => {
        const [draft] = open();
        if (draft !== undefined)
          await world.store.update(draft.name, { action }, { ...ANNA, actor: { name: 'berta' } });
      };
      for (const event of events) {
        step += 1;
        // A user who acts at the same time as the controller, or too late, is refused.
        await act[event]().catch((error: unknown) => {
          if (
            !/already in progress|cannot|it is |not found|has moved|gate|closed|conflict|Proposed/i.test(String(error))
          )
            throw error;
        });
        expect(open().length).toBeLessThanOrEqual(1);
      }
      await world.manager.idle();
      expect(open().length).toBeLessThanOrEqual(1);
      if (open().some(({ lifecycle }) => lifecycle === 'Proposed')) {
        await world.store.update(open()[0]?.name ?? '', { action: 'reject' }, ANNA);
        await world.manager.idle();
      }
      // Everything has arrived, and nothing moves any more.
      const rows = world.store.list({ repository: 'edge', package: name }).filter(({ revision }) => revision >= 0);
      const [newest] = [...open(), ...rows.filter(({ latest }) => latest)];
      const latest = world.store.list({ repository: 'blueprints', package: 'web' }).find((row) => row.latest);
      expect(newest?.kptfile?.upstreamLock?.git?.commit).toBe(latest?.commit);
      const spec = (await world.client.get(packageVariantKind, key)).spec.packageContext?.data?.step;
      if (spec !== undefined)
        expect(await bench.text(newest?.name ?? '', 'package-context.yaml')).toContain(`step: "${spec}"`);
      if (mine !== undefined) expect(await bench.text(newest?.name ?? '', 'mine.yaml')).toContain(mine);
      const settled = rows.map(({ etag }) => etag);
      await bench.reconcile(name);
      await world.manager.idle();
      expect(
        world.store
          .list({ repository: 'edge', package: name })
          .filter(({ revision }) => revision >= 0)
          .map(({ etag }) => etag),
      ).toEqual(settled);
      await world.client.patch(packageVariantKind, key, { spec: { deletionPolicy: 'orphan' } });
      await world.client.delete(packageVariantKind, key);
      await world.manager.idle();
    }),
    { numRuns: runs(200, 8) },
  );
});
