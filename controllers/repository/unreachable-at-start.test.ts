import { dirname } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { type GitServer, startGitServer } from '../../test/support/git/git-server.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

let clock: ManualClock;
let world: Fixture;
let server: GitServer;
let origin: string;
beforeEach(async () => {
  clock = new ManualClock();
  world = await fixture(clock);
  origin = await world.bare('apps');
  await world.push(origin, { 'one/Kptfile': KPTFILE });
  server = await startGitServer({ root: dirname(origin) });
  await register('apps');
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  await server.close();
});

const register = (name: string) =>
  world.client.create(repositoryKind, { metadata: { name }, spec: { git: { repo: `${server.url}/apps.git` } } });
const reconcile = (controller = repositoryControllerOf(world, { remoteInterval: 1000 }), name = 'apps') =>
  controller.reconcile({ namespace: 'default', name }, CONTEXT);
const status = async () => (await world.client.get(repositoryKind, { name: 'apps' })).status;
const names = () => world.store.list().map(({ name }) => name);

test('a repository whose host is down when the process starts is opened as its mirror has it, and synced later', async () => {
  await reconcile();
  const { lastFullSyncTime } = (await status()) ?? {};
  expect(lastFullSyncTime).toBeDefined();
  await world.store.remove('apps');
  server.behaviour.refuse = 503;
  clock.advance(60_000);
  // Another process, which knows only what is on the disk and in the objects.
  const controller = repositoryControllerOf(world, { remoteInterval: 1000 });
  await expect(reconcile(controller)).rejects.toMatchObject({ code: 'Unavailable' });
  expect(names()).toEqual(['apps.one.main']);
  expect(findCondition((await status())?.conditions, 'Ready')?.status).toBe('False');
  expect((await status())?.lastFullSyncTime).toBe(lastFullSyncTime);
  server.behaviour.refuse = undefined;
  await world.push(origin, { 'two/Kptfile': KPTFILE });
  // The host asked for a pause, or the controller makes one.
  clock.advance(600_000);
  await reconcile(controller);
  expect(names()).toEqual(['apps.one.main', 'apps.two.main']);
  expect(findCondition((await status())?.conditions, 'Ready')?.status).toBe('True');
});

test('a registration that never read the remote does not get what another one has fetched', async () => {
  await reconcile();
  await world.store.remove('apps');
  await world.client.delete(repositoryKind, { name: 'apps' });
  server.behaviour.refuse = 503;
  await register('apps');
  await expect(reconcile()).rejects.toMatchObject({ code: 'Unavailable' });
  expect(names()).toEqual([]);
});
