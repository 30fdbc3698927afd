import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deploymentSources } from '../../src/app/controllers/deployment-sources.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { DeploymentSources } from '../../src/delivery/status/deployment-status.ts';
import { gitRepositoryKind, kustomizationKind } from '../../src/delivery/status/sources/engine-kinds.ts';
import { deploymentOf } from '../../src/delivery/status/target-deployment.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { CONTEXT, controllerOn, publish, publishNext, statusOf } from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { deploymentStatusController } from './deployment-controller.ts';

let world: Fixture;
let clock: ManualClock;
let cluster: RegistryClient;
let site: string;
let delivery: ControllerOptions;
let readBack: ControllerOptions;
let stop: () => void;
let jump: number;

beforeEach(async () => {
  clock = new ManualClock();
  jump = 0;
  const now = clock.now.bind(clock);
  clock.now = () => now() + jump;
  world = await fixture(clock);
  await world.register('apps');
  site = await world.bare('site');
  delivery = controllerOn(world);
  const registry = new Registry();
  for (const kind of [kustomizationKind, gitRepositoryKind])
    registry.register(new MemoryStorage(kind, { clock, log: new EventLog({ clock }) }));
  cluster = new RegistryClient(registry, { name: 'flux' }, 'controller');
  await source('site', site);
  readBack = controllerWith(cluster);
});
afterEach(async () => {
  stop();
  await world[Symbol.asyncDispose]();
});

function controllerWith(
  engines: RegistryClient | undefined,
  more: (sources: DeploymentSources) => DeploymentSources = (sources) => sources,
): ControllerOptions {
  const { client, store, folder } = world;
  const sources = more(deploymentSources({ client, clock, network: DEFAULT_NETWORK, cluster: engines }));
  const controller = deploymentStatusController({
    ...{
      client,
      store,
      clock,
      sources,
      dataFolder: join(folder, 'data'),
      window: 0,
      git: { network: DEFAULT_NETWORK },
    },
    recorder: world.recorder('controller:deployment-status'),
  });
  const ends = (controller.sources ?? []).slice(2).map((source) =>
    source.start({
      enqueue: () => undefined,
      informer: () => {
        throw new Error('not used here');
      },
      release: () => undefined,
      prioritize: () => undefined,
      track: () => undefined,
    }),
  );
  stop = () => {
    for (const end of ends) end();
  };
  return controller;
}

const KEY = { namespace: 'default', name: 'edge' };
const reconcile = () => readBack.reconcile(KEY, CONTEXT);
const deliver = () => delivery.reconcile(KEY, CONTEXT);
const head = () => gitCli(site, ['rev-parse', 'main']);
const target = () => world.client.get(deliveryTargetKind, { name: 'edge' });
const deployment = async () => (await target()).status?.deployment;

/** The watch of the engine delivers a report a moment later. */
async function becomes(part: 'synced' | 'healthy', field: 'status' | 'reason', value: string): Promise<void> {
  const read = async () => {
    await reconcile();
    return (await deployment())?.[part][field];
  };
  await expect.poll(read, { timeout: 5_000, interval: 10 }).toBe(value);
}

async function createTarget(engine: object = { type: 'Flux', name: 'edge' }): Promise<void> {
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, engine } as never,
  });
}

interface Reported {
  readonly applied?: string;
  readonly attempted?: string;
  readonly ready?: readonly [status: string, reason: string, message: string];
  readonly path?: string;
  /** Name of the source. */
  readonly from?: string;
}

/** A source of Kustomizations. */
async function source(name: string, url: string): Promise<void> {
  const spec = { url, ref: { branch: 'main' } };
  await cluster.create(gitRepositoryKind, { metadata: { namespace: 'flux-system', name }, spec } as never);
}

