import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { deliveredOf } from '../../src/delivery/delivered/list-delivered.ts';
import { state } from '../../src/delivery/status/engine-report.ts';
import { targetDeployment } from '../../src/delivery/status/target-deployment.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { CONTEXT, controllerOn, publish, publishNext, rebaseMain } from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { rollbackController } from './rollback-controller.ts';

const KEY = { namespace: 'default', name: 'edge' };
const DEGRADED = [state('True', 'Synced', ''), state('False', 'Degraded', 'Deployment web not ready: 2/3')] as const;

let world: Fixture;
let clock: ManualClock;
let site: string;
let delivery: ControllerOptions;
let rollback: ControllerOptions;
let monotonicMs: number;

beforeEach(async () => {
  clock = new ManualClock();
  world = await fixture(clock);
  await world.register('apps');
  site = await world.bare('site');
  delivery = controllerOn(world);
  monotonicMs = 0;
  const { client, store, folder } = world;
  rollback = rollbackController({
    ...{ client, store, clock, dataFolder: join(folder, 'data'), git: { network: DEFAULT_NETWORK } },
    recorder: world.recorder('controller:rollback'),
    monotonic: () => monotonicMs,
  });
});
afterEach(() => world[Symbol.asyncDispose]());

const deliver = () => delivery.reconcile(KEY, CONTEXT);
const decide = () => rollback.reconcile(KEY, CONTEXT);
const target = () => world.client.get(deliveryTargetKind, KEY);
const present = () => gitCli(site, ['show', 'main:web/cm.yaml']);

async function report([synced, healthy]: readonly [ReturnType<typeof state>, ReturnType<typeof state>]): Promise<void> {
  const now = await target();
  const { lastCommit, deployment: before } = now.status ?? {};
  const packages = await deliveredOf(world.client, undefined, now);
  const evaluated = packages.map((one) => ({ ...one, synced, healthy }));
  const deployment = targetDeployment(evaluated, {
    ...{ delivered: state('True', 'Synced', ''), commit: lastCommit, objects: [], before, now: clock.now() },
  });
  await world.client.updateStatus(deliveryTargetKind, { ...now, status: { ...now.status, deployment } });
}

async function minutesPass(minutes: number): Promise<void> {
  monotonicMs += minutes * 60_000;
  await decide();
}

async function createTarget(): Promise<void> {
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site }, engine: { type: 'Flux' }, rollback: { unhealthyAfter: '10m' } } as never,
  });
}

/** Two delivered revisions, of which the last one has been unhealthy for nine minutes. */
async function failSecondUntilDue(): Promise<string> {
  const first = await publish(world, 'web', 'one');
  await createTarget();
  await deliver();
  const second = await publishNext(world, first, 'w2', 'two');
  await deliver();
  expect(present()).toContain('two');
  await report(DEGRADED);
  await decide();
  await minutesPass(9);
  expect((await target()).status?.rollbacks).toBeUndefined();
  return second;
}

/** The same two minutes later. */
async function failSecond(): Promise<string> {
  const second = await failSecondUntilDue();
  await minutesPass(2);
  return second;
}

test('a revision that stays unhealthy is replaced by the one before, until the next publication', async () => {
  const second = await failSecond();
  const { status } = await target();
  expect(status?.rollbacks).toMatchObject([
    {
      ...{ repository: 'apps', package: 'web', from: 2, to: 1, commit: world.store.get(second).commit },
      reason: 'Degraded: Deployment web not ready: 2/3',
    },
  ]);
  expect(findCondition(status?.conditions, 'RolledBack')).toMatchObject({
    ...{ status: 'True', message: expect.stringContaining('apps/web v2 failed, so v1 is delivered') },
  });
  await deliver();
  expect(present()).toContain('one');
  expect(await deliveredOf(world.client, undefined, await target())).toMatchObject([{ revision: 1 }]);
  // The earlier revision fails too: the target stays with it.
  await report(DEGRADED);
  await decide();
  await minutesPass(30);
  expect((await target()).status?.rollbacks).toHaveLength(1);
  await publishNext(world, second, 'w3', 'three');
  await deliver();
  expect(present()).toContain('three');
  expect(await world.events('edge')).toContainEqual(expect.stringMatching(/^RolledBack: apps\/web v2 failed/));
  // The revision itself shows where it was delivered, and that it failed there.
  expect(await world.events(second)).toEqual([
    expect.stringMatching(/^Delivered: DeliveryTarget edge: commit [0-9a-f]{40}$/),
    expect.stringMatching(/^RolledBack: DeliveryTarget edge: apps\/web v2 failed, so v1 is delivered/),
  ]);
  const after = (await target()).status;
  expect(after?.rollbacks).toBeUndefined();
  // The mark of the failed revision stays.
  expect(after?.failedRevisions).toMatchObject([{ repository: 'apps', package: 'web', revision: 2 }]);
  expect(findCondition(after?.conditions, 'RolledBack')).toMatchObject({ status: 'False', reason: 'Ended' });
});

