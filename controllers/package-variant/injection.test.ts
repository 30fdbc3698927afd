import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { type VariantBench, variantBench } from '../../test/support/variant-bench.ts';

const DRAFT = 'edge.web.packagevariant-1';

let bench: VariantBench;
beforeEach(async () => {
  bench = await variantBench(await fixture(new ManualClock()));
});
afterEach(() => bench.world[Symbol.asyncDispose]());

const change = (name: string, files: Readonly<Record<string, string>>) =>
  bench.world.store.change(
    name,
    { files: new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])) },
    ANNA,
  );

describe('injection', () => {
  const point = (mode: string, name = 'site') => `# the site
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}
  annotations:
    kpt.dev/config-injection: ${mode}
data:
  region: none # by default
`;
  const TYPE = 'config.injection.ConfigMap.site';
  const condition = (name: string) =>
    bench.world.store.get(name).kptfile?.status?.conditions?.find(({ type }) => type === TYPE);
  const gate = async (name: string) =>
    (await bench.world.store.evaluate(name)).gates.find(({ type }) => type === TYPE)?.state;

  test('writes data of a ConfigMap, a condition and a gate, which are current after every change', async () => {
    await bench.publishBlueprint({ 'site.yaml': point('required') });
    await bench.variant({
      injectors: [
        { kind: 'Other', name: 'x' },
        { kind: 'ConfigMap', name: 'edge-1' },
      ],
    });
    await bench.reconcile();
    expect(condition(DRAFT)).toMatchObject({
      status: 'False',
      reason: 'NoResourceSelected',
      message: 'no resource matched any injection selector for this injection point',
    });
    expect(await gate(DRAFT)).toBe('NotTrue');
    await bench.world.client.create(configMapKind, { metadata: { name: 'edge-1' }, data: { region: 'us' } });
    await bench.reconcile();
    expect(condition(DRAFT)).toMatchObject({
      status: 'True',
      reason: 'ConfigInjected',
      message: 'injected resource "edge-1" from cluster',
    });
    expect(await bench.text(DRAFT, 'site.yaml')).toContain('# the site\n');
    expect(await bench.text(DRAFT, 'site.yaml')).toContain('kpt.dev/injected-resource: edge-1');
    expect(await bench.text(DRAFT, 'site.yaml')).toContain('region: us');
    expect(await gate(DRAFT)).toBe('Open');
    // A change elsewhere leaves the gate open; one of the file is judged again.
    await change(DRAFT, { 'more.yaml': 'a: 1\n' });
    expect(await gate(DRAFT)).toBe('Open');
    await change(DRAFT, { 'site.yaml': `# mine\n${await bench.text(DRAFT, 'site.yaml')}` });
    expect(await gate(DRAFT)).not.toBe('Open');
    await bench.reconcile();
    expect(await gate(DRAFT)).toBe('Open');
    const { etag } = bench.world.store.get(DRAFT);
    await bench.reconcile();
    expect(bench.world.store.get(DRAFT).etag).toBe(etag);
    // What is published gets a new draft when the object changes.
    await bench.world.publish(DRAFT);
    await bench.reconcile();
    expect(bench.downstream()).toEqual(['packagevariant-1 Published v1']);
    await bench.world.client.patch(configMapKind, { namespace: 'default', name: 'edge-1' }, { data: { region: 'eu' } });
    await bench.reconcile();
    expect(await bench.text('edge.web.packagevariant-2', 'site.yaml')).toContain('region: eu');
    expect(await gate('edge.web.packagevariant-2')).toBe('Open');
  });

  test('an optional one has no gate; without injectors none is injected', async () => {
    await bench.publishBlueprint({ 'site.yaml': point('optional') });
    await bench.variant();
    await bench.reconcile();
    expect(condition(DRAFT)).toMatchObject({ status: 'False', message: 'no injectors defined' });
    expect(await gate(DRAFT)).toBeUndefined();
  });

  test('wrong injection points are reported, and nothing is created', async () => {
    await bench.publishBlueprint({ 'site.yaml': point('maybe') });
    await bench.variant();
    await bench.reconcile();
    expect((await bench.conditions())[1]).toBe(
      'Ready=False/Error: errors in injection points: site.yaml: ConfigMap site has the annotation kpt.dev/config-injection with the value "maybe"; use required or optional',
    );
    await bench.publishBlueprint({ 'site.yaml': point('optional'), 'more.yaml': point('optional') });
    await bench.reconcile();
    expect((await bench.conditions())[1]).toContain(
      `duplicate injection conditionType "${TYPE}" (more.yaml and site.yaml)`,
    );
    expect(bench.downstream()).toEqual([]);
  });

  test('a kind that is not served is reported by the condition', async () => {
    const resource = point('required').replace('v1', 'example.com/v1').replace('ConfigMap', 'Site');
    await bench.publishBlueprint({ 'site.yaml': resource });
    await bench.variant({ injectors: [{ kind: 'Site', name: 'edge-1' }] });
    await bench.reconcile();
    expect(bench.world.store.get(DRAFT).kptfile?.status?.conditions).toContainEqual({
      type: 'config.injection.Site.site',
      status: 'False',
      reason: 'NoResourceSelected',
      message: 'no in-cluster resources of type example.com/v1.Site',
    });
  });
});
