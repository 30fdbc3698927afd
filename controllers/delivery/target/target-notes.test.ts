import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import {
  CONTEXT,
  configMap,
  controllerOn,
  publish,
  publishNext,
  type TargetSpec,
} from '../../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../../test/support/delivery-world.ts';
import { targetNotes } from './target-notes.ts';

const KEY = { namespace: 'default', name: 'edge' };
const PACKAGE = { repository: 'apps', package: 'web' };

useDeliveryWorld();

async function deliver(spec: Partial<TargetSpec> = {}): Promise<void> {
  const git = { repo: site, directory: 'clusters/edge' };
  await world.client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec: { selector: {}, git, ...spec } });
  await reconcile();
}

const controller = () => controllerOn(world);
const reconcile = () => controller().reconcile(KEY, CONTEXT);
const target = () => world.client.get(deliveryTargetKind, KEY);
async function notesOf(name: string): Promise<string[]> {
  // Events are written in the background.
  await world.events('edge');
  return targetNotes(world.client, await target(), world.store.get(name), undefined);
}

test('a change of another writer is mentioned for its package, without what it contains', async () => {
  const web = await publish(world, 'web');
  const db = await publish(world, 'db');
  await deliver({ drift: 'Report' });
  const commit = await world.push(site, { 'clusters/edge/web/cm.yaml': configMap('web', 'by hand') });
  await reconcile();
  const [note = '', ...more] = await notesOf(web);
  expect(note).toContain(`drifted: clusters/edge/web (v1) was changed by commit ${commit} by `);
  expect(note).toContain('the change is kept (spec.drift: Report)');
  expect(note).not.toContain('by hand');
  expect([more, await notesOf(db)]).toEqual([[], []]);
  await world.client.patch(deliveryTargetKind, KEY, { spec: { drift: 'Repair' } });
  await reconcile();
  expect(await notesOf(web)).toEqual([expect.stringContaining('; the change was repaired')]);
});

test('the revision that a rollback delivers again names the failed one', async () => {
  const first = await publish(world, 'web');
  const second = await publishNext(world, first, 'w2', 'two');
  await deliver();
  const now = await target();
  const rollback = { ...PACKAGE, from: 2, to: 1, time: '2026-01-01T00:00:00Z', reason: 'Degraded: 2/3' };
  await world.client.updateStatus(deliveryTargetKind, { ...now, status: { ...now.status, rollbacks: [rollback] } });
  expect(await notesOf(first)).toEqual([
    'rolled back: v2 failed (2026-01-01T00:00:00Z): Degraded: 2/3; this revision is delivered until the next publication, or until "sluice target resume edge"',
  ]);
  expect(await notesOf(second)).toEqual([]);
});

test('a trigger that failed for the last commit is mentioned, and a rollback that is impossible', async () => {
  const web = await publish(world, 'web');
  const db = await publish(world, 'db');
  await deliver();
  const delivered = await target();
  const { lastCommit = '' } = delivered.status ?? {};
  const recorder = world.recorder('controller:sync-trigger');
  const record = (reason: string, message: string) => recorder.record(delivered, 'Warning', reason, message);
  record('SyncNotTriggered', 'cannot start a sync of commit 000000000000: an earlier one');
  record('SyncNotTriggered', `cannot start a sync of commit ${lastCommit.slice(0, 12)}: it returned 403`);
  record('RollbackImpossible', 'apps/web v1 is unhealthy, but is not rolled back: no revision below');
  const trigger = expect.stringMatching(/^trigger failed \(.*\): cannot start a sync of commit .*: it returned 403$/);
  expect(await notesOf(web)).toEqual([
    expect.stringMatching(/^no rollback \(.*\): apps\/web v1 is unhealthy/),
    trigger,
  ]);
  expect(await notesOf(db)).toEqual([trigger]);
});

test('one event about several packages without a rollback is a note of those that it names, and perhaps of others', async () => {
  const web = await publish(world, 'web');
  const db = await publish(world, 'db');
  await deliver();
  const recorder = world.recorder('controller:rollback');
  const record = (message: string) => recorder.record(delivered, 'Warning', 'RollbackImpossible', message);
  const delivered = await target();
  record('2 packages are unhealthy, but are not rolled back: no lower revision: apps/web v1, apps/other v1');
  expect(await notesOf(web)).toEqual([expect.stringMatching(/^no rollback \(.*\): 2 packages are unhealthy/)]);
  expect(await notesOf(db)).toEqual([]);
  record('9 packages are unhealthy, but are not rolled back: no lower revision: apps/web v1, and 8 more');
  expect(await notesOf(db)).toEqual([
    expect.stringMatching(/^no rollback, perhaps of this package \(.*\): 9 packages are unhealthy/),
  ]);
});
