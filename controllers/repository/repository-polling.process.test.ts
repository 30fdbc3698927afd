import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind, TRANSPORT_CONDITION } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../test/support/git/git-server.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';
import { SyncRequests } from './sync-requests.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const KEY = { namespace: 'default', name: 'apps' };
const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const DAY = 86_400_000;

/** Setting this clock does not affect timers. */
class SettableClock implements Clock {
  readonly timers = new ManualClock();
  offset = 0;
  readonly now = () => this.timers.now() + this.offset;
  readonly monotonic = () => this.timers.monotonic();
  readonly schedule = (delay: number, action: () => void) => this.timers.schedule(delay, action);
}

describe('a remote repository', () => {
  let clock: SettableClock;
  let world: Fixture;
  let server: GitServer;
  let repo: string;
  let requests: SyncRequests;
  let controller: ControllerOptions;
  beforeEach(async () => {
    clock = new SettableClock();
    world = await fixture(clock);
    repo = await world.bare('apps');
    server = await startGitServer({ root: dirname(repo) });
    requests = new SyncRequests(clock);
    controller = repositoryControllerOf(world, { requests });
    const spec = { git: { repo: `${server.url}/apps.git` } };
    await world.client.create(repositoryKind, { metadata: { name: 'apps' }, spec });
  });
  afterEach(async () => {
    await world[Symbol.asyncDispose]();
    await server.close();
  });

  /** Milliseconds until the next sync, for which the queue sets a timer. */
  const reconcile = async () => (await controller.reconcile(KEY, CONTEXT))?.requeueAfter;
  const status = async () => (await world.client.get(repositoryKind, KEY)).status;
  const asked = async (work: () => Promise<unknown>) => {
    const before = server.requests.length;
    await work();
    return server.requests.length - before;
  };
  const pushed = (name: string) =>
    world.push(repo, { [`${name}/Kptfile`]: KPTFILE }, `drafts/${name}/w1`, 'refs/heads/main');

  test('is polled at an adaptive interval, and at once after a webhook', async () => {
    expect(await reconcile()).toBe(30_000);
    clock.timers.advance(30_000);
    expect(await reconcile()).toBe(45_000);
    await pushed('one');
    clock.timers.advance(45_000);
    expect(await reconcile()).toBe(5000);
    expect(world.store.find('apps.one.w1')).toBeDefined();

    await pushed('two');
    expect(await asked(reconcile)).toBe(0);
    requests.add(KEY, 'branches');
    expect(await reconcile()).toBe(7500);
    expect(world.store.find('apps.two.w1')).toBeDefined();
    const { lastWebhookTime, conditions } = (await status()) ?? {};
    expect(lastWebhookTime).toBe('2026-01-01T00:01:15Z');
    expect(findCondition(conditions, TRANSPORT_CONDITION)).toMatchObject({
      reason: 'OwnClient',
      message: expect.stringContaining('fetch by own client'),
    });
  });

  test('a sync that Sluice requests itself is none of a webhook, so that polls stay frequent', async () => {
    await reconcile();
    const pauses: (number | undefined)[] = [];
    for (let sync = 0; sync < 5; sync += 1) {
      requests.addOwn(KEY, 'branches');
      pauses.push(await reconcile());
    }
    expect(pauses).toEqual([45_000, 60_000, 60_000, 60_000, 60_000]);
    await pushed('one');
    requests.addOwn(KEY, 'branches');
    expect(await reconcile()).toBe(5000);
    const { lastWebhookTime, packageCount, nextFullSyncTime } = (await status()) ?? {};
    expect(packageCount).toBe(1);
    expect(nextFullSyncTime).toBe('2026-01-01T00:00:05Z');
    expect(lastWebhookTime).toBeUndefined();
  });

  test('a tag alone is found when a webhook reports it, and after five minutes', async () => {
    await world.push(repo, { 'one/Kptfile': KPTFILE });
    await reconcile();
    git(repo, ['tag', 'one/v1', 'main']);
    requests.add(KEY, 'branches');
    await reconcile();
    expect(world.store.find('apps.one.v1')).toBeUndefined();
    requests.add(KEY, 'everything');
    await reconcile();
    expect(world.store.find('apps.one.v1')).toBeDefined();
    git(repo, ['tag', 'one/v2', 'main']);
    clock.timers.advance(299_000);
    await reconcile();
    expect(world.store.find('apps.one.v2')).toBeUndefined();
    clock.timers.advance(300_000);
    await reconcile();
    expect(world.store.find('apps.one.v2')).toBeDefined();
  });

  test('a message that requests no sync is recorded, without a request to the host', async () => {
    await reconcile();
    requests.add(KEY, undefined);
    expect(await asked(reconcile)).toBe(0);
    expect((await status())?.lastWebhookTime).toBe('2026-01-01T00:00:00Z');
    const versions = new Set<string | undefined>();
    for (let second = 1; second <= 20; second += 1) {
      clock.timers.advance(1000);
      requests.add(KEY, undefined);
      await reconcile();
      versions.add((await world.client.get(repositoryKind, KEY)).metadata.resourceVersion);
    }
    expect(versions.size).toBe(1);
  });

  test.each([DAY, -DAY])(
    'a clock that jumps by %d ms neither ends the polls nor floods the host with them',
    async (jump) => {
      await reconcile();
      clock.timers.advance(10_000);
      clock.offset += jump;
      const looks: number[] = [];
      let next = 20_000;
      for (let look = 0; look < 5; look += 1) {
        clock.timers.advance(next);
        await pushed(`p${look}`);
        const before = server.requests.length;
        next = (await reconcile()) ?? 0;
        looks.push(server.requests.length - before);
        expect(world.store.find(`apps.p${look}.w1`)).toBeDefined();
        expect(next).toBe(5000);
        // Reconciled in between for another reason.
        expect(await asked(reconcile)).toBe(0);
      }
      expect(Math.min(...looks)).toBeGreaterThan(0);
      expect((await status())?.lastFullSyncTime).toMatch(jump > 0 ? /^2026-01-02T00:00/ : /^2025-12-31T00:00/);
    },
  );

  test('a pause that the host requested applies to every requested sync', async () => {
    await reconcile();
    Object.assign(server.behaviour, { refuse: 429, retryAfter: 120 });
    requests.add(KEY, 'branches');
    await expect(reconcile()).rejects.toMatchObject({ details: { retryAfter: 120 } });
    Object.assign(server.behaviour, { refuse: undefined, retryAfter: undefined });
    await pushed('one');
    clock.timers.advance(119_000);
    requests.add(KEY, 'branches');
    expect(await asked(() => expect(reconcile()).rejects.toMatchObject({ details: { retryAfter: 120 } }))).toBe(0);
    clock.timers.advance(1000);
    await reconcile();
    expect(world.store.find('apps.one.w1')).toBeDefined();
    expect(findCondition((await status())?.conditions, 'Ready')?.status).toBe('True');
  });

  test.each([-DAY, DAY])('a pause lasts as long wherever the clock is set to: %d', async (jump) => {
    await reconcile();
    Object.assign(server.behaviour, { refuse: 503, retryAfter: 120 });
    requests.add(KEY, 'branches');
    await expect(reconcile()).rejects.toMatchObject({ code: 'Unavailable' });
    server.behaviour.refuse = undefined;
    clock.offset += jump;
    clock.timers.advance(119_000);
    await expect(reconcile()).rejects.toMatchObject({ code: 'Unavailable' });
    clock.timers.advance(1000);
    await reconcile();
    expect(findCondition((await status())?.conditions, 'Ready')?.status).toBe('True');
  });
});

