import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { isRecord } from '../../src/package/model/krm/krm.ts';
import { workloadClusterKind } from '../../src/resource/kinds/infra/workload-cluster.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { corpus, corpusMissing, corpusPackages } from '../../test/support/corpus.ts';
import { fixture } from '../../test/support/fixture.ts';
import { skipFor } from '../../test/support/skip.ts';
import { packageVariantController } from './package-variant-controller.ts';

/** The texts of a folder that have an object of the kind, in a file of any format. */
function textsWith(kind: string, folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .filter((text) => new RegExp(`^kind: *['"]?${kind}['"]? *$`, 'm').test(text));
}

test('the PackageVariants of real packages are admitted, and create the drafts that their fields specify', {
  ...skipFor(corpusMissing),
}, async () => {
  await using world = await fixture(new ManualClock());
  const { client, store, clock, registry } = world;
  await client.create(workloadClusterKind, {
    metadata: { name: 'example' },
    spec: { clusterName: 'edge-7', cnis: ['macvlan'] },
  });
  const texts = textsWith(packageVariantKind.kind, corpus);
  const parsed = texts
    .flatMap((text) => loadAll(text) as unknown[])
    .filter((object) => isRecord(object) && object.kind === packageVariantKind.kind)
    .map((object) => packageVariantKind.parse(object));
  expect(parsed.length).toBeGreaterThan(8);
  expect(parsed.length).toBeGreaterThanOrEqual(texts.length);
  // The packages have none; their first one has to be tested here too.
  expect(textsWith(packageVariantSetKind.kind, corpus)).toEqual([]);
  expect(parsed.flatMap(({ unknownFields }) => unknownFields)).toEqual([]);
  const variants = parsed.map(({ object }) => object);
  const packages = new Map(corpusPackages().map((pack) => [pack.name, pack.files]));
  // The catalog packages are on the main branch of their repositories, without tags.
  for (const repo of new Set(variants.map(({ spec }) => spec.upstream.repo))) {
    const path = await world.bare(repo);
    const here = new Set(
      variants.filter(({ spec }) => spec.upstream.repo === repo).map(({ spec }) => spec.upstream.package),
    );
    for (const name of here)
      for (const [file, data] of packages.get(name) ?? [])
        await world.push(path, { [`${name}/${file}`]: data.toString() });
    await world.register(repo, { repo: path });
  }
  for (const repo of new Set(variants.map(({ spec }) => spec.downstream.repo)))
    await world.register(repo, { deployment: true });

  const controller = packageVariantController({ client, store, clock, kinds: registry });
  let created = 0;
  for (const variant of variants) {
    const { name } = variant.metadata;
    await client.create(packageVariantKind, variant as never);
    for (let round = 0; round < 2; round += 1)
      await controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
    const { status } = await client.get(packageVariantKind, { namespace: 'default', name });
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const { upstream, downstream, annotations, pipeline } = variant.spec;
    if (!packages.has(upstream.package)) {
      // Not part of the corpus.
      expect(ready).toMatchObject({ status: 'False', message: 'invalid packagevariant object' });
      continue;
    }
    expect(ready, JSON.stringify(status)).toMatchObject({ status: 'True' });
    created += 1;
    const draft = store.get(`${downstream.repo}.${downstream.package}.packagevariant-1`);
    expect(draft.record).toMatchObject({ annotations, ownerReferences: [{ name }] });
    expect(draft.kptfile?.metadata?.name).toBe(downstream.package);
    expect(draft.kptfile?.upstreamLock?.git).toMatchObject({
      directory: upstream.package,
      ref: upstream.workspaceName,
    });
    const [first] = pipeline?.mutators ?? [];
    expect(draft.kptfile?.pipeline?.mutators?.[0]).toEqual({ ...first, name: `PackageVariant.${name}..0` });
    expect(store.list({ repository: downstream.repo, package: downstream.package })).toHaveLength(1);
    const cluster = (await store.content(draft.name)).files.get('workload-cluster.yaml')?.toString();
    if (cluster === undefined) continue;
    expect(cluster).toContain('clusterName: edge-7');
    expect(cluster).toContain('kpt.dev/injected-resource: example');
    expect(draft.kptfile?.status?.conditions).toContainEqual({
      type: 'config.injection.WorkloadCluster.workload-cluster',
      status: 'True',
      reason: 'ConfigInjected',
      message: 'injected resource "example" from cluster',
    });
  }
  expect(created).toBeGreaterThan(4);
});