test('a revision that fails after a rebase of the branch is rolled back by the new commits', async () => {
  const first = await publish(world, 'web', 'one');
  await createTarget();
  await deliver();
  await publishNext(world, first, 'w2', 'two');
  await deliver();
  const rebased = rebaseMain(site);
  await deliver();
  expect((await target()).status?.lastCommit).toBe(rebased);
  await report(DEGRADED);
  await decide();
  await minutesPass(11);
  expect((await target()).status?.rollbacks).toMatchObject([{ package: 'web', from: 2, to: 1 }]);
});

test('a user ends a rollback by an annotation, and the revision is delivered again and kept', async () => {
  await failSecond();
  await deliver();
  const rolledBack = await target();
  const annotations = { 'sluice.dev/resume': 'apps/web@v2' };
  await world.client.update(deliveryTargetKind, { ...rolledBack, metadata: { ...rolledBack.metadata, annotations } });
  await decide();
  const resumed = await target();
  expect(resumed.status?.rollbacks).toBeUndefined();
  expect(resumed.status?.failedRevisions).toBeUndefined();
  await deliver();
  expect(present()).toContain('two');
  await report(DEGRADED);
  await decide();
  await minutesPass(30);
  expect((await target()).status?.rollbacks).toBeUndefined();
});

test('a pin wins over a rollback, and a pinned package is not rolled back', async () => {
  await failSecond();
  await deliver();
  const rolledBack = await target();
  const pins = [{ repository: 'apps', package: 'web', revision: 2 }];
  await world.client.update(deliveryTargetKind, { ...rolledBack, spec: { ...rolledBack.spec, pins } });
  await deliver();
  expect(present()).toContain('two');
  expect((await target()).status?.rollbacks).toHaveLength(1);
});

test('a package without an earlier delivery stays, with an event', async () => {
  await publish(world, 'web', 'one');
  await createTarget();
  await deliver();
  await report(DEGRADED);
  await decide();
  await minutesPass(11);
  expect((await target()).status?.rollbacks).toBeUndefined();
  expect((await world.events('edge')).at(-1)).toMatch(
    /^RollbackImpossible: apps\/web v1 is unhealthy, but is not rolled back: /,
  );
  // The branch is not read again until something changes: a read would fail now.
  await rename(site, `${site}.away`);
  await minutesPass(10);
  const now = await target();
  await world.client.update(deliveryTargetKind, { ...now, spec: { ...now.spec, allowOutOfBand: true } });
  await expect(decide()).rejects.toThrow();
  await rename(`${site}.away`, site);
  await decide();
  const events = (await world.events('edge')).filter((event) => event.startsWith('RollbackImpossible'));
  expect(events).toHaveLength(1);
});

test('many packages without an earlier delivery have one event, with a bounded list of names', async () => {
  for (let index = 0; index < 12; index += 1) await publish(world, `p${index}`, 'one');
  await createTarget();
  await deliver();
  await report(DEGRADED);
  await decide();
  await minutesPass(11);
  const events = (await world.events('edge')).filter((event) => event.startsWith('RollbackImpossible'));
  expect(events).toEqual([
    expect.stringMatching(
      /^RollbackImpossible: 12 packages are unhealthy, but are not rolled back: no lower revision [^:]*: (apps\/p\d+ v1, ){10}and 2 more$/,
    ),
  ]);
});

test('a search for earlier revisions ends when the reconciliation is aborted', async () => {
  await failSecondUntilDue();
  monotonicMs += 2 * 60_000;
  const aborted = { ...CONTEXT, signal: AbortSignal.abort() };
  await expect(rollback.reconcile(KEY, aborted)).rejects.toThrow('aborted');
  expect((await target()).status?.rollbacks).toBeUndefined();
});
