import { chmodSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { fsck } from '../../test/support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../test/support/git/git-server.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

let clock: ManualClock;
let world: Fixture;
let server: GitServer;
let controller: ControllerOptions;
let data: string;
beforeEach(async () => {
  clock = new ManualClock();
  world = await fixture(clock);
  data = join(world.folder, 'data');
  controller = startController();
  const origin = await world.bare('apps');
  await world.push(origin, {
    'one/Kptfile': KPTFILE,
    'one/a.yaml': 'a: 1\n',
    'two/Kptfile': KPTFILE,
    'two/b.yaml': 'b: 1\n',
  });
  server = await startGitServer({ root: dirname(origin) });
  await world.client.create(repositoryKind, {
    metadata: { name: 'apps' },
    spec: { git: { repo: `${server.url}/apps.git` } },
  });
  await reconcile();
  await repository().git.maintain();
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  await server.close();
});

const startController = () => repositoryControllerOf(world, { remoteInterval: 1000 });
const reconcile = () => controller.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
const repository = () => world.store.repository('apps');
const mirror = () => join(data, 'git', readdirSync(join(data, 'git'))[0] ?? '');
const packs = () => readdirSync(join(mirror(), 'objects/pack')).map((name) => join(mirror(), 'objects/pack', name));
const ready = async () => {
  const { status } = await world.client.get(repositoryKind, { name: 'apps' });
  const condition = findCondition(status?.conditions, 'Ready');
  return `${condition?.status} ${condition?.message}`;
};
const names = () => world.store.list().map(({ name }) => name);
function corruptPacks(): void {
  for (const file of packs()) if (file.endsWith('.pack')) corrupt(file);
}
function corrupt(file: string): void {
  chmodSync(file, 0o644);
  const bytes = readFileSync(file);
  bytes.fill(0x55, 12, bytes.length - 20);
  writeFileSync(file, bytes);
}

test('damage that a read detects is repaired by the next sync, with an event', async () => {
  corruptPacks();
  const reading = world.store.content('apps.one.main');
  await expect(reading).rejects.toMatchObject({ code: 'Corrupt' });
  await expect(reading).rejects.toThrow('apps.one.main');
  clock.advance(1000);
  await reconcile();
  expect((await world.store.content('apps.one.main')).files.has('a.yaml')).toBe(true);
  expect(await ready()).toBe('True ');
  expect((await world.events('apps')).join()).toMatch(/MirrorRepaired: the mirror was damaged.*pack/);
  fsck(mirror());
});

test('a repair that failed, since the host was unavailable, is tried again a minute later', async () => {
  corruptPacks();
  await expect(world.store.content('apps.one.main')).rejects.toMatchObject({ code: 'Corrupt' });
  server.behaviour.refuse = 503;
  clock.advance(1000);
  await expect(reconcile()).rejects.toMatchObject({ code: 'Unavailable' });
  server.behaviour.refuse = undefined;
  clock.advance(60_000);
  await reconcile();
  expect((await world.store.content('apps.one.main')).files.has('a.yaml')).toBe(true);
  expect((await world.events('apps')).join()).toContain('MirrorRepaired');
  fsck(mirror());
});

test('a mirror that cannot be repaired is tried again an hour later, or once it was removed', async () => {
  corruptPacks();
  await expect(world.store.content('apps.one.main')).rejects.toMatchObject({ code: 'Corrupt' });
  const repair = vi.spyOn(repository(), 'repair').mockRejectedValue(new SluiceError('Corrupt', 'beyond repair'));
  for (const [pause, times] of [
    [1000, 1],
    [60_000, 1],
    [3_600_000, 2],
  ] as const) {
    clock.advance(pause);
    await reconcile().catch(() => undefined);
    expect(repair).toHaveBeenCalledTimes(times);
  }
  repair.mockRestore();
  rmSync(mirror(), { recursive: true });
  clock.advance(60_000);
  await reconcile();
  expect((await world.store.content('apps.one.main')).files.has('a.yaml')).toBe(true);
  fsck(mirror());
});

test('a missing mirror is fetched again, and no revision vanishes meanwhile', async () => {
  const changes: unknown[] = [];
  const stop = world.store.subscribe((news) => changes.push(...news));
  rmSync(mirror(), { recursive: true });
  clock.advance(1000);
  await reconcile();
  stop();
  expect(changes).toEqual([]);
  expect((await world.store.content('apps.two.main')).files.has('b.yaml')).toBe(true);
  fsck(mirror());
});

test.each([
  [
    'corrupt packs',
    () =>
      packs()
        .filter((file) => file.endsWith('.pack'))
        .forEach(corrupt),
  ],
  ['no packs', () => rmSync(join(mirror(), 'objects/pack'), { recursive: true })],
  ['an empty configuration', () => truncateSync(join(mirror(), 'config'), 0)],
  ['no HEAD', () => rmSync(join(mirror(), 'HEAD'))],
])('a mirror with %s is repaired when it is opened', async (_what, damage) => {
  await world.store.remove('apps');
  rmSync(join(data, 'cache'), { recursive: true, force: true });
  damage();
  controller = startController();
  await reconcile();
  expect(names()).toEqual(['apps.one.main', 'apps.two.main']);
  expect((await world.store.content('apps.two.main')).files.has('b.yaml')).toBe(true);
  fsck(mirror());
});
