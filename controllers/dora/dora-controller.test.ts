import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { deploymentSources } from '../../src/app/controllers/deployment-sources.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { figuresOf } from '../../src/delivery/dora/figures.ts';
import type { NewResults } from '../../src/delivery/dora/new-results.ts';
import { revertReason } from '../../src/delivery/dora/revert-reason.ts';
import { gitRepositoryKind, kustomizationKind } from '../../src/delivery/status/sources/engine-kinds.ts';
import { writeMessage } from '../../src/delivery/tree/trailers.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { CONTEXT, configMap, controllerOn } from '../../test/support/delivery.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { deploymentStatusController } from '../deployment-status/deployment-controller.ts';
import { rollbackController } from '../rollback/rollback-controller.ts';
import { doraController, doraResults } from './dora-controller.ts';

const KEY = { namespace: 'default', name: 'edge' };
const MINUTE = 60_000;
const START = Date.UTC(2026, 0, 1);

let world: Fixture;
let clock: ManualClock;
/** Milliseconds by which the time is set forward, without the timers of watches. */
let jump: number;
let cluster: RegistryClient;
let site: string;
let controllers: Readonly<Record<'delivery' | 'readBack' | 'rollback' | 'dora', ControllerOptions>>;
let results: unknown[];
let ends: (() => void)[];

beforeEach(async () => {
  clock = new ManualClock(START);
  jump = 0;
  const now = clock.now.bind(clock);
  clock.now = () => now() + jump;
  world = await fixture(clock);
  await world.register('apps');
  site = await world.bare('site');
  const registry = new Registry();
  for (const kind of [kustomizationKind, gitRepositoryKind])
    registry.register(new MemoryStorage(kind, { clock, log: new EventLog({ clock }) }));
  cluster = new RegistryClient(registry, { name: 'flux' }, 'controller');
  const source = { url: site, ref: { branch: 'main' } };
  await cluster.create(gitRepositoryKind, {
    metadata: { namespace: 'flux-system', name: 'site' },
    spec: source,
  } as never);
  const { client, store, folder } = world;
  const common = { client, store, clock, dataFolder: join(folder, 'data'), git: { network: DEFAULT_NETWORK } };
  const sources = deploymentSources({ client, clock, network: DEFAULT_NETWORK, cluster });
  controllers = {
    delivery: controllerOn(world),
    readBack: deploymentStatusController({ ...common, sources, window: 0, recorder: world.recorder('read-back') }),
    rollback: rollbackController({
      ...common,
      recorder: world.recorder('rollback'),
      monotonic: () => clock.now(),
    }),
    dora: doraController(common),
  };
  results = [];
  ends = [
    doraResults.subscribe((result) => results.push(result)),
    ...(controllers.readBack.sources ?? []).slice(2).map((source) =>
      source.start({
        enqueue: () => undefined,
        informer: () => {
          throw new Error('not used here');
        },
        release: () => undefined,
        prioritize: () => undefined,
        track: () => undefined,
      }),
    ),
  ];
});
afterEach(async () => {
  for (const end of ends) end();
  await world[Symbol.asyncDispose]();
});

const run = (name: keyof typeof controllers) => controllers[name].reconcile(KEY, CONTEXT);
const target = () => world.client.get(deliveryTargetKind, KEY);
const history = async () => (await target()).status?.history;
const at = (minutes: number) => new Date(START + minutes * MINUTE).toISOString();

/** The time of the test, in minutes after its start. */
function goTo(minutes: number): void {
  jump = minutes * MINUTE;
}

async function createTarget(spec: object = {}): Promise<void> {
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, ...spec } as never,
  });
}

async function draft(workspace: string, value: string, source?: string): Promise<string> {
  if (source === undefined) return (await world.draft(`apps/web/${workspace}`, { 'cm.yaml': configMap('web') })).name;
  const copy = { type: 'copy', source } as const;
  const { name } = await world.store.create('apps', { package: 'web', workspace, source: copy }, ANNA);
  const files = new Map([['cm.yaml', Buffer.from(configMap('web', value))]]);
  await world.store.change(name, { files }, ANNA);
  return name;
}

async function deliver(): Promise<void> {
  await run('delivery');
  await run('readBack');
  await run('dora');
}

