import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { workloadClusterKind } from '../../src/resource/kinds/infra/workload-cluster.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { type PackageVariantSet, packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { packageVariantController } from '../package-variant/package-variant-controller.ts';
import { packageVariantSetController } from './package-variant-set-controller.ts';

const CLUSTER =
  'apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: site\n  annotations:\n    kpt.dev/config-injection: required\nspec:\n  clusterName: example\n';
const ANNOTATIONS = { 'approval.nephio.org/policy': 'initial' };

/** The controllers of sets and variants, with a blueprint in the repository `catalog` of which these revisions are published. */
async function bench(packageName: string, revisions: number, files: Readonly<Record<string, string>>) {
  const world = await fixture(new ManualClock());
  const { client, store, clock, registry } = world;
  const catalog = await world.register('catalog');
  let { name } = await world.publish((await world.draft(`catalog/${packageName}/w1`, files)).name);
  for (let number = 2; number <= revisions; number += 1) {
    const source = { type: 'copy', source: name } as const;
    const draft = await store.create('catalog', { package: packageName, workspace: `w${number}`, source }, ANNA);
    await store.change(draft.name, { files: new Map([['n.txt', Buffer.from(`${number}`)]]) }, ANNA);
    ({ name } = await world.publish(draft.name));
  }
  const options = { client, store, clock, kinds: registry };
  const [sets, variants] = [packageVariantSetController(options), packageVariantController(options)];
  const context = { signal: new AbortController().signal, failures: 0 };
  return {
    ...{ world, catalog, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() },
    /** Admits the object as it is in a file, and lets the controllers do what it requests. Returns the drafts. */
    apply: async (manifest: object) => {
      const { object, unknownFields } = packageVariantSetKind.parse(manifest);
      expect(unknownFields).toEqual([]);
      await client.create(packageVariantSetKind, object as PackageVariantSet);
      await sets.reconcile({ namespace: 'default', name: object.metadata.name }, context);
      const made = (await client.list(packageVariantKind, { namespace: 'default' })).items;
      for (const { metadata } of made) await variants.reconcile({ namespace: 'default', name: metadata.name }, context);
      return store.list({ lifecycle: 'Draft' }).filter(({ key }) => key.repository !== 'catalog');
    },
  };
}

test('a set for named packages of one repository, as Nephio creates its edge clusters', async () => {
  await using b = await bench('workload-cluster', 3, { 'n.txt': '1' });
  await b.world.register('mgmt', { deployment: true });
  const mutator = {
    image: 'gcr.io/kpt-fn/set-labels:v0.2.0',
    configMap: { 'nephio.org/site-type': 'edge', 'nephio.org/region': 'us-west1' },
  };
  const drafts = await b.apply({
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'clusters' } },
    spec: {
      upstream: { repo: 'catalog', package: 'workload-cluster', revision: 2 },
      targets: [
        {
          repositories: [{ name: 'mgmt', packageNames: ['edge01', 'edge02'] }],
          template: { annotations: ANNOTATIONS, pipeline: { mutators: [mutator] } },
        },
      ],
    },
  });
  const ownerOf = ({ record }: PackageRevision) => record?.ownerReferences?.[0]?.name;
  expect(drafts.map((draft) => [draft.name, ownerOf(draft)])).toEqual([
    ['mgmt.edge01.packagevariant-1', 'clusters-mgmt-edge01'],
    ['mgmt.edge02.packagevariant-1', 'clusters-mgmt-edge02'],
  ]);
  for (const draft of drafts) {
    const { name, kptfile, record } = draft;
    // The second revision, although there is a third one.
    expect(kptfile?.upstreamLock?.git).toMatchObject({ directory: 'workload-cluster', ref: 'workload-cluster/v2' });
    expect((await b.world.store.content(name)).files.get('n.txt')?.toString()).toBe('2');
    expect(record?.annotations).toMatchObject(ANNOTATIONS);
    expect(kptfile?.pipeline?.mutators).toEqual([{ ...mutator, name: `PackageVariant.${ownerOf(draft)}..0` }]);
  }
});

test('a set for clusters by label, with the cluster injected, as Nephio deploys its network functions', async () => {
  await using b = await bench('upf-blueprint', 1, { 'site.yaml': CLUSTER });
  const { client } = b.world;
  for (const [name, type] of [
    ['edge01', 'edge'],
    ['edge02', 'edge'],
    ['regional', 'regional'],
  ] as const) {
    await b.world.register(name, { deployment: true });
    await client.create(workloadClusterKind, {
      metadata: { name, labels: { 'nephio.org/site-type': type } },
      spec: { clusterName: `cluster-of-${name}`, cnis: ['macvlan'], masterInterface: 'eth1' },
    });
  }
  const drafts = await b.apply({
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'upf' } },
    spec: {
      upstream: { repo: 'catalog', package: 'upf-blueprint', revision: 1 },
      targets: [
        {
          objectSelector: {
            ...{ apiVersion: 'infra.nephio.org/v1alpha1', kind: 'WorkloadCluster' },
            matchLabels: { 'nephio.org/site-type': 'edge' },
          },
          template: {
            ...{ downstream: { package: 'free5gc-upf' }, annotations: ANNOTATIONS },
            injectors: [{ nameExpr: 'target.name' }],
          },
        },
      ],
    },
  });
  expect(drafts.map(({ name }) => name)).toEqual([
    'edge01.free5gc-upf.packagevariant-1',
    'edge02.free5gc-upf.packagevariant-1',
  ]);
  for (const { name, key, kptfile, record } of drafts) {
    expect(record?.annotations).toMatchObject(ANNOTATIONS);
    expect(kptfile?.upstreamLock?.git).toMatchObject({ directory: 'upf-blueprint', ref: 'upf-blueprint/v1' });
    const site = (await b.world.store.content(name)).files.get('site.yaml')?.toString();
    expect(site).toContain(`clusterName: cluster-of-${key.repository}`);
    expect(site).toContain(`kpt.dev/injected-resource: ${key.repository}`);
    expect(kptfile?.status?.conditions).toContainEqual({
      ...{ type: 'config.injection.WorkloadCluster.site', status: 'True', reason: 'ConfigInjected' },
      message: `injected resource "${key.repository}" from cluster`,
    });
    expect(kptfile?.info?.readinessGates).toContainEqual({ conditionType: 'config.injection.WorkloadCluster.site' });
  }
});

test('a tag that is no number of a revision, as catalogs have them, is named by its workspace', async () => {
  await using b = await bench('upf-blueprint', 1, { 'n.txt': '1' });
  await b.world.register('edge01', { deployment: true });
  git(b.catalog, ['update-ref', 'refs/tags/upf-blueprint/v4.0.0', 'refs/tags/upf-blueprint/v1']);
  b.world.store.announce(await b.world.store.repository('default/catalog').refresh());
  const [draft] = await b.apply({
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'upf' } },
    spec: {
      upstream: { repo: 'catalog', package: 'upf-blueprint', workspaceName: 'v4.0.0' },
      targets: [{ repositories: [{ name: 'edge01' }] }],
    },
  });
  expect(draft?.kptfile?.upstreamLock?.git).toMatchObject({ ref: 'upf-blueprint/v4.0.0' });
});
