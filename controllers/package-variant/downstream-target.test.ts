import { expect, test } from 'vitest';
import { builtIns } from '../../src/function/built-in/index.ts';
import { Catalog } from '../../src/function/catalog/catalog.ts';
import { DEFAULT_FUNCTION_LIMITS } from '../../src/function/model/pipeline.ts';
import { runPipeline } from '../../src/function/pipeline/run-pipeline.ts';
import { FunctionRenderer } from '../../src/function/renderer/function-renderer.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { DEPLOYMENT, variantBench } from '../../test/support/variant-bench.ts';

const LABELS = 'ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0';
const CONFORM = 'ghcr.io/kptdev/krm-functions-catalog/kubeconform:v0.1.1';
const mutators = [{ image: LABELS, configMap: { tier: 'web' } }];
const DRAFT = 'rendered.web.packagevariant-1';

async function bench() {
  const world = await fixture();
  const catalog = new Catalog(builtIns);
  const runner = {
    run: (input: Parameters<typeof runPipeline>[0], signal: AbortSignal) =>
      runPipeline(input, { catalog, external: undefined, limits: DEFAULT_FUNCTION_LIMITS, signal }),
    close: async () => undefined,
  };
  const variants = await variantBench(world);
  await world.register('rendered', { renderer: new FunctionRenderer({ runner, catalog, rules: () => [] }) });
  await variants.variant({ downstream: { repo: 'rendered', package: 'web' }, pipeline: { mutators } });
  const key = { namespace: 'default', name: 'web-edge' };
  return {
    ...{ ...variants, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() },
    change: (spec: object) => world.client.patch(packageVariantKind, key, { spec } as never),
    edit: (path: string, text: string) =>
      world.store.change(DRAFT, { files: new Map([[path, Buffer.from(text)]]) }, ANNA),
    target: async () => (await world.client.get(packageVariantKind, key)).status?.downstreamTargets,
  };
}

test('the status has what each function did when the draft was made, changed and rendered again', async () => {
  await using b = await bench();
  await b.reconcile();
  const success = { result: { exitCode: 0, items: [{ image: LABELS, exitCode: 0 }] } };
  expect(await b.target()).toMatchObject([{ name: DRAFT, renderStatus: success }]);
  expect(await b.text(DRAFT, 'web.yaml')).toContain('tier: web');
  // It stays where nothing is rendered.
  await b.reconcile();
  expect(await b.target()).toMatchObject([{ renderStatus: success }]);

  // A file that a validator refuses: the draft is kept, and the status says why it could not be rendered.
  await b.change({ pipeline: { mutators, validators: [{ image: CONFORM }] } });
  await b.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('replicas: 1', 'replicas: many') });
  await b.reconcile();
  const [failed] = (await b.target()) ?? [];
  expect(failed?.renderStatus?.error).toContain('spec.replicas: Invalid value');
  expect(failed?.renderStatus?.result).toMatchObject({
    exitCode: 1,
    items: [{ image: LABELS }, { image: CONFORM, exitCode: 1 }],
  });

  // A user repairs it: the condition of the draft is newer than what the variant saw.
  await b.edit('web.yaml', (await b.text(DRAFT, 'web.yaml')).replace('replicas: many', 'replicas: 2'));
  await b.reconcile();
  expect(await b.target()).toEqual([{ name: DRAFT, renderStatus: { result: { exitCode: 0 } } }]);
  await b.edit('web.yaml', (await b.text(DRAFT, 'web.yaml')).replace('replicas: 2', 'replicas: some'));
  await b.reconcile();
  const [again] = (await b.target()) ?? [];
  expect(again?.renderStatus).toEqual({
    result: { exitCode: 1 },
    error: expect.stringContaining('spec.replicas: Invalid value'),
  });
});

test('the status of a package without functions has no result, and what the Kptfile keeps counts', async () => {
  await using b = await bench();
  await b.change({ pipeline: { mutators: [] } });
  await b.reconcile();
  expect(await b.target()).toEqual([{ name: DRAFT }]);
  const kptfile = await b.text(DRAFT, 'Kptfile');
  await b.edit('Kptfile', kptfile.replace(/^status:\n/m, 'status:\n  renderStatus:\n    errorSummary: broken\n'));
  await b.reconcile();
  expect(await b.target()).toMatchObject([{ renderStatus: { result: { exitCode: 1 }, error: 'broken' } }]);
});
