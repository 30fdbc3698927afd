import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { conditionsOf, gatesOf } from '../../../../kptfile-schema/index.ts';
import { type DeliveredPackage, packagesDigest } from '../../../../src/delivery/delivered/delivered-package.ts';
import { DeliveredPackages } from '../../../../src/delivery/delivered/delivered-packages.ts';
import { targetDeployment } from '../../../../src/delivery/status/target-deployment.ts';
import type { ExplainedRevision } from '../../../../src/package/api/explain/explainer.ts';
import { parseKrmFile } from '../../../../src/package/model/krm/krm.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import { repositoryKind } from '../../../../src/resource/kinds/porch/repository.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { describeEngine } from '../../../../src/resource/kinds/sluice/delivery/engine-settings.ts';
import type { ObjectKey, Stored } from '../../../../src/resource/object/object.ts';
import { corpus, corpusMissing } from '../../../../test/support/corpus.ts';
import { deliveredBy, storedTarget } from '../../../../test/support/delivered.ts';
import { ANNA, type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { skipFor } from '../../../../test/support/skip.ts';
import { gateExplainer } from '../../explain-gates.ts';
import { revisionController } from '../../revision-controller.ts';
import { changedProvider } from './changed-provider.ts';
import { readDependency } from './dependency-object.ts';
import { dependencyResolver } from './dependency-resolver.ts';

const TYPE = 'req.nephio.org/v1alpha1.Dependency.upf';
const CLUSTER = 'sluice.dev/ClusterDeployed';
const good = { status: 'True', reason: 'Synced', message: '' } as const;
const bad = { status: 'False', reason: 'Degraded', message: 'x' } as const;
const FLUX = { type: 'Flux' } as const;

let world: Fixture;
let targets: Stored<DeliveryTarget>[];
let delivered: DeliveredPackages;
let unread: string[];
let bench: ReturnType<typeof open>;
beforeEach(async () => {
  world = await fixture();
  targets = [];
  delivered = DeliveredPackages.from([]);
  unread = [];
  for (const name of ['core', 'edge01', 'edge02']) await world.register(name, { deployment: true });
  bench = open();
});
afterEach(() => world[Symbol.asyncDispose]());

function open() {
  const { client, store, clock } = world;
  const repositories = new Map<string, Awaited<ReturnType<typeof load>>>();
  const load = (name: string) => client.get(repositoryKind, { name, namespace: 'default' });
  const dependency = dependencyResolver({
    ...{ store, clock, quietMs: 0, unread: async () => unread },
    targets: () => targets,
    delivered: {
      of: (target: DeliveryTarget) => delivered.of(target),
      find: (...args: Parameters<DeliveredPackages['find']>) => delivered.find(...args),
    } as DeliveredPackages,
    repositoryOf: ({ name }) => repositories.get(name),
  });
  const recorder = world.recorder('controller:revision');
  const woken: string[] = [];
  for (const source of dependency.sources)
    source.start({
      enqueue: ({ name }: ObjectKey) => woken.push(name),
      prioritize: () => undefined,
      track: () => undefined,
      release: () => undefined,
      informer: (() => ({
        addHandler: () => () => undefined,
        addIndex: () => undefined,
        byIndex: () => [],
        get: () => undefined,
      })) as never,
    });
  return {
    woken,
    async reconcile(name: string) {
      for (const repository of store.repositories())
        repositories.set(repository.repository, await load(repository.repository));
      // Without the memory of settled drafts, which sources clear.
      const controller = revisionController({ client, store, clock, recorder, resolvers: [dependency.resolver] });
      await controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
      return store.get(name);
    },
  };
}

function dependencyYaml(part = '', name = 'upf'): string {
  return `apiVersion: req.nephio.org/v1alpha1
kind: Dependency
metadata:
  name: ${name}
  annotations:
    config.kubernetes.io/local-config: "true"
    specializer.nephio.org/owner: workload.nephio.org/v1alpha1.NFDeployment.smf-core
    specializer.nephio.org/namespace: free5gc
spec:
  packageName: free5gc-upf
  injectors:
    - apiVersion: workload.nephio.org/v1alpha1
      kind: NFDeployment
${part}`;
}

function deployment(name: string, capacity = 1): string {
  return `apiVersion: workload.nephio.org/v1alpha1\nkind: NFDeployment\nmetadata:\n  name: ${name}\nspec:\n  capacity: ${capacity}\n`;
}

async function provider(repository: string, capacity = 1, workspace = 'w1') {
  const files = { 'upf.yaml': deployment(`upf-${repository}`, capacity) };
  const draft = await world.draft(`${repository}/free5gc-upf/${workspace}`, files);
  return world.publish(draft.name);
}

async function nextProvider(before: PackageRevision, capacity: number, workspace: string) {
  const draft = await world.store.create(
    before.key.repository,
    { package: before.key.package, workspace, source: { type: 'copy', source: before.name } },
    ANNA,
  );
  const text = deployment(`upf-${before.key.repository}`, capacity);
  await world.store.change(draft.name, { files: new Map([['upf.yaml', Buffer.from(text)]]) }, ANNA);
  return world.publish(draft.name);
}

const consumer = (part?: string) => world.draft('core/smf/w1', { 'dependency.yaml': dependencyYaml(part) });

async function conditionOf(name: string, type = TYPE) {
  const { kptfile } = await bench.reconcile(name);
  return kptfile && conditionsOf(kptfile).get(type);
}

async function text(name: string, file: string): Promise<string> {
  return (await world.store.content(name)).files.get(file)?.toString('utf8') ?? '';
}

/** Delivers a revision to a target whose engine reports this health. */
function deploy(revision: PackageRevision, healthy: typeof good | typeof bad = good) {
  const one: DeliveredPackage = {
    ...{ repository: revision.key.repository, package: revision.key.package },
    ...{ revision: revision.revision, commit: '', tree: '' },
  };
  const spec = { selector: {}, git: { repo: 'file:///site.git' }, engine: FLUX };
  const target = storedTarget(
    deliveryTargetKind.complete({ metadata: { name: 'site', namespace: 'default' }, spec } as never),
  );
  const report = targetDeployment([{ ...one, synced: good, healthy }], {
    engine: { settings: describeEngine(FLUX, target.spec.git), version: '' },
    ...{ delivered: good, commit: 'c', objects: [], before: undefined, now: 0 },
  });
  targets = [
    {
      ...target,
      status: { packageCount: 1, packagesDigest: packagesDigest([one]), lastCommit: 'c', deployment: report },
    },
  ];
  delivered = deliveredBy([targets[0] as Stored<DeliveryTarget>, [one]]);
}

test('the objects of all providers are injected as Nephio injects them, and locked with revision and commit', async () => {
  const [one, two] = [await provider('edge01'), await provider('edge02', 2)];
  const { name } = await consumer();
  expect(await conditionOf(name)).toMatchObject({
    ...{ status: 'True', reason: 'Resolved' },
    message: 'edge01/free5gc-upf v1; edge02/free5gc-upf v1',
  });
  const dependency = await text(name, 'dependency.yaml');
  expect(dependency).toContain(`status:
  injected:
    - apiVersion: ref.nephio.org/v1alpha1
      kind: Config
      name: smf-core-upf-edge01
      namespace: free5gc
    - apiVersion: ref.nephio.org/v1alpha1
      kind: Config
      name: smf-core-upf-edge02
      namespace: free5gc
  providers:
    - repository: edge01
      package: free5gc-upf
      revision: 1
      commit: ${one.commit}
    - repository: edge02
      package: free5gc-upf
      revision: 1
      commit: ${two.commit}
`);
  expect(await text(name, 'injected-upf.yaml')).toContain(`  name: smf-core-upf-edge02
  namespace: free5gc
  annotations:
    config.kubernetes.io/local-config: "true"
    specializer.nephio.org/owner: ${TYPE}
    sluice.dev/provider: edge02/free5gc-upf
spec:
  config:
    apiVersion: workload.nephio.org/v1alpha1
    kind: NFDeployment
    metadata:
      name: upf-edge02
    spec:
      capacity: 2
`);
  const { record, revision } = await world.store.evaluate(name);
  expect(revision.kptfile && gatesOf(revision.kptfile)).toContain(TYPE);
  const verdict = record.verdicts.find(({ type }) => type === TYPE);
  expect(verdict?.external?.map(({ id, value }) => `${id} ${value}`)).toEqual([
    `edge01/free5gc-upf v1 ${one.commit}`,
    `edge02/free5gc-upf v1 ${two.commit}`,
  ]);
  const { commit } = world.store.get(name);
  await bench.reconcile(name);
  expect(world.store.get(name).commit).toBe(commit);
});

test('a new revision of a provider wakes the draft, which locks it; a proposal closes its gate instead', async () => {
  const one = await provider('edge01');
  const { name } = await consumer();
  expect((await conditionOf(name))?.status).toBe('True');
  await world.draft('edge02/other/w1');
  expect(bench.woken).not.toContain(name);
  const two = await nextProvider(one, 7, 'w2');
  expect(bench.woken).toContain(name);
  expect((await conditionOf(name))?.message).toBe('edge01/free5gc-upf v2');
  expect(await text(name, 'injected-upf.yaml')).toContain('capacity: 7');
  await world.settle(name);
  await world.store.update(name, { action: 'propose' }, ANNA);
  expect(changedProvider(world.store.get(name), world.store)).toBeUndefined();
  await nextProvider(two, 8, 'w3');
  expect(changedProvider(world.store.get(name), world.store)).toEqual({
    type: TYPE,
    message: 'edge01/free5gc-upf is at v3 now, and v2 is locked; reject the proposal',
  });
  expect(await conditionOf(name)).toMatchObject({ status: 'False', reason: 'ProviderChanged' });
  expect(await text(name, 'injected-upf.yaml')).toContain('capacity: 7');
  await world.store.update(name, { action: 'reject' }, ANNA);
  expect((await conditionOf(name))?.message).toBe('edge01/free5gc-upf v3');
});

test('without a provider, and after the deletion of one, the gate is closed with the reason', async () => {
  const { name } = await consumer();
  await world.draft('edge01/free5gc-upff/w1');
  expect(await conditionOf(name)).toMatchObject({
    ...{ status: 'False', reason: 'NoProvider' },
    message: 'no package free5gc-upf is selected; publish one, or did you mean free5gc-upff?',
  });
  const { name: similar } = await world.draft('core/free5gc-upg/w1', { 'dependency.yaml': dependencyYaml() });
  expect((await conditionOf(similar))?.message).not.toContain('free5gc-upg');
  const draft = await world.draft('edge01/free5gc-upf/w1', { 'upf.yaml': deployment('upf') });
  expect(await conditionOf(name)).toMatchObject({
    ...{ reason: 'ProviderNotReady', message: 'edge01/free5gc-upf is not published' },
  });
  const { name: published } = await world.publish(draft.name);
  expect((await conditionOf(name))?.status).toBe('True');
  bench.woken.length = 0;
  await world.store.update(published, { action: 'propose-deletion' } as never, ANNA);
  await world.store.update(published, { action: 'delete' } as never, ANNA);
  expect(bench.woken).toContain(name);
  expect(await conditionOf(name)).toMatchObject({ status: 'False' });
});

test('minimum count, selectors and the state decide which packages are taken', async () => {
  const one = await provider('edge01');
  const { name } = await consumer('  minCount: 2\n');
  expect(await conditionOf(name)).toMatchObject({
    ...{ reason: 'TooFewProviders', message: '1 of at least 2 packages free5gc-upf are ready' },
  });
  const { name: deployed } = await world.draft('core/amf/w1', { 'd.yaml': dependencyYaml('  state: Deployed\n') });
  expect((await conditionOf(deployed))?.message).toBe('edge01/free5gc-upf v1 is not delivered by any target');
  deploy(one, bad);
  expect((await conditionOf(deployed))?.message).toContain('is not reported as synced and healthy at target site');
  deploy(one);
  expect((await conditionOf(deployed))?.status).toBe('True');
  const { name: other } = await world.draft('core/nrf/w1', {
    'd.yaml': dependencyYaml('  selector:\n    cluster: edge02\n'),
  });
  expect((await conditionOf(other))?.reason).toBe('NoProvider');
  await world.client.patch(repositoryKind, { name: 'edge01' }, { metadata: { labels: { region: 'eu' } } });
  const byLabel = '  selector:\n    repositories:\n      matchLabels:\n        region: eu\n';
  const { name: labelled } = await world.draft('core/udm/w1', { 'd.yaml': dependencyYaml(byLabel) });
  expect((await conditionOf(labelled))?.message).toBe('edge01/free5gc-upf v1');
  const { name: waiting } = await world.draft('core/udr/w1', {
    'd.yaml': dependencyYaml('  state: Condition\n  conditionType: example.com/Ready\n'),
  });
  expect((await conditionOf(waiting))?.message).toContain('has no condition example.com/Ready that is True');
});

test('a cycle is found across packages, and named', async () => {
  const requires = (path: string) =>
    `apiVersion: req.nephio.org/v1alpha1\nkind: Dependency\nmetadata:\n  name: upf\nspec:\n  packageName: ${path}\n`;
  const drafts: string[] = [];
  for (const [own, next] of [
    ['a', 'b'],
    ['b', 'c'],
    ['c', 'a'],
  ] as const)
    drafts.push((await world.draft(`core/${own}/w1`, { 'd.yaml': requires(next) })).name);
  for (const name of [...drafts, ...drafts]) await bench.reconcile(name);
  const messages = await Promise.all(drafts.map((name) => conditionOf(name)));
  expect(messages.map((one) => one?.reason)).toEqual(['DependencyCycle', 'DependencyCycle', 'DependencyCycle']);
  expect(messages[1]?.message).toMatch(/^core\/b requires core\/c, which requires core\/a, which requires core\/b; /);
  // The last link of the cycle woke the others.
  expect(bench.woken).toEqual(expect.arrayContaining(drafts));
  await world.store.change(drafts[2] ?? '', { files: new Map([['d.yaml', null]]) }, ANNA);
  await bench.reconcile(drafts[2] ?? '');
  expect((await conditionOf(drafts[1] ?? ''))?.reason).toBe('ProviderNotReady');
});

test('a workload waits until the package that creates its cluster is deployed', async () => {
  const injected = `apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: workload-cluster\n  annotations:\n    kpt.dev/config-injection: required\nspec:\n  clusterName: edge07\n`;
  const { name } = await world.draft('edge01/web/w1', { 'workload-cluster.yaml': injected });
  expect(await conditionOf(name, CLUSTER)).toBeUndefined();
  const created = `apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata:\n  name: edge07\n`;
  const cluster = await world.draft('core/clusters/edge07/w1', { 'cluster.yaml': created });
  expect(bench.woken).toContain(name);
  deploy(await provider('edge02'));
  expect(await conditionOf(name, CLUSTER)).toMatchObject({
    ...{ status: 'False', reason: 'ClusterNotDeployed' },
    message: 'package core/clusters/edge07 creates cluster edge07, and it is not published',
  });
  const published = await world.publish(cluster.name);
  expect((await conditionOf(name, CLUSTER))?.message).toContain('v1 is not delivered by any target');
  deploy(published);
  expect(await conditionOf(name, CLUSTER)).toMatchObject({ status: 'True', reason: 'ClusterDeployed' });
});

test('a workload waits for a cluster that no engine reports on, unless its Kptfile says that it does not wait', async () => {
  const injected = `apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: workload-cluster\n  annotations:\n    kpt.dev/config-injection: required\nspec:\n  clusterName: edge07\n`;
  const created = `apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata:\n  name: edge07\n`;
  const published = await world.publish((await world.draft('core/edge07/w1', { 'cluster.yaml': created })).name);
  const { name } = await world.draft('edge01/web/w1', { 'workload-cluster.yaml': injected });
  const waits = {
    ...{ status: 'False', reason: 'ClusterNotReported' },
    message:
      'package core/edge07 creates cluster edge07, and no GitOps engine reports whether v1 is deployed; let a DeliveryTarget with spec.engine select that package, or set the annotation sluice.dev/wait-for-cluster: "false" in the Kptfile of this one',
  };
  expect(await conditionOf(name, CLUSTER)).toMatchObject(waits);
  deploy(published);
  const [reported] = targets;
  if (reported === undefined) throw new Error('no target');
  // It delivers the package, and nothing reports what became of it.
  const { engine: _engine, ...spec } = reported.spec;
  targets = [{ ...reported, spec }];
  expect(await conditionOf(name, CLUSTER)).toMatchObject(waits);
  targets = [reported];
  expect((await conditionOf(name, CLUSTER))?.status).toBe('True');
  targets = [];
  expect((await conditionOf(name, CLUSTER))?.status).toBe('False');
  const kptfile = (await text(name, 'Kptfile')).replace(
    'annotations:\n',
    'annotations:\n    sluice.dev/wait-for-cluster: "false"\n',
  );
  await world.store.change(name, { files: new Map([['Kptfile', Buffer.from(kptfile)]]) }, ANNA);
  expect(await conditionOf(name, CLUSTER)).toMatchObject({ status: 'True', reason: 'NotAwaited' });
});

test('nothing is decided before all repositories are read', async () => {
  unread = ['edge03'];
  const { name } = await consumer();
  expect(await conditionOf(name)).toMatchObject({ status: 'Unknown', reason: 'AwaitingRepositories' });
  unread = [];
  const one = await provider('edge01');
  expect((await conditionOf(name))?.status).toBe('True');
  unread = ['edge03'];
  expect((await conditionOf(name))?.status).toBe('True');
  await nextProvider(one, 3, 'w2');
  expect((await conditionOf(name))?.status).toBe('Unknown');
});

test.each([
  ['  selector: 5\n', 'spec.selector'],
  ['  minCount: 1000000\n', 'spec.minCount'],
  [
    '  selector:\n    repositories:\n      matchExpressions:\n        - {key: "a b", operator: In}\n',
    'spec.selector.repositories',
  ],
  ['  selector:\n    package: other\n', 'spec.selector.package'],
  ['  state: Condition\n', 'spec.conditionType'],
  ['  state: Running\n', 'spec.state'],
  ['  stat: Deployed\n', 'spec.stat'],
  ['  injector: []\n', 'spec.injector'],
  ['  selector:\n    clusters: edge\n', 'spec.selector.clusters'],
])('a hostile or wrong requirement is a problem that names the field: %j', (part, field) => {
  const [object] = parseKrmFile('d.yaml', Buffer.from(dependencyYaml(part))).objects;
  const dependency = object === undefined ? undefined : readDependency(object);
  expect(dependency).toMatchObject({ problem: expect.stringMatching(new RegExp(`^${field}[.:]`)) });
});

test('a wrong requirement closes the gate', async () => {
  const { name } = await consumer('  minCount: 0\n');
  expect(await conditionOf(name)).toMatchObject({ status: 'False', reason: 'InvalidDependency' });
});

test('a misspelt field is reported with its line and what may be meant, and the next steps are to edit the file', async () => {
  const text = dependencyYaml().replace('injectors:', 'injectros:');
  const { name } = await world.draft('core/smf/w1', { 'deps/upf.yaml': `# upf\n---\n${text}` });
  const line = `# upf\n---\n${text}`.split('\n').findIndex((one) => one.includes('injectros')) + 1;
  expect(await conditionOf(name)).toMatchObject({
    reason: 'InvalidDependency',
    message: `deps/upf.yaml:${line}: spec.injectros: unknown field; did you mean injectors?`,
  });
  const explain = async (running: boolean) => {
    const evaluation = await world.store.evaluate(name);
    const resolvers = [{ name: 'dependency', claims: [`${TYPE.slice(0, -3)}*`] }];
    const surroundings = { resolvers, running, disabled: [], now: 0, actor: 'anna' };
    return gateExplainer.explain({ evaluation } as ExplainedRevision, surroundings);
  };
  const [pull, push] = ['pull', 'push'].map((verb) => `sluice rpkg ${verb} ${name} smf-w1`);
  expect(await explain(true)).toMatchObject({
    next: [pull, 'edit the files in smf-w1', push],
    gates: [{ next: pull }],
  });
  expect(await explain(false)).toMatchObject({ next: [pull, 'edit the files in smf-w1', push, 'sluice up'] });
  // The resolver has not read the corrected file yet.
  await world.store.change(name, { files: new Map([['deps/upf.yaml', Buffer.from(dependencyYaml())]]) }, ANNA);
  expect(await explain(false)).toMatchObject({ next: ['sluice up'] });
});

test('Secrets are not injected, and a file of the user is not overwritten', async () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  a: b\n';
  const draft = await world.draft('edge01/free5gc-upf/w1', { 's.yaml': secret, 'upf.yaml': deployment('upf') });
  await world.publish(draft.name);
  const wants = dependencyYaml().replace(
    'workload.nephio.org/v1alpha1\n      kind: NFDeployment',
    'v1\n      kind: Secret',
  );
  const { name } = await world.draft('core/smf/w1', { 'd.yaml': wants });
  expect((await conditionOf(name))?.message).toContain('a Secret of another package is not injected');
  const own = { 'd.yaml': dependencyYaml(), 'injected-upf.yaml': deployment('mine') };
  const { name: other } = await world.draft('core/amf/w1', own);
  expect((await conditionOf(other))?.message).toContain('injected-upf.yaml has objects that were not injected');
  expect(await text(other, 'injected-upf.yaml')).toBe(deployment('mine'));
});

