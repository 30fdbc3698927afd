import { dirname } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SyncRequests } from '../../../../controllers/repository/sync-requests.ts';
import { type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { type GitServer, startGitServer } from '../../../../test/support/git/git-server.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../../git/network/git-network.ts';
import { repositoryKind } from '../../../resource/kinds/porch/repository.ts';
import { createDataFolder, dataFolder } from '../../data/data-folder.ts';
import { Session } from '../../session/session.ts';
import { RepositoryFollower } from './repository-follower.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';

let clock: ManualClock;
let world: Fixture;
let server: GitServer;
let origin: string;
let ends: (() => Promise<unknown>)[];
beforeEach(async () => {
  clock = new ManualClock();
  world = await fixture(clock);
  origin = await world.bare('apps');
  await world.push(origin, { 'one/Kptfile': KPTFILE });
  server = await startGitServer({ root: dirname(origin) });
  ends = [];
});
afterEach(async () => {
  for (const end of ends.reverse()) await end();
  await world[Symbol.asyncDispose]();
  await server.close();
});

/** Another process on the same folder. */
async function follow() {
  const folder = dataFolder(`${dirname(origin)}/data`);
  await createDataFolder(folder);
  const session = await Session.open({
    ...{ folder, actor: { name: 'sluice' }, clock, write: true, opens: true, network: DEFAULT_NETWORK },
  });
  ends.push(() => session.close());
  const read: string[] = [];
  const requests = new SyncRequests(clock);
  const warnings: string[] = [];
  const warn = (_subject: string, message: string) => void warnings.push(message);
  const follower = new RepositoryFollower({ session, requests, warn, onRead: (id) => read.push(id) });
  ends.push(() => follower.stop());
  return { session, follower, requests, read, warnings };
}

async function end(): Promise<void> {
  for (const one of ends.splice(0).reverse()) await one();
}

/** Polls while the time passes in which the follower looks again. */
function eventually(value: () => unknown) {
  return expect.poll(async () => {
    await clock.advanceAsync(1000);
    return value();
  });
}

const names = ({ store }: Session) => store.list().map(({ name }) => name);

test('a repository whose host is down when the process starts is opened as its mirror has it, and synced later', async () => {
  const first = await follow();
  const { client } = first.session;
  const apps = { metadata: { name: 'apps' }, spec: { git: { repo: `${server.url}/apps.git` } } };
  const created = await client.create(repositoryKind, apps);
  first.follower.start();
  await eventually(() => first.read).toEqual(['default/apps']);
  // As the leader reports it.
  const lastFullSyncTime = new Date(clock.now()).toISOString();
  await client
    .subResource('status')
    .update(repositoryKind, { ...created, status: { conditions: [], lastFullSyncTime } });
  await end();

  server.behaviour.refuse = 503;
  const second = await follow();
  second.follower.start();
  await eventually(() => second.read).toEqual(['default/apps']);
  expect(names(second.session)).toEqual(['apps.one.main']);
  expect(second.warnings).toEqual([]);
  server.behaviour.refuse = undefined;
  await world.push(origin, { 'two/Kptfile': KPTFILE });
  await eventually(() => names(second.session)).toEqual(['apps.one.main', 'apps.two.main']);
});

test('reads a repository only when it is due, or when a sync is requested, also during another sync', async () => {
  const { session, follower, requests, read } = await follow();
  const apps = { metadata: { name: 'apps' }, spec: { git: { repo: `${server.url}/apps.git` } } };
  await session.client.create(repositoryKind, apps);
  follower.start();
  await eventually(() => read).toEqual(['default/apps']);
  const before = server.requests.length;
  for (let second = 0; second < 3; second += 1) await clock.advanceAsync(1000);
  expect(server.requests.length).toBe(before);

  const held = Promise.withResolvers<void>();
  server.behaviour.holdFetch = held.promise;
  requests.add({ namespace: 'default', name: 'apps' }, 'everything');
  await expect.poll(() => server.requests.length).toBeGreaterThan(before);
  await world.push(origin, { 'two/Kptfile': KPTFILE });
  await clock.advanceAsync(300);
  requests.add({ namespace: 'default', name: 'apps' }, 'everything');
  held.resolve();
  server.behaviour.holdFetch = undefined;
  await eventually(() => names(session)).toEqual(['apps.one.main', 'apps.two.main']);
});

test('a repository with wrong credentials, or other settings, keeps its packages, and its deletion removes them', async () => {
  const { session, follower, read, warnings } = await follow();
  const apps = { metadata: { name: 'apps' }, spec: { git: { repo: `${server.url}/apps.git` } } };
  await session.client.create(repositoryKind, apps);
  follower.start();
  await eventually(() => read).toEqual(['default/apps']);
  const changes: unknown[] = [];
  session.store.subscribe((some) => void changes.push(...some));
  const opened = session.store.findRepository('default/apps');
  await session.client.patch(repositoryKind, { name: 'apps' }, { spec: { git: { secretRef: { name: 'typo' } } } });
  await eventually(() => warnings.some((message) => message.includes('typo'))).toBe(true);
  await session.client.patch(repositoryKind, { name: 'apps' }, { spec: { git: { secretRef: null } } });
  await world.push(origin, { 'two/Kptfile': KPTFILE });
  await eventually(() => names(session)).toEqual(['apps.one.main', 'apps.two.main']);
  expect(session.store.findRepository('default/apps')).not.toBe(opened);
  expect(changes).toHaveLength(1);
  await session.client.delete(repositoryKind, { name: 'apps' });
  await eventually(() => names(session)).toEqual([]);
});