test('requests during a sync lead to one more sync', async () => {
  await using world = await fixture();
  const repo = await world.bare('apps');
  const server = await startGitServer({ root: dirname(repo) });
  try {
    // A manual clock, so that the test ends the pause between two wake-ups.
    const pause = new ManualClock();
    const requests = new SyncRequests(pause);
    const { client, manager } = world;
    manager.addController(repositoryControllerOf(world, { requests }));
    const spec = { git: { repo: `${server.url}/apps.git` } };
    await client.create(repositoryKind, { metadata: { name: 'apps' }, spec });
    await manager.start();
    const settled = async () => {
      do {
        await manager.idle();
        pause.advance(pause.nextDelay ?? 0);
      } while (pause.pending > 0);
      await manager.idle();
      return server.requests.length;
    };
    const before = await settled();
    expect(findCondition((await client.get(repositoryKind, KEY)).status?.conditions, 'Ready')?.status).toBe('True');
    requests.add(KEY, 'branches');
    const one = (await settled()) - before;
    expect(one).toBeGreaterThan(0);
    const hold = Promise.withResolvers<void>();
    server.behaviour.holdFetch = hold.promise;
    requests.add(KEY, 'branches');
    await expect.poll(() => server.requests.length - before).toBeGreaterThan(one);
    for (let count = 0; count < 100; count += 1) requests.add(KEY, 'branches');
    hold.resolve();
    expect((await settled()) - before - one).toBe(2 * one);
  } finally {
    await server.close();
  }
});
