import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { deploymentSources } from '../../src/app/controllers/deployment-sources.ts';
import { isReached } from '../../src/cli/target/target-goal.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { listDelivered } from '../../src/delivery/delivered/list-delivered.ts';
import { decideRollbacks } from '../../src/delivery/rollback/decide-rollbacks.ts';
import { gitRepositoryKind, kustomizationKind } from '../../src/delivery/status/sources/engine-kinds.ts';
import { currentDeployment, deploymentOf } from '../../src/delivery/status/target-deployment.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import {
  CONTEXT,
  configMap,
  controllerOn,
  publish,
  publishNext,
  publishRefused,
  squashMain,
  type TargetSpec,
} from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { healthCondition } from '../revision/resolvers/healthy/target-health.ts';
import { deploymentStatusController } from './deployment-controller.ts';

const KEY = { namespace: 'default', name: 'edge' };
const FILE = 'clusters/edge/web/cm.yaml';
const BY_HAND = configMap('web', 'by hand');

let world: Fixture;
let cluster: RegistryClient;
let site: string;
let delivery: ControllerOptions;
let readBack: ControllerOptions;
let stop: () => void;

beforeEach(async () => {
  const clock = new ManualClock();
  world = await fixture(clock);
  await world.register('apps');
  site = await world.bare('site');
  delivery = controllerOn(world);
  const registry = new Registry();
  for (const kind of [kustomizationKind, gitRepositoryKind])
    registry.register(new MemoryStorage(kind, { clock, log: new EventLog({ clock }) }));
  cluster = new RegistryClient(registry, { name: 'flux' }, 'controller');
  const source = { metadata: { namespace: 'flux-system', name: 'site' }, spec: { url: site, ref: { branch: 'main' } } };
  await cluster.create(gitRepositoryKind, source as never);
  const { client, store, folder } = world;
  readBack = deploymentStatusController({
    ...{ client, store, clock, window: 0, dataFolder: join(folder, 'data'), git: { network: DEFAULT_NETWORK } },
    sources: deploymentSources({ client, clock, network: DEFAULT_NETWORK, cluster }),
    recorder: world.recorder('controller:deployment-status'),
  });
  // The source that ends what the controller follows.
  const end = readBack.sources?.at(-1)?.start({
    ...{ enqueue: () => undefined, release: () => undefined, prioritize: () => undefined, track: () => undefined },
    informer: () => {
      throw new Error('not used here');
    },
  });
  stop = () => end?.();
});
afterEach(async () => {
  stop();
  await world[Symbol.asyncDispose]();
});

const deliver = () => delivery.reconcile(KEY, CONTEXT);
const head = () => gitCli(site, ['rev-parse', 'main']).trim();
const target = () => world.client.get(deliveryTargetKind, KEY);
const change = (spec: Partial<TargetSpec>) => world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec });

async function createTarget(): Promise<void> {
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: {
      selector: {},
      git: { repo: site, directory: 'clusters/edge' },
      ...{ drift: 'Report', engine: { type: 'Flux', name: 'edge' }, rollback: { unhealthyAfter: '1s' } },
    } as never,
  });
}

/** Flux reports the head of the branch as applied and ready, or as not ready. */
async function report(ready: readonly [status: string, reason: string] = ['True', 'ReconciliationSucceeded']) {
  const key = { namespace: 'flux-system', name: 'edge' };
  const present = await cluster.find(kustomizationKind, key);
  const revision = `main@sha1:${head()}`;
  const [status, reason] = ready;
  const object = {
    ...present,
    metadata: { ...key, ...present?.metadata },
    spec: { path: 'clusters/edge', wait: true, sourceRef: { kind: 'GitRepository', name: 'site' } },
    status: {
      observedGeneration: present?.metadata.generation ?? 1,
      ...{ lastAppliedRevision: revision, lastAttemptedRevision: revision },
      conditions: [{ type: 'Ready', status, reason, message: reason }],
    },
  };
  if (present === undefined) await cluster.create(kustomizationKind, object);
  else await cluster.update(kustomizationKind, object as never);
}

/** The report about the last delivery: `synced` and `healthy` of a package, as statuses and reasons. */
async function stateOf(path: string): Promise<string> {
  await readBack.reconcile(KEY, CONTEXT);
  const deployment = currentDeployment(await target());
  if (deployment === undefined) return '';
  const { synced, healthy } = deploymentOf(deployment, { repository: 'apps', package: path });
  return `${synced.status} ${synced.reason}, ${healthy.status} ${healthy.reason}`;
}

/** The watch of the engine delivers a report a moment later. */
const becomes = (path: string, state: string) => expect.poll(() => stateOf(path)).toBe(state);

const GOOD = 'True Synced, True Healthy';
const DRIFTED = 'False Drifted, Unknown Drifted';

async function expectNotDelivered(): Promise<void> {
  const object = await target();
  const delivered = await listDelivered(world.client, object);
  const wanted = { name: 'web', repository: 'apps', package: 'web', revision: 1 };
  for (const until of ['synced', 'healthy'] as const) {
    expect(isReached(object, { until, wanted }, 1)).toBe(false);
    expect(isReached(object, { until, wanted: undefined }, undefined)).toBe(false);
  }
  for (const packages of [[], ['web']])
    expect(healthCondition('sluice.dev/Healthy.edge', [object], 'default', packages, delivered)).toMatchObject({
      ...{ status: 'Unknown', reason: 'Drifted' },
    });
}

