import { cp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { MemoryTrustLedger } from '../../src/package/trust/ledger/memory-trust-ledger.ts';
import type { ContainedStates, ShownStates } from '../../src/package/trust/ledger/shown-states.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../src/resource/kinds/porch/package-revision-resources.ts';
import { repositoryKind, TRUSTED_KEYS_ANNOTATION } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../test/support/git/git-server.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';
import { newServerTrust, serverTrust } from '../../test/support/trust.ts';

/** As in a cluster, where another process can take over. */
class ShownLedger extends MemoryTrustLedger {
  readonly shownBy = '1';
  #states: ShownStates = {};

  shownOf(): ShownStates {
    return this.#states;
  }

  advanceShown(_repository: string, refs: string): ContainedStates {
    const number = (this.#states[this.shownBy]?.number ?? 0) + 1;
    this.#states = { [this.shownBy]: { number, refs } };
    return { [this.shownBy]: number };
  }
}

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

let clock: ManualClock;
let world: Fixture;
let server: GitServer;
let origin: string;
beforeEach(async () => {
  clock = new ManualClock();
  world = await fixture(clock, newServerTrust(serverTrust.signer(), new ShownLedger()));
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
const patch = (change: Record<string, unknown>) => world.client.patch(repositoryKind, { name: 'apps' }, change);
const setSecret = (name: string) => patch({ spec: { git: { secretRef: { name } } } });
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

/** What a remote or a Secret can fail with; `refuse` is the status of the host. */
const FAILURES: readonly (readonly [
  string,
  { readonly refuse?: number; readonly secret?: string; readonly branch?: true },
])[] = [
  ['the host rejects the credentials', { refuse: 401 }],
  ['the host forbids it', { refuse: 403 }],
  ['the host does not know it', { refuse: 404 }],
  ['the host is overloaded', { refuse: 429 }],
  ['the Secret does not exist', { secret: 'typo' }],
];

test.each(FAILURES)('a repository that was read before is open after a start where %s', async (_what, failure) => {
  await reconcile();
  await world.store.remove('apps');
  server.behaviour.refuse = failure.refuse;
  if (failure.secret !== undefined) await setSecret(failure.secret);
  await expect(reconcile(repositoryControllerOf(world, { remoteInterval: 1000 }))).rejects.toThrow();
  expect(names()).toEqual(['apps.one.main']);
  expect(findCondition((await status())?.conditions, 'Ready')?.status).toBe('False');
});

test('a repository without its branch is open with its drafts and tags after a start', async () => {
  await world.push(origin, { 'web/Kptfile': KPTFILE }, 'drafts/web/v1', 'refs/heads/main');
  await reconcile();
  await world.store.remove('apps');
  git(origin, ['update-ref', '-d', 'refs/heads/main']);
  const controller = repositoryControllerOf(world, { remoteInterval: 1000 });
  await reconcile(controller).catch(() => undefined);
  expect(names()).toEqual(['apps.web.v1']);
});

test.each(['draft', 'publication'])(
  'a mirror that lacks a %s which another process has shown is not used',
  async (kind) => {
    await reconcile();
    const create = () =>
      world.store.create('apps', { package: 'two', workspace: 'v1', source: { type: 'init', files: new Map() } }, ANNA);
    const name = 'apps.two.v1';
    if (kind === 'publication') await create();
    const mirrors = join(world.folder, 'data', 'git');
    await cp(mirrors, `${mirrors}-standby`, { recursive: true });
    if (kind === 'draft') await create();
    else await world.publish(name);
    await world.store.remove('apps');
    await rm(mirrors, { recursive: true });
    await rename(`${mirrors}-standby`, mirrors);
    server.behaviour.refuse = 401;
    clock.advance(60_000);
    const controller = repositoryControllerOf(world, { remoteInterval: 1000 });
    await expect(reconcile(controller)).rejects.toThrow();
    expect(names()).toEqual([]);
    server.behaviour.refuse = undefined;
    clock.advance(600_000);
    await reconcile(controller);
    expect(world.store.get(name).lifecycle).toBe(kind === 'draft' ? 'Draft' : 'Published');
    // The same mirror, with everything.
    await world.store.remove('apps');
    server.behaviour.refuse = 401;
    clock.advance(60_000);
    await expect(reconcile(repositoryControllerOf(world, { remoteInterval: 1000 }))).rejects.toThrow();
    expect(names()).toContain(name);
  },
);

test('a Secret with a wrong name, or other trusted keys, change no package of an open repository', async () => {
  const controller = repositoryControllerOf(world, { remoteInterval: 1000 });
  await reconcile(controller);
  const before = await world.registry.storage(packageRevisionKind).list(ANNA, {});
  const changes: unknown[] = [];
  world.store.subscribe((some) => changes.push(...some));
  const old = world.store.findRepository('default/apps');
  await setSecret('typo');
  await expect(reconcile(controller)).rejects.toThrow('typo');
  expect(findCondition((await status())?.conditions, 'Ready')?.status).toBe('False');
  server.behaviour.refuse = 401;
  await patch({ metadata: { annotations: { [TRUSTED_KEYS_ANNOTATION]: serverTrust.signer().publicKey } } });
  clock.advance(600_000);
  await expect(reconcile(controller)).rejects.toThrow();
  server.behaviour.refuse = undefined;
  await patch({ spec: { git: { secretRef: null } } });
  clock.advance(600_000);
  await reconcile(controller);
  expect(findCondition((await status())?.conditions, 'Ready')?.status).toBe('True');
  expect(changes).toEqual([]);
  expect(world.store.findRepository('default/apps')).not.toBe(old);
  const after = await world.registry.storage(packageRevisionKind).list(ANNA, {});
  expect(after.items).toEqual(before.items);
  // Its files are read from the new one.
  const files = await world.registry.storage(packageRevisionResourcesKind).list(ANNA, {});
  expect(JSON.stringify(files.items)).toContain('Kptfile');
});

test('a draft that is written while a repository is opened again is never absent', async () => {
  const controller = repositoryControllerOf(world, { remoteInterval: 1000 });
  await reconcile(controller);
  const seen: string[] = [];
  world.store.subscribe((some) => {
    for (const { before, after } of some)
      seen.push(
        `${before === undefined ? 'added' : after === undefined ? 'deleted' : 'modified'} ${(after ?? before)?.name}`,
      );
  });
  await patch({ spec: { deployment: true } });
  const reopening = reconcile(controller);
  const made: string[] = [];
  for (let count = 1; count <= 3; count += 1) {
    // A write that comes while the repositories change places is refused, and the client repeats it.
    await expect
      .poll(async () => (await world.draft(`apps/shop${count}/v1`).catch(() => undefined))?.name)
      .toBe(`apps.shop${count}.v1`);
    made.push(`apps.shop${count}.v1`);
  }
  await reopening;
  expect(names()).toEqual(['apps.one.main', ...made]);
  expect(seen.filter((change) => change.startsWith('deleted'))).toEqual([]);
  expect(seen.filter((change) => change.startsWith('added'))).toEqual(made.map((name) => `added ${name}`));
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
