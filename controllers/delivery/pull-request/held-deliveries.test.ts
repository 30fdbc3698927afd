import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../../src/controller/controller.ts';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, controllerOn, publish, statusOf } from '../../../test/support/delivery.ts';
import { commitFile, headOf, hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { type Fixture, fixture } from '../../../test/support/fixture.ts';
import { writeRef } from '../../../test/support/git/write-objects.ts';
import { MemoryForge } from '../../pull-request/testing-forge.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';

const KEY = { namespace: 'default', name: 'edge' };
const BRANCH = 'sluice/delivery/edge';

let world: Fixture;
let clock: ManualClock;
let site: string;
let forge: MemoryForge;
let requests: SyncRequests;
let controller: ControllerOptions;
beforeEach(async () => {
  clock = new ManualClock();
  world = await fixture(clock);
  await world.register('apps');
  site = await world.bare('site');
  forge = new MemoryForge();
  hostRepository(forge, site);
  requests = new SyncRequests(clock);
  controller = controllerOn(world, { openForge: () => forge, onCommit: () => undefined, requests });
  controller.sources.at(-1)?.start({ enqueue: () => undefined } as never);
  await publish(world, 'web');
  const api = 'https://git.example.com/api/v1';
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: {
      ...{ selector: {}, git: { repo: site, directory: 'clusters/edge' }, allowPrune: true },
      pullRequest: { forge: { provider: 'gitea', api, secretRef: { name: 'forge' } } },
    },
  });
});
afterEach(() => world[Symbol.asyncDispose]());

const reconcile = () => controller.reconcile(KEY, CONTEXT);
/** The requests of so many looks. */
async function looks(count: number): Promise<readonly string[]> {
  forge.calls.length = 0;
  for (let turn = 0; turn < count; turn += 1) {
    clock.advance(60_000);
    await reconcile();
  }
  return [...forge.calls];
}
async function closeByUser(): Promise<void> {
  await reconcile();
  forge.closings.set(1, { by: 'anna', comment: 'not on a Friday' });
  forge.change(1, { state: 'closed', closedAt: '2030-01-01T00:00:00Z' });
  await reconcile();
  // Who closed it is read twice.
  await reconcile();
}
const openByUser = () => forge.open({ head: BRANCH, base: 'main', title: 'By a user', body: '' });

test('a delivery that a user has closed costs one request for each look while nothing changes', async () => {
  await closeByUser();
  expect(await looks(14)).toEqual(Array(14).fill('get'));
  const held = { reason: 'PullRequestClosed', message: expect.stringContaining('by anna (not on a Friday)') };
  expect(await statusOf(world)).toMatchObject(held);
  // Another comment explains it.
  forge.closings.set(1, { by: 'anna', comment: 'the site is closed' });
  forge.change(1, {});
  expect(await looks(3)).toEqual(['get', 'find', 'closing', 'get', 'closing', 'get']);
  expect((await statusOf(world)).message).toContain('by anna (the site is closed)');
});

test('one that a user has closed is found again after some minutes, and another one of its branch with that', async () => {
  await closeByUser();
  await looks(10);
  await openByUser();
  await looks(4);
  expect((await statusOf(world)).reason).toBe('PullRequestClosed');
  await looks(1);
  const { reason, status } = await statusOf(world);
  expect([reason, status?.pullRequest?.number]).toEqual(['WaitsForMerge', 2]);
});

test('another pull request of the branch is found at once when a message reports it, also after a failure', async () => {
  await closeByUser();
  await looks(1);
  await openByUser();
  requests.wake(KEY);
  const { find } = forge;
  forge.find = () => Promise.reject(new Error('a failure of the host'));
  await expect(reconcile()).rejects.toThrow(/a failure of the host/);
  forge.find = find;
  await reconcile();
  expect((await statusOf(world)).status?.pullRequest?.number).toBe(2);
});

test('a branch that a user has changed is not searched for its pull request at each look either', async () => {
  writeRef(site, `refs/heads/${BRANCH}`, headOf(site, 'main') ?? '');
  commitFile(site, BRANCH, 'clusters/edge/web/cm.yaml', 'of a user');
  await reconcile();
  await reconcile();
  expect((await statusOf(world)).reason).toBe('BranchChanged');
  expect(await looks(5)).toEqual([]);
  commitFile(site, BRANCH, 'clusters/edge/web/cm.yaml', 'of a user again');
  expect(await looks(2)).toEqual(['find']);
});