test('kept changes of another writer are never synced or healthy, also after other deliveries, until they end', async () => {
  await publish(world, 'web');
  await createTarget();
  await deliver();
  await report();
  await becomes('web', GOOD);
  const edited = await world.push(site, { [FILE]: BY_HAND });
  await deliver();
  expect(await stateOf('web')).toBe(DRIFTED);
  await report();
  await publish(world, 'db');
  await deliver();
  expect(head()).not.toBe(edited);
  expect(gitCli(site, ['show', `main:${FILE}`])).toContain('by hand');
  await report();
  await becomes('db', GOOD);
  expect(await stateOf('web')).toBe(DRIFTED);
  const objects = (await listDelivered(world.client, await target())).of(await target());
  expect(objects.map((one) => [one.package, one.drifted])).toEqual([
    ['db', undefined],
    ['web', true],
  ]);
  await expectNotDelivered();
  // The same again changes nothing.
  const { status } = await target();
  await deliver();
  await readBack.reconcile(KEY, CONTEXT);
  expect((await target()).status).toEqual(status);

  // The other writer reverts the change.
  await world.push(site, { [FILE]: configMap('web') });
  await deliver();
  await report();
  await becomes('web', GOOD);
});

test.each(['its manifests', 'the revision that it names too', 'its manifests, and the earlier commits are lost'])(
  'changes to the folder of a refused package do not count as delivered either, until it is delivered again: %s',
  async (changed) => {
    const first = await publish(world, 'web');
    await createTarget();
    await change({ drift: 'Repair' });
    await deliver();
    await publishRefused(world, first);
    await deliver();
    await report();
    await becomes('web', GOOD);
    const list = gitCli(site, ['show', 'main:clusters/edge/web/kustomization.yaml']);
    const forged = list.replace(/^(#.*),1\]/, '$1,2]');
    const edits = changed.includes('revision') ? { 'clusters/edge/web/kustomization.yaml': `${forged}\n` } : {};
    await world.push(site, { [FILE]: BY_HAND, ...edits });
    if (changed.includes('lost')) squashMain(site);
    // In one commit with the first delivery after the change, and then above it.
    for (const path of ['db', 'dns']) {
      await publish(world, path);
      await deliver();
      expect(gitCli(site, ['show', `main:${FILE}`])).toContain('by hand');
      await report();
      await becomes(path, GOOD);
      expect(await stateOf('web')).toBe(DRIFTED);
    }
    await change({ allowSecrets: true });
    await deliver();
    await report();
    await becomes('web', GOOD);
  },
);

test.each(['an older backup', 'an older backup that has lost the commits after it', 'a change by another writer'])(
  'the folder of a package whose tag is lost does not count as delivered after %s',
  async (fault) => {
    const apps = join(dirname(site), 'apps.git');
    const refresh = () => world.store.repository('apps').refresh();
    const first = await publish(world, 'web');
    await createTarget();
    await deliver();
    const backup = head();
    await publishNext(world, first, 'w2', '2');
    await deliver();
    await report();
    await becomes('web', GOOD);
    const commit = gitCli(apps, ['rev-parse', 'refs/tags/web/v2']).trim();
    gitCli(apps, ['update-ref', '-d', 'refs/tags/web/v2']);
    await refresh();
    if (fault === 'a change by another writer') await world.push(site, { [FILE]: BY_HAND });
    else gitCli(site, ['update-ref', 'refs/heads/main', backup]);
    if (fault.includes('lost')) squashMain(site);
    const present = gitCli(site, ['rev-parse', 'main:clusters/edge/web']);
    // In one commit with the first delivery after the fault, and then above it.
    for (const path of ['db', 'dns']) {
      await publish(world, path);
      await deliver();
      expect(gitCli(site, ['rev-parse', 'main:clusters/edge/web'])).toBe(present);
      await report();
      await becomes(path, GOOD);
      expect(await stateOf('web')).toBe(DRIFTED);
      const objects = await listDelivered(world.client, await target());
      expect(objects.find(await target(), { repository: 'apps', package: 'web' })).toMatchObject({
        revision: 2,
        commit,
      });
    }
    gitCli(apps, ['update-ref', 'refs/tags/web/v2', commit]);
    await refresh();
    await change({ drift: 'Repair' });
    await deliver();
    await report();
    await becomes('web', GOOD);
    expect(gitCli(site, ['show', `main:${FILE}`])).toContain('value: "2"');
  },
);

test('kept changes end with a repair and with a publication', async () => {
  const first = await publish(world, 'web');
  await createTarget();
  await deliver();
  for (const end of ['repair', 'publication']) {
    await world.push(site, { [FILE]: `${BY_HAND}# ${end}\n` });
    await deliver();
    await report();
    await becomes('web', DRIFTED);
    if (end === 'repair') await change({ drift: 'Repair' });
    else await publishNext(world, first, 'w2', '2');
    await deliver();
    await report();
    await becomes('web', GOOD);
    await change({ drift: 'Report' });
  }
});

test('kept changes that fail lead to no rollback', async () => {
  const first = await publish(world, 'web');
  await createTarget();
  await deliver();
  await publishNext(world, first, 'w2', '2');
  await deliver();
  await world.push(site, { [FILE]: BY_HAND });
  await deliver();
  await publish(world, 'db');
  await deliver();
  await report(['False', 'HealthCheckFailed']);
  await becomes('web', DRIFTED);
  const object = await target();
  const packages = (await listDelivered(world.client, object)).of(object);
  const context = {
    monotonicMs: 0,
    highestOf: ({ package: path }: { readonly package: string }) => (path === 'web' ? 2 : 1),
  };
  const { observations } = decideRollbacks(object, packages, new Map(), context);
  expect([...observations.keys()]).toEqual(['apps/db']);
});
