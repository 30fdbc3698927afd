import { afterEach, beforeEach, expect, test } from 'vitest';
import { conditionsOf } from '../../../../kptfile-schema/index.ts';
import type { InformerEvent } from '../../../../src/controller/informer-store.ts';
import { type DeliveredPackage, packagesDigest } from '../../../../src/delivery/delivered/delivered-package.ts';
import { targetDeployment } from '../../../../src/delivery/status/target-deployment.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { describeEngine } from '../../../../src/resource/kinds/sluice/delivery/engine-settings.ts';
import { packageDeliveryKind } from '../../../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import type { ObjectKey, Stored } from '../../../../src/resource/object/object.ts';
import { deliveredBy, storedDelivery, storedTarget } from '../../../../test/support/delivered.ts';
import { type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { revisionController } from '../../revision-controller.ts';
import { healthyResolver, unhealthyProblem } from './healthy-resolver.ts';

const TYPE = 'sluice.dev/Healthy.core';
const good = { status: 'True', reason: 'Synced', message: '' } as const;
const FLUX = { type: 'Flux' } as const;
const bad = { status: 'False', reason: 'Degraded', message: 'x' } as const;

let world: Fixture;
let targets: Stored<DeliveryTarget>[];
let deliveredPackages: readonly DeliveredPackage[];
/** Gates of policies. */
let required: string[];
beforeEach(async () => {
  world = await fixture();
  await world.register('apps');
  targets = [];
  deliveredPackages = [];
  required = [];
});
afterEach(() => world[Symbol.asyncDispose]());

function kptfile(annotation = ''): string {
  const annotations = annotation === '' ? '' : `  annotations:\n    sluice.dev/healthy-packages: "${annotation}"\n`;
  return `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n${annotations}info:\n  readinessGates:\n    - conditionType: ${TYPE}\n`;
}

function statusOf(states: Readonly<Record<string, typeof good | typeof bad>>, evaluated = 'c', version = '') {
  const packages = Object.keys(states).map((path) => ({
    repository: 'apps',
    package: path,
    revision: 1,
    commit: '',
    tree: '',
  }));
  const each = packages.map((one) => ({ ...one, synced: good, healthy: states[one.package] ?? good }));
  const deployment = targetDeployment(each, {
    engine: { settings: describeEngine(FLUX, target().spec.git), version },
    delivered: good,
    commit: evaluated,
    objects: [],
    before: undefined,
    now: 0,
  });
  deliveredPackages = packages;
  return {
    packageCount: packages.length,
    packagesDigest: packagesDigest(packages),
    lastCommit: 'c',
    deployment,
  };
}

function target(status?: DeliveryTarget['status'], engine: object | null = FLUX): Stored<DeliveryTarget> {
  const spec = { selector: {}, git: { repo: 'file:///site.git' }, ...(engine === null ? {} : { engine }) };
  const object = storedTarget(
    deliveryTargetKind.complete({ metadata: { name: 'core', namespace: 'default' }, spec } as never),
  );
  return status === undefined ? object : { ...object, status };
}

const delivered = () => deliveredBy(...targets.map((one) => [one, deliveredPackages] as const));

function healthy() {
  const { store, clock } = world;
  return healthyResolver({
    ...{ store, clock, targets: () => targets, delivered: delivered(), requiredGates: () => required, quietMs: 0 },
  });
}

async function reconcile(name: string): Promise<void> {
  const { client, store, clock } = world;
  const { resolver, sources } = healthy();
  const recorder = world.recorder('controller:revision');
  const controller = revisionController({ ...{ client, store, clock, recorder, sources }, resolvers: [resolver] });
  await controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
}

async function conditionOf(name: string) {
  await reconcile(name);
  const { kptfile: content } = world.store.get(name);
  return content && conditionsOf(content).get(TYPE);
}

test('the condition follows the health of the target, with its source and time, and unchanged health makes no commit', async () => {
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile() });
  expect(await conditionOf(name)).toMatchObject({ status: 'Unknown', reason: 'TargetMissing' });
  targets = [target(undefined, null)];
  expect(await conditionOf(name)).toMatchObject({ status: 'Unknown', reason: 'NotReported' });
  targets = [target(statusOf({ amf: good, smf: bad }))];
  expect(await conditionOf(name)).toMatchObject({ status: 'False', reason: 'Degraded' });
  targets = [target(statusOf({ amf: good, smf: good }))];
  expect(await conditionOf(name)).toMatchObject({ status: 'True', message: 'all packages of target core are healthy' });
  const { record } = await world.store.evaluate(name);
  const verdict = record.verdicts.find(({ type }) => type === TYPE);
  expect(verdict).toMatchObject({
    by: 'resolver:healthy',
    external: [
      { source: 'DeliveryTarget default/core', value: 'Healthy', time: '1970-01-01T00:00:00.000Z' },
      { source: 'spec.engine', id: describeEngine(FLUX, target().spec.git), value: 'without a kubeconfig' },
    ],
  });
  const { commit } = world.store.get(name);
  await reconcile(name);
  expect(world.store.get(name).commit).toBe(commit);
});