/** What Flux reports of the head of the branch, and what follows from it. */
async function report(status: 'True' | 'False'): Promise<void> {
  const key = { namespace: 'flux-system', name: 'edge' };
  const revision = `main@sha1:${gitCli(site, ['rev-parse', 'main'])}`;
  const present = await cluster.find(kustomizationKind, key);
  const reason = status === 'True' ? 'ReconciliationSucceeded' : 'HealthCheckFailed';
  const object = {
    metadata: { ...key, ...present?.metadata },
    spec: { path: 'clusters/edge', wait: true, sourceRef: { kind: 'GitRepository', name: 'site' } },
    status: {
      observedGeneration: present?.metadata.generation ?? 1,
      ...{ lastAppliedRevision: revision, lastAttemptedRevision: revision },
      conditions: [{ type: 'Ready', status, reason, message: 'Deployment web: 2/3' }],
    },
  };
  if (present === undefined) await cluster.create(kustomizationKind, object);
  else await cluster.update(kustomizationKind, { ...present, ...object } as never);
  // The watch delivers the report a moment later.
  const read = async () => {
    await run('readBack');
    const { deployment, lastCommit } = (await target()).status ?? {};
    return deployment?.commit === lastCommit ? deployment?.healthy.status : undefined;
  };
  await expect.poll(read, { timeout: 10_000, interval: 5 }).toBe(status);
  await run('dora');
}

test('figures from drafts, deliveries, an automatic rollback and a revert are those computed by hand', async () => {
  await createTarget({ engine: { type: 'Flux', name: 'edge' }, rollback: { unhealthyAfter: '10m' } });
  // v1: draft at 0, delivered at 30, healthy at 40. Lead time 40 minutes.
  const first = await draft('w1', 'one');
  goTo(30);
  await world.publish(first);
  await deliver();
  goTo(40);
  await report('True');

  // v2: draft at 50, delivered at 60, unhealthy at 62, rolled back at 73, healthy again at 75. Restored after 13 minutes.
  goTo(50);
  const second = await draft('w2', 'two', first);
  goTo(60);
  await world.publish(second);
  await deliver();
  goTo(62);
  await report('False');
  await run('rollback');
  goTo(73);
  await run('rollback');
  await run('dora');
  expect((await target()).status?.rollbacks).toMatchObject([{ from: 2, to: 1 }]);
  await deliver();
  goTo(75);
  await report('True');

  // v3: draft at 80, delivered at 100, healthy at 110: lead time 30 minutes. v4 reverts it at 200, healthy at 205.
  goTo(80);
  const third = await draft('w3', 'three', second);
  goTo(100);
  await world.publish(third);
  await deliver();
  goTo(110);
  await report('True');
  goTo(190);
  const fourth = await draft('w4', 'one', first);
  const propose = { action: 'propose', reason: revertReason(3, 1, 'slow') } as const;
  await world.store.update(fourth, { action: 'propose' }, { ...ANNA, reason: propose.reason });
  goTo(200);
  await world.store.update(fourth, { action: 'approve' }, { ...ANNA, actor: { name: 'berta' } });
  await deliver();
  goTo(205);
  await report('True');

  const web = { repository: 'apps', package: 'web' };
  const { changes = [], commit, completeFrom } = (await history()) ?? {};
  expect(changes.map(({ createdAt, ...change }) => ({ ...change, createdAt: Date.parse(createdAt ?? '') }))).toEqual([
    {
      ...{ ...web, revision: 1, createdAt: START, deliveredAt: at(30), syncedAt: at(40), healthyAt: at(40) },
      replacedAt: at(60),
    },
    {
      ...{ ...web, revision: 2, createdAt: START + 50 * MINUTE, deliveredAt: at(60), syncedAt: at(62) },
      ...{ failure: 'RolledBack', failedAt: at(62), restoredAt: at(75), replacedAt: at(100) },
    },
    {
      ...{ ...web, revision: 3, createdAt: START + 80 * MINUTE, deliveredAt: at(100), syncedAt: at(110) },
      ...{ healthyAt: at(110), failure: 'Reverted', failedAt: at(200), restoredAt: at(205), replacedAt: at(200) },
    },
    {
      ...{ ...web, revision: 4, createdAt: START + 190 * MINUTE, deliveredAt: at(200), syncedAt: at(205) },
      healthyAt: at(205),
    },
  ]);
  expect({ commit, completeFrom }).toEqual({ commit: gitCli(site, ['rev-parse', 'main']), completeFrom: at(0) });
  // Lead times 40, 30 and 15 minutes; failures v2 and v3, restored after 13 and 5 minutes.
  expect(figuresOf(changes, { from: START, to: START + 2 * 24 * 60 * MINUTE })).toEqual({
    ...{ deployments: 4, deploymentsPerDay: 2, leadTime: { count: 3, p50Seconds: 1800, p90Seconds: 2400 } },
    ...{ judgedChanges: 4, failedChanges: 2, changeFailureRate: 0.5 },
    timeToRestore: { count: 2, p50Seconds: 300, p90Seconds: 780 },
  });

  // The metrics count each result once.
  const total = results as { readonly results: NewResults }[];
  expect(total.reduce((sum, one) => sum + one.results.deployments, 0)).toBe(4);
  expect(total.flatMap((one) => one.results.leadTimesMs)).toEqual([40, 30, 15].map((minutes) => minutes * MINUTE));
  expect(total.flatMap((one) => one.results.failures)).toEqual(['Unhealthy', 'Reverted']);
  expect(total.flatMap((one) => one.results.timesToRestoreMs)).toEqual([13 * MINUTE, 5 * MINUTE]);

  // Without the history, deliveries and their failures come from Git again; what cannot be known again stays unknown.
  const full = await target();
  goTo(2 * 24 * 60);
  const { history: _, ...rest } = full.status ?? {};
  await world.client.updateStatus(deliveryTargetKind, { ...full, status: rest });
  results.length = 0;
  await run('dora');
  const again = (await history())?.changes ?? [];
  expect(again.map(({ revision, deliveredAt, createdAt }) => ({ revision, deliveredAt, createdAt }))).toEqual(
    changes.map(({ revision, deliveredAt, createdAt }) => ({ revision, deliveredAt, createdAt })),
  );
  expect(again.map(({ failure }) => failure)).toEqual([undefined, 'Downgraded', 'Reverted', undefined]);
  expect(again.every(({ healthyAt }) => healthyAt === undefined)).toBe(true);
  expect(results).toMatchObject([{ results: { deployments: 0, leadTimesMs: [], failures: [] } }]);

  // Nothing new: nothing is written.
  const { metadata } = await target();
  await run('dora');
  expect((await target()).metadata.resourceVersion).toBe(metadata.resourceVersion);
});

