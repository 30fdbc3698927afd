import { expect, test } from 'vitest';
import type { ExplainedRevision, Surroundings } from '../../src/package/api/explain/explainer.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { DEPLOYMENT, variantBench } from '../../test/support/variant-bench.ts';
import { packageVariantExplainer } from './explain-package-variant.ts';

test('an open revision names its variant, and why that cannot keep it up to date', async () => {
  await using world = await fixture();
  const bench = await variantBench(world);
  await bench.variant();
  await bench.reconcile();
  const key = { namespace: 'default', name: 'web-edge' };
  const name = 'edge.web.packagevariant-1';
  const explain = async () => {
    const evaluation = await world.store.evaluate(name);
    return packageVariantExplainer(world).explain({ evaluation } as ExplainedRevision, {} as Surroundings);
  };
  const belongs = 'it belongs to PackageVariant web-edge, which keeps it up to date with blueprints/web';
  expect(await explain()).toEqual({ reasons: [{ reason: 'OwnedByPackageVariant', message: `${belongs}, now v1` }] });
  // A change of the draft that upstream has overwritten.
  const files = (image: string) => ({ 'web.yaml': DEPLOYMENT.replace('web:v1', image) });
  await world.store.change(name, { files: new Map([['web.yaml', Buffer.from(files('web:own')['web.yaml'])]]) }, ANNA);
  await bench.publishBlueprint(files('web:v2'));
  await bench.reconcile();
  const image = 'Deployment/web spec.template.spec.containers[web].image (was web:own) in web.yaml';
  const overwritten = {
    reason: 'LocalChangesOverwritten',
    message: `${name} at ${world.store.get(name).commit.slice(0, 12)}: changed on both sides, and overwritten by upstream: ${image}`,
  };
  expect(await explain()).toEqual({
    reasons: [{ reason: 'OwnedByPackageVariant', message: `${belongs}, now v2` }, overwritten],
  });
  await world.client.patch(packageVariantKind, key, { spec: { upstream: { revision: 9 } } });
  await bench.reconcile();
  expect(await explain()).toEqual({
    reasons: [
      {
        reason: 'OwnedByPackageVariant',
        message: `${belongs}, now v2; this fails: could not find upstream package revision blueprints/web with revision 9; change spec.upstream`,
      },
      overwritten,
    ],
  });
  await world.client.patch(packageVariantKind, key, { metadata: { finalizers: null } });
  await world.client.delete(packageVariantKind, key);
  expect(await explain()).toMatchObject({ reasons: [{ reason: 'PackageVariantMissing' }] });
  await world.publish(name);
  expect(await explain()).toEqual({});
});

test('what a proposal waits for is no version that it is up to date with', async () => {
  await using world = await fixture();
  const bench = await variantBench(world);
  await bench.variant();
  await bench.reconcile();
  const name = 'edge.web.packagevariant-1';
  await world.store.update(name, { action: 'propose' }, ANNA);
  await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2') });
  await bench.reconcile();
  const evaluation = await world.store.evaluate(name);
  const message = `it belongs to PackageVariant web-edge, which made it from blueprints/web v1; blueprints/web v2 follows when ${name}, which is Proposed, is approved or rejected`;
  const explained = packageVariantExplainer(world).explain({ evaluation } as ExplainedRevision, {} as Surroundings);
  expect(await explained).toEqual({ reasons: [{ reason: 'OwnedByPackageVariant', message }] });
});