test('a report about an earlier delivery opens nothing', async () => {
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile() });
  targets = [target(statusOf({ amf: good }, 'earlier'))];
  expect(await conditionOf(name)).toMatchObject({ status: 'Unknown', reason: 'Stale' });
});

test.each(['', 'amf'])(
  'a report that is not about the packages delivered now opens nothing: %s',
  async (annotation) => {
    const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile(annotation) });
    targets = [target(statusOf({ amf: good, upf: good }))];
    const [amf, upf] = deliveredPackages as [DeliveredPackage, DeliveredPackage];
    expect(await conditionOf(name)).toMatchObject({ status: 'True' });
    // The objects of packages are written before the status of their target.
    const recorded = deliveredPackages;
    const added = { ...upf, package: 'udm' };
    for (const next of [
      [{ ...amf, revision: 2 }, upf],
      [{ ...amf, drifted: true as const }, upf],
      [amf, added, upf],
    ]) {
      deliveredPackages = next;
      expect(unhealthyProblem(world.store.get(name), targets, delivered(), [])).toMatchObject({ type: TYPE });
      expect(await conditionOf(name)).toMatchObject({ status: 'Unknown', reason: 'Stale' });
      deliveredPackages = recorded;
      expect(await conditionOf(name)).toMatchObject({ status: 'True' });
    }
  },
);

test('what decides whether the report is about the packages wakes the drafts, once for each change', async () => {
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile() });
  const woken: string[] = [];
  const handlers = new Map<unknown, (event: InformerEvent<never>) => void>();
  for (const source of healthy().sources)
    source.start({
      informer: (kind) => ({ addHandler: (handler: never) => handlers.set(kind, handler) }) as never,
      enqueue: (key: ObjectKey) => woken.push(key.name),
      ...{ track: () => undefined, release: () => undefined, prioritize: () => undefined },
    });
  const update = (kind: unknown, old: object, object: object) =>
    handlers.get(kind)?.({ type: 'update', old, object } as never);
  const before = target(statusOf({ amf: good }));
  const [amf] = deliveredPackages as [DeliveredPackage];
  const object = storedDelivery(before, amf);
  update(packageDeliveryKind, object, storedDelivery(before, { ...amf, revision: 2 }, '2'));
  update(packageDeliveryKind, object, storedDelivery(before, { ...amf, drifted: true }, '2'));
  const next = { ...before, metadata: { ...before.metadata, uid: 'next' } };
  update(packageDeliveryKind, object, storedDelivery(next, amf, '2'));
  update(deliveryTargetKind, before, { ...before, status: { ...before.status, packagesDigest: 'next' } });
  expect(woken).toEqual([name, name, name, name]);
  update(packageDeliveryKind, object, storedDelivery(before, amf, '2'));
  update(deliveryTargetKind, before, { ...before, metadata: { ...before.metadata, labels: { a: 'b' } } });
  expect(woken).toHaveLength(4);
});