/** What Flux would report. */
async function report(
  { applied, attempted = applied, ready, path = 'clusters/edge', from = 'site' }: Reported,
  name = 'edge',
): Promise<void> {
  const [status, reason, message] = ready ?? ['True', 'ReconciliationSucceeded', 'Applied'];
  const revision = (commit: string | undefined) => (commit === undefined ? undefined : `main@sha1:${commit}`);
  const key = { namespace: 'flux-system', name };
  const present = await cluster.find(kustomizationKind, key);
  const object = {
    metadata: { ...key, ...present?.metadata },
    spec: { path, wait: true, sourceRef: { kind: 'GitRepository', name: from } },
    status: {
      observedGeneration: present?.metadata.generation ?? 1,
      lastAppliedRevision: revision(applied),
      lastAttemptedRevision: revision(attempted),
      conditions: [{ type: 'Ready', status, reason, message }],
    },
  };
  if (present === undefined) await cluster.create(kustomizationKind, object);
  else await cluster.update(kustomizationKind, { ...present, ...object } as never);
}

test('with one Kustomization for all packages the failure of one does not count for those that were healthy before', async () => {
  const web = await publish(world, 'web');
  await publish(world, 'settings');
  await createTarget();
  await deliver();
  await report({ applied: head() });
  await becomes('healthy', 'status', 'True');
  const healthyCommit = head();
  await publishNext(world, web, 'w2', 'two');
  await deliver();
  const failed = ['False', 'HealthCheckFailed', 'Deployment/web status: Failed'] as const;
  await report({ applied: healthyCommit, attempted: head(), ready: failed });
  await becomes('healthy', 'status', 'False');
  const states = async () => {
    const now = await deployment();
    if (now === undefined) throw new Error('no report');
    return ['settings', 'web'].map((name) => deploymentOf(now, { repository: 'apps', package: name }));
  };
  expect(await states()).toMatchObject([
    { healthy: { status: 'False' }, wasHealthy: true, isShared: true },
    { healthy: { status: 'False' }, isShared: true },
  ]);
  expect((await states())[1]).not.toHaveProperty('wasHealthy');
  // A restart keeps it.
  stop();
  readBack = controllerWith(cluster);
  await reconcile();
  expect((await states()).map(({ wasHealthy }) => wasHealthy)).toEqual([true, undefined]);
});