test('a publication wakes every consumer, and a push to a draft of the provider wakes none', async () => {
  const one = await provider('edge01');
  const names: string[] = [];
  for (let number = 0; number < 3; number += 1) {
    const { name } = await world.draft(`core/smf${number}/w1`, { 'd.yaml': dependencyYaml() });
    names.push(name);
    await bench.reconcile(name);
  }
  const draft = await world.store.create(
    'edge01',
    { package: 'free5gc-upf', workspace: 'w2', source: { type: 'copy', source: one.name } },
    ANNA,
  );
  bench.woken.length = 0;
  for (let capacity = 2; capacity < 6; capacity += 1)
    await world.store.change(
      draft.name,
      { files: new Map([['upf.yaml', Buffer.from(deployment('upf-edge01', capacity))]]) },
      ANNA,
    );
  expect(bench.woken).toEqual([]);
  await world.publish(draft.name);
  expect(new Set(bench.woken)).toEqual(new Set(names));
});

const blueprint = `${corpus}packages/nephio-project__catalog/workloads/free5gc/pkg-example-amf-bp/dependency.yaml`;
test('the Dependency of a package of Nephio resolves', skipFor(corpusMissing), async () => {
  await provider('edge01');
  const { name } = await world.draft('core/amf/w1', { 'dependency.yaml': readFileSync(blueprint, 'utf8') });
  expect(await conditionOf(name)).toMatchObject({ status: 'True', message: 'edge01/free5gc-upf v1' });
  expect(await text(name, 'injected-upf.yaml')).toContain('name: amf-example-upf-edge01');
});