test('only the packages in the annotation count, and all of them must be delivered', async () => {
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile('amf, apps/upf') });
  targets = [target(statusOf({ amf: good, smf: bad, upf: good }))];
  expect(await conditionOf(name)).toMatchObject({ status: 'True' });
  targets = [target(statusOf({ amf: good, smf: good, upf: bad }))];
  expect(await conditionOf(name)).toMatchObject({ status: 'False', reason: 'Degraded' });
  targets = [target(statusOf({ amf: good }))];
  expect(await conditionOf(name)).toMatchObject({ status: 'False', reason: 'NotDelivered' });
});

test('the annotation does not weaken a gate that a policy requires', async () => {
  required = [TYPE];
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile('amf') });
  targets = [target(statusOf({ amf: good, smf: bad }))];
  expect(await conditionOf(name)).toMatchObject({ status: 'False', reason: 'Degraded' });
  required = [];
  expect(await conditionOf(name)).toMatchObject({ status: 'True' });
  expect(unhealthyProblem(world.store.get(name), targets, delivered(), [])).toBeUndefined();
  expect(unhealthyProblem(world.store.get(name), targets, delivered(), [TYPE])).toMatchObject({ type: TYPE });
});

test('a report of another engine opens nothing, and a changed engine or kubeconfig makes the verdict stale', async () => {
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile() });
  targets = [target(statusOf({ amf: good }))];
  expect(await conditionOf(name)).toMatchObject({ status: 'True' });
  targets = [target(statusOf({ amf: good }), { type: 'Flux', name: 'k', kubeconfigSecretRef: { name: 'own' } })];
  expect(unhealthyProblem(world.store.get(name), targets, delivered(), [])).toMatchObject({ type: TYPE });
  expect(await conditionOf(name)).toMatchObject({ status: 'Unknown', reason: 'Stale' });
  targets = [target(statusOf({ amf: good }))];
  expect(await conditionOf(name)).toMatchObject({ status: 'True' });
  targets = [target(statusOf({ amf: good }, 'c', 'uid/7'))];
  expect(unhealthyProblem(world.store.get(name), targets, delivered(), [])?.message).toContain(
    'engine of the target has changed',
  );
  await reconcile(name);
  expect(unhealthyProblem(world.store.get(name), targets, delivered(), [])).toBeUndefined();
});

test('an approval notices a target that became unhealthy a moment ago', async () => {
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile() });
  targets = [target(statusOf({ amf: good }))];
  await reconcile(name);
  expect(unhealthyProblem(world.store.get(name), targets, delivered(), [])).toBeUndefined();
  targets = [target(statusOf({ amf: bad }))];
  expect(unhealthyProblem(world.store.get(name), targets, delivered(), [])).toMatchObject({ type: TYPE });
});

test('a package without such a gate gets no condition, and loses one whose gate is gone', async () => {
  targets = [target(statusOf({ amf: good }))];
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile() });
  expect(await conditionOf(name)).toBeDefined();
  const plain = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n';
  const { name: other } = await world.draft('apps/db/w1', { Kptfile: plain });
  expect(await conditionOf(other)).toBeUndefined();
});

test('a report about another repository, branch or directory opens nothing', async () => {
  const { name } = await world.draft('apps/web/w1', { Kptfile: kptfile() });
  const present = target(statusOf({ amf: good }));
  targets = [present];
  expect(await conditionOf(name)).toMatchObject({ status: 'True' });
  for (const change of [{ repo: 'file:///other.git' }, { branch: 'other' }, { directory: '/other' }]) {
    targets = [{ ...present, spec: { ...present.spec, git: { ...present.spec.git, ...change } } }];
    expect(await conditionOf(name)).toMatchObject({ status: 'Unknown', reason: 'Stale' });
  }
});