describe('read-back of Flux', () => {
  test('shows no report about another repository, also of an object that the target names', async () => {
    await publish(world, 'web');
    await createTarget();
    await deliver();
    await source('other', 'https://git.example.com/other.git');
    await report({ applied: head(), ready: ['False', 'Failed', 'secret of another tenant'], from: 'other' });
    await reconcile();
    expect(JSON.stringify(await deployment())).not.toContain('secret of another tenant');
    expect(await deployment()).toMatchObject({ synced: { reason: 'NotReported' } });
    await cluster.delete(kustomizationKind, { namespace: 'flux-system', name: 'edge' });
    await report({ applied: head() });
    await becomes('synced', 'status', 'True');
    expect((await deployment())?.engine).toMatchObject({ settings: expect.stringContaining('Flux flux-system/edge') });
  });

  test('from the delivery over the application to a failure of the health, with events, and without needless writes', async () => {
    const web = await publish(world, 'web');
    await createTarget();
    await deliver();
    await reconcile();
    expect(await deployment()).toMatchObject({
      delivered: { status: 'True', reason: 'Delivered' },
      synced: { status: 'Unknown', reason: 'NotReported' },
    });

    await report({ applied: head() });
    clock.advance(1000);
    await becomes('synced', 'status', 'True');
    expect(await deployment()).toMatchObject({
      synced: { status: 'True', reason: 'Synced', message: '1 of 1 package is synced' },
      healthy: { status: 'True', reason: 'Healthy', message: '1 of 1 package is healthy' },
      objects: [{ name: 'Kustomization flux-system/edge', path: 'clusters/edge', revision: head() }],
    });

    // The same report again, and another evaluation.
    const { metadata } = await target();
    clock.advance(60_000);
    await reconcile();
    expect((await target()).metadata.resourceVersion).toBe(metadata.resourceVersion);

    await report({ applied: head(), ready: ['False', 'HealthCheckFailed', 'Deployment upf not ready: 2/3'] });
    await becomes('healthy', 'status', 'False');
    const { healthy, synced } = (await deployment()) ?? {};
    expect(healthy?.message).toContain('web: Kustomization flux-system/edge: Deployment upf not ready: 2/3');
    expect(synced?.status).toBe('True');
    expect(Date.parse(healthy?.since ?? '')).toBe(clock.now());
    expect((await world.events('edge')).map((text) => text.split(':')[0])).toEqual([
      'Delivered',
      'Synced',
      'Healthy',
      'Degraded',
    ]);
    expect(await world.events(web)).toEqual([
      expect.stringMatching(/^Delivered: DeliveryTarget edge: commit /),
      'Healthy: DeliveryTarget edge',
      'Degraded: DeliveryTarget edge: Kustomization flux-system/edge: Deployment upf not ready: 2/3',
    ]);
  });

  test('the delivery and the read-back write their parts of the status in any order', async () => {
    const name = await publish(world, 'web');
    await createTarget();
    await deliver();
    await report({ applied: head() });
    await becomes('synced', 'status', 'True');
    await publishNext(world, name, 'w2', '2');
    await deliver();
    await reconcile();
    expect((await target()).status).toMatchObject({
      lastCommit: head(),
      deployment: { synced: { reason: 'OutOfSync' } },
    });
    await report({ applied: head() });
    await becomes('synced', 'status', 'True');
    expect((await statusOf(world)).packages[0]?.revision).toBe(2);
  });

  test('a commit of another writer, and a squash, do not matter; a change in a folder of the target does', async () => {
    await publish(world, 'web');
    await createTarget();
    await deliver();
    const unrelated = await world.push(site, { 'README.md': 'other\n' });
    await report({ applied: unrelated });
    await becomes('healthy', 'status', 'True');
    const changed = await world.push(site, { 'clusters/edge/web/cm.yaml': 'x: 1\n' });
    await report({ applied: changed });
    await becomes('synced', 'reason', 'OutOfSync');
    expect((await deployment())?.healthy).toMatchObject({ status: 'Unknown', reason: 'Stale' });
    expect((await world.events('edge')).at(-1)).toMatch(/^OutOfSync: /);
  });

  test('a kustomization above the folder has to list it, itself or by another one', async () => {
    await publish(world, 'web');
    await createTarget();
    await deliver();
    const pushed = (entries: string, more = {}) =>
      world.push(site, { 'clusters/kustomization.yaml': `resources: [${entries}]\n`, ...more });
    for (const [entries, reason] of [
      ['other', 'NotReported'],
      ['edge/web', 'Synced'],
      ['edge', 'NotReported'],
    ] as const) {
      await report({ applied: await pushed(entries), path: 'clusters' });
      await becomes('synced', 'reason', reason);
    }
    expect((await deployment())?.healthy).toMatchObject({ status: 'Unknown', reason: 'NotReported' });
    const applied = await pushed('edge', { 'clusters/edge/kustomization.yaml': 'resources: [./web/]\n' });
    await report({ applied, path: 'clusters' });
    await becomes('healthy', 'status', 'True');
  });

  test('an old revision after a new one, an unknown commit and nonsense are never healthy', async () => {
    const name = await publish(world, 'web');
    await createTarget();
    await deliver();
    const first = head();
    await publishNext(world, name, 'w2', '2');
    await deliver();
    for (const [applied, reason] of [
      [head(), 'Synced'],
      [first, 'OutOfSync'],
      ['f'.repeat(40), 'UnknownCommit'],
      [head(), 'Synced'],
      ['refs/heads/main', 'NotReported'],
    ] as const) {
      await report({ applied });
      await becomes('synced', 'reason', reason);
      expect((await deployment())?.healthy.status).toBe(reason === 'Synced' ? 'True' : 'Unknown');
    }
  });

  test('packages with objects of their own have states of their own, and only those that differ are listed', async () => {
    for (const path of ['amf', 'smf', 'upf', 'web']) await publish(world, path);
    await createTarget({ type: 'Flux', selector: {} });
    await deliver();
    for (const path of ['amf', 'smf', 'web']) await report({ applied: head(), path: `clusters/edge/${path}` }, path);
    await report(
      { applied: head(), path: 'clusters/edge/upf', ready: ['False', 'HealthCheckFailed', '2/3 are ready'] },
      'upf',
    );
    await becomes('healthy', 'status', 'False');
    expect(await deployment()).toMatchObject({
      healthy: { status: 'False', message: expect.stringContaining('3 of 4 packages are healthy; upf: ') },
    });
    expect((await deployment())?.common.healthy).toMatchObject({ status: 'True', reason: 'Healthy' });
    expect((await deployment())?.packages).toMatchObject([
      { package: 'upf', healthy: { status: 'False', reason: 'Degraded', message: expect.stringContaining('2/3') } },
    ]);
  });

  test('without a cluster the status has the next step, and an engine that goes away leaves no state', async () => {
    stop();
    readBack = controllerWith(undefined);
    await publish(world, 'web');
    await createTarget();
    await deliver();
    await reconcile();
    expect((await deployment())?.synced).toMatchObject({ status: 'Unknown', reason: 'Unreachable' });
    expect((await deployment())?.synced.message).toContain('set spec.engine.kubeconfigSecretRef');
    expect((await world.events('edge')).at(-1)).toMatch(/^Unreachable: .*spec\.engine\.kubeconfigSecretRef/);
    const { spec, ...rest } = await target();
    const { engine: _, ...without } = spec;
    await world.client.update(deliveryTargetKind, { ...rest, spec: without });
    await reconcile();
    expect(await deployment()).toBeUndefined();
    expect((await statusOf(world)).packages).toHaveLength(1);
  });

  test.each([
    [{ name: 'nope' }, 'Kustomization flux-system/nope does not exist; check spec.engine.name'],
    [{ name: 'edge', namespace: 'nope' }, 'Kustomization nope/edge does not exist'],
    [{ namespace: 'nope' }, 'namespace nope has no Kustomization'],
    [
      { selector: { matchLabels: { a: 'b' } } },
      'no Kustomization in namespace flux-system matches spec.engine.selector',
    ],
    [{ name: 'edge' }, 'the source of Kustomization flux-system/edge is not the repository'],
  ])('an engine with %j, which has no such object, is named', async (named, message) => {
    await publish(world, 'web');
    await createTarget({ type: 'Flux', ...named });
    await deliver();
    await source('other', 'https://git.example.com/other.git');
    await report({ applied: head(), from: 'other' });
    await reconcile();
    expect((await deployment())?.synced).toMatchObject({ reason: 'NotReported' });
    expect((await deployment())?.synced.message).toContain(message);
  });

  test('a clock that jumps moves no time back', async () => {
    await publish(world, 'web');
    await createTarget();
    await deliver();
    await report({ applied: head() });
    await becomes('healthy', 'status', 'True');
    const since = Date.parse((await deployment())?.healthy.since ?? '');
    jump = -3_600_000;
    await report({ applied: head(), ready: ['False', 'HealthCheckFailed', 'x'] });
    await becomes('healthy', 'status', 'False');
    expect(Date.parse((await deployment())?.healthy.since ?? '')).toBeGreaterThanOrEqual(since);
  });
});

test('a reconciliation that runs while the controller stops leaves no connection open, and reports nothing', async () => {
  const opened: { isClosed: boolean }[] = [];
  readBack = controllerWith(cluster, (sources) => ({
    ...sources,
    async open(...args) {
      const status = await sources.open(...args);
      const one = { isClosed: false };
      opened.push(one);
      stop();
      const close = async () => {
        one.isClosed = true;
        await status.close();
      };
      return { reports: (request) => status.reports(request), close };
    },
  }));
  await createTarget();
  await expect(reconcile()).rejects.toMatchObject({ code: 'Unavailable' });
  expect(opened).toEqual([{ isClosed: true }]);
  expect(await deployment()).toBeUndefined();
});