test('repairs, and a branch whose commits another writer replaced, add no deployment', async () => {
  await createTarget();
  const first = await draft('w1', 'one');
  await world.publish(first);
  goTo(1);
  await run('delivery');
  await run('dora');
  expect((await history())?.changes).toMatchObject([{ revision: 1, deliveredAt: at(1) }]);

  goTo(10);
  const path = 'clusters/edge/web/cm.yaml';
  await world.push(site, { [path]: 'changed by another writer\n' }, 'main', 'main');
  await run('delivery');
  await run('dora');
  expect(gitCli(site, ['log', '-1', '--format=%s', 'main'])).toContain('Deliver web v1');

  // The same tree in one commit without parents and trailers: Sluice has nothing to deliver, and then a revision.
  const squashed = gitCli(site, ['commit-tree', 'main^{tree}', '-m', 'squashed']);
  gitCli(site, ['update-ref', 'refs/heads/main', squashed]);
  goTo(20);
  await world.publish(await draft('w2', 'two', first));
  await run('delivery');
  await run('dora');
  expect((await history())?.changes).toMatchObject([
    { revision: 1, deliveredAt: at(1), replacedAt: at(20) },
    { revision: 2, deliveredAt: at(20) },
  ]);

  // What the history no longer has, the folder in the branch still shows.
  const present = await target();
  const { history: known, ...rest } = present.status ?? {};
  const without = { ...rest, ...(known === undefined ? {} : { history: { ...known, changes: [] } }) };
  await world.client.updateStatus(deliveryTargetKind, { ...present, status: without });
  goTo(30);
  await world.push(site, { [path]: 'changed again\n' }, 'main', 'main');
  await run('delivery');
  await run('dora');
  expect((await history())?.changes).toEqual([]);
});

test('a number that no revision has is not recorded, whatever the branch says', async () => {
  await createTarget();
  await world.publish(await draft('w1', 'one'));
  await run('delivery');
  const web = { repository: 'apps', package: 'web', sourceCommit: 's', sourceTree: 't', gates: [] };
  const message = writeMessage('edge', { delivered: [{ ...web, revision: 999 }], removed: [] });
  const forged = gitCli(site, ['commit-tree', 'main^{tree}', '-p', 'main', '-m', message]);
  gitCli(site, ['update-ref', 'refs/heads/main', forged]);
  const present = await target();
  await world.client.updateStatus(deliveryTargetKind, {
    ...present,
    status: { ...present.status, lastCommit: forged },
  });
  await run('dora');
  expect(await history()).toMatchObject({ commit: forged, changes: [{ revision: 1 }] });
});

test('a deleted target is forgotten', async () => {
  await run('dora');
  expect(results).toEqual([{ namespace: 'default', target: 'edge', results: undefined }]);
});
