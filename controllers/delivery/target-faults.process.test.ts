import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import {
  CONTEXT,
  controllerOn,
  filesOf,
  publish,
  publishNext,
  statusOf,
  type TargetSpec,
} from '../../test/support/delivery.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { fsck, git as gitCli } from '../../test/support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../test/support/git/git-server.ts';
import { skipFor } from '../../test/support/skip.ts';
import { newServerTrust } from '../../test/support/trust.ts';

const KEY = { namespace: 'default', name: 'edge' };
const DAY_MS = 86_400_000;
/** Refuses pushes while the file `closed` is there. */
const HOOKS = {
  'pre-receive': '#!/bin/sh\ntest ! -e "$GIT_PROJECT_ROOT/closed" || { echo "branch is frozen"; exit 1; }\n',
};

describe('faults of the repository of a target', () => {
  let clock: ManualClock;
  let world: Fixture;
  let site: string;
  let server: GitServer;
  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    await world.register('apps');
    site = await world.bare('site');
    server = await startGitServer({ root: dirname(site), hooks: HOOKS });
  });
  afterEach(async () => {
    await world[Symbol.asyncDispose]();
    await server.close();
  });

  const create = (spec: Partial<TargetSpec> = {}) =>
    world.client.create(deliveryTargetKind, {
      metadata: { name: 'edge' },
      spec: { selector: {}, git: { repo: `${server.url}/site.git` }, ...spec },
    });
  const head = () => gitCli(site, ['rev-parse', 'main']);
  const tree = () => gitCli(site, ['rev-parse', 'main^{tree}']);
  const value = (name: string) => /value: "(.*)"/.exec(gitCli(site, ['show', `main:${name}/cm.yaml`]))?.[1];
  const setHead = (oid: string) => gitCli(site, ['update-ref', 'refs/heads/main', oid]);
  const emptied = () => gitCli(site, ['commit-tree', '-p', 'main', '-m', 'empty', gitCli(site, ['mktree'], '')]);
  const pushes = () =>
    server.requests.filter(({ method, url }) => method === 'POST' && url.endsWith('/git-receive-pack')).length;

  test('a force-push to another history is not undone; the packages are delivered on top of it', async () => {
    let afterReading: (() => void) | undefined;
    const { store } = world;
    const controller = controllerOn(world, {
      store: {
        repositories: () => {
          afterReading?.();
          afterReading = undefined;
          return store.repositories();
        },
      },
    });
    await publish(world, 'web');
    await create();
    await controller.reconcile(KEY, CONTEXT);
    // Before the branch is read, and between reading it and the push.
    for (const moment of ['before', 'between']) {
      const other = gitCli(site, ['commit-tree', '-m', `other history ${moment}`, gitCli(site, ['mktree'], '')]);
      if (moment === 'before') setHead(other);
      else {
        setHead(gitCli(site, ['commit-tree', '-m', 'replaced soon', gitCli(site, ['mktree'], '')]));
        afterReading = () => setHead(other);
      }
      await controller.reconcile(KEY, CONTEXT);
      expect(gitCli(site, ['rev-parse', 'main^'])).toBe(other);
      expect(value('web')).toBe('1');
    }
    expect(await statusOf(world)).toMatchObject({ reason: 'Delivered', status: { lastCommit: head() } });

    // The same content under other commits needs no delivery.
    const rewritten = gitCli(site, ['commit-tree', '-m', 'squashed', tree()]);
    setHead(rewritten);
    const before = pushes();
    await controller.reconcile(KEY, CONTEXT);
    expect([head(), pushes()]).toEqual([rewritten, before]);
    expect((await statusOf(world)).reason).toBe('Delivered');
  });

  test.each([
    ['emptied by a commit', 'Repair', () => setHead(emptied())],
    ['replaced by an empty repository', 'Repair', () => gitCli(site, ['update-ref', '-d', 'refs/heads/main'])],
    ['replaced by an empty repository', 'Report', () => gitCli(site, ['update-ref', '-d', 'refs/heads/main'])],
  ] as const)('a target that is %s gets all packages again, once (drift: %s)', async (_what, drift, fault) => {
    const controller = controllerOn(world);
    for (const name of ['web', 'db']) await publish(world, name);
    await create({ drift });
    await controller.reconcile(KEY, CONTEXT);
    const files = filesOf(site);
    fault();
    await controller.reconcile(KEY, CONTEXT);
    expect(filesOf(site)).toEqual(files);
    expect((await statusOf(world)).reason).toBe('Delivered');
    const after = [head(), pushes()];
    await controller.reconcile(KEY, CONTEXT);
    expect([head(), pushes()]).toEqual(after);
  });

  test('a branch that was deleted is reported with the next step, and delivered to when it is back', async () => {
    const controller = controllerOn(world);
    await publish(world, 'web');
    await create();
    await controller.reconcile(KEY, CONTEXT);
    const last = head();
    gitCli(site, ['branch', 'other', 'main']);
    gitCli(site, ['update-ref', '-d', 'refs/heads/main']);
    await controller.reconcile(KEY, CONTEXT);
    expect(await statusOf(world)).toMatchObject({
      reason: 'BranchMissing',
      message: expect.stringContaining('create it, or set spec.git.createBranch: true'),
    });
    expect(pushes()).toBe(1);
    setHead(last);
    await controller.reconcile(KEY, CONTEXT);
    expect([head(), (await statusOf(world)).reason]).toEqual([last, 'Delivered']);
  });

  test('a repository that is away is an error, and nothing has to be done when it is back', async () => {
    const controller = controllerOn(world);
    const web = await publish(world, 'web');
    await create();
    await controller.reconcile(KEY, CONTEXT);
    const [away] = [`${site}.away`];
    renameSync(site, away);
    await publishNext(world, web, 'w2', '2');
    await expect(controller.reconcile(KEY, CONTEXT)).rejects.toMatchObject({ name: 'SluiceError' });
    const { reason, message, packages } = await statusOf(world);
    expect(reason).toBe('Error');
    expect(message).toContain('site.git');
    // What was delivered stays known.
    expect(packages).toMatchObject([{ package: 'web', revision: 1 }]);
    renameSync(away, site);
    await controller.reconcile(KEY, CONTEXT);
    expect([value('web'), (await statusOf(world)).reason]).toEqual(['2', 'Delivered']);
  });

  test('a protected branch is tried at growing intervals, and delivered to when the protection ends', async () => {
    const { manager } = world;
    manager.addController(controllerOn(world));
    const web = await publish(world, 'web');
    await create();
    await manager.start();
    await manager.idle();
    const closed = join(dirname(site), 'closed');
    writeFileSync(closed, '');
    const before = pushes();
    await publishNext(world, web, 'w2', '2');
    await expect.poll(async () => (await statusOf(world)).reason).toBe('Error');
    expect((await statusOf(world)).message).toContain('branch is frozen');
    for (let minute = 0; minute < 60; minute += 1) {
      clock.advance(60_000);
      await manager.idle({ failureLimit: 1 });
    }
    // Doubling from half a second to five minutes.
    expect(pushes() - before).toBeGreaterThan(8);
    expect(pushes() - before).toBeLessThan(30);
    expect(value('web')).toBe('1');
    rmSync(closed);
    clock.advance(600_000);
    await expect.poll(async () => (await statusOf(world)).reason).toBe('Delivered');
    expect(value('web')).toBe('2');
  });

  test('an older backup is delivered to again, up to the newest revision', async () => {
    const controller = controllerOn(world);
    const web = await publish(world, 'web');
    await create();
    await controller.reconcile(KEY, CONTEXT);
    const backup = head();
    await publishNext(world, web, 'w2', '2');
    await controller.reconcile(KEY, CONTEXT);
    const delivered = tree();
    setHead(backup);
    await controller.reconcile(KEY, CONTEXT);
    expect([tree(), gitCli(site, ['rev-parse', 'main^'])]).toEqual([delivered, backup]);
    expect((await statusOf(world)).packages).toMatchObject([{ package: 'web', revision: 2 }]);
  });

  test('an older backup does not make a lost revision forgotten: a lower one is not taken for the newest', async () => {
    const controller = controllerOn(world);
    const web = await publish(world, 'web');
    await create();
    await controller.reconcile(KEY, CONTEXT);
    const backup = head();
    const second = await publishNext(world, web, 'w2', '2');
    await controller.reconcile(KEY, CONTEXT);
    const { packages } = await statusOf(world);
    // The host was restored as a whole: the tag of the second revision is lost too.
    setHead(backup);
    const repository = world.store.repository('apps');
    gitCli(join(dirname(site), 'apps.git'), ['update-ref', '-d', 'refs/tags/web/v2']);
    await repository.refresh();
    expect(world.store.find(second)).toBeUndefined();
    for (let again = 0; again < 2; again += 1) {
      await controller.reconcile(KEY, CONTEXT);
      expect(head()).toBe(backup);
      const after = await statusOf(world);
      expect(after).toMatchObject({ reason: 'Partial', message: expect.stringContaining('OutOfBandRemoval') });
      expect(after.message).toContain('v2 is missing in repository apps');
      // The folder has the content of another revision.
      expect(after.packages).toEqual(packages.map((one) => ({ ...one, drifted: true })));
    }
    gitCli(join(dirname(site), 'apps.git'), ['update-ref', 'refs/tags/web/v2', packages[0]?.commit ?? '']);
    await repository.refresh();
    await controller.reconcile(KEY, CONTEXT);
    expect([value('web'), (await statusOf(world)).reason]).toEqual(['2', 'Delivered']);
  });

  test('a target with 50,000 files of other tools is delivered to, and these files stay', async () => {
    const count = 50_000;
    let stream =
      'commit refs/heads/main\ncommitter x <x@example.com> 1767225600 +0000\ndata 4\nmany\nfrom refs/heads/main^0\n';
    for (let index = 0; index < count; index += 1) {
      const text = `value: ${index}\n`;
      stream += `M 100644 inline legacy/${index % 100}/${index}.yaml\ndata ${text.length}\n${text}\n`;
    }
    gitCli(site, ['fast-import', '--quiet'], stream);
    const legacy = gitCli(site, ['rev-parse', 'main:legacy']);
    const controller = controllerOn(world);
    const web = await publish(world, 'web');
    await create();
    await controller.reconcile(KEY, CONTEXT);
    await publishNext(world, web, 'w2', '2');
    await controller.reconcile(KEY, CONTEXT);
    expect(value('web')).toBe('2');
    expect(gitCli(site, ['rev-parse', 'main:legacy'])).toBe(legacy);
    const before = [head(), pushes()];
    await controller.reconcile(KEY, CONTEXT);
    expect([head(), pushes()]).toEqual(before);
    expect((await statusOf(world)).reason).toBe('Delivered');
  });

  test('two processes on one target lose nothing, and each revision is delivered by one commit', async () => {
    // Each has mirrors of its own.
    const controllers = ['one', 'two'].map((name) => controllerOn(world, { dataFolder: join(world.folder, name) }));
    const both = async () => {
      // A lost race can exhaust the attempts of one of them, which is retried.
      const results = await Promise.allSettled(controllers.map((one) => one.reconcile(KEY, CONTEXT)));
      expect(results.some(({ status }) => status === 'fulfilled')).toBe(true);
    };
    let last = await publish(world, 'web');
    await publish(world, 'db');
    await create();
    await both();
    for (let revision = 2; revision <= 5; revision += 1) {
      last = await publishNext(world, last, `w${revision}`, `${revision}`);
      await both();
      expect(value('web')).toBe(`${revision}`);
    }
    for (const one of controllers) await one.reconcile(KEY, CONTEXT);
    const subjects = gitCli(site, ['log', '--format=%s', 'main']).split('\n');
    expect(subjects.filter((subject) => subject.includes('web'))).toHaveLength(5);
    expect(gitCli(site, ['rev-list', '--min-parents=2', '--count', 'main'])).toBe('0');
    expect(filesOf(site)).toHaveLength(4);
    const { packages, reason } = await statusOf(world);
    expect(reason).toBe('Delivered');
    expect(packages).toMatchObject([{ package: 'db' }, { package: 'web', revision: 5 }]);
  });

  test('a second server with another key neither repeats nor reverts what the first one delivers', async () => {
    await using other = await fixture(clock, newServerTrust());
    const web = await publish(world, 'web');
    await other.register('apps', { repo: join(world.folder, 'apps.git') });
    const spec = { selector: {}, git: { repo: `${server.url}/site.git` } };
    for (const one of [world, other]) await one.client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec });
    const [first, second] = [controllerOn(world), controllerOn(other)];
    const turns = async () => {
      for (let turn = 0; turn < 2; turn += 1) {
        await first.reconcile(KEY, CONTEXT);
        await second.reconcile(KEY, CONTEXT);
      }
    };
    await turns();
    await publishNext(world, web, 'w2', '2');
    await other.store.repository('apps').refresh();
    await turns();
    expect(value('web')).toBe('2');
    expect(gitCli(site, ['log', '--format=%s', 'main']).split('\n')).toEqual([
      'Deliver web v2',
      'Deliver web v1',
      'begin',
    ]);
    expect((await statusOf(world)).reason).toBe('Delivered');
    // It does not trust the key of the first one.
    const held = await statusOf(other);
    expect(held).toMatchObject({ reason: 'Partial', message: expect.stringContaining('v2') });
  });

  test('a clock that jumps back and forth neither stops deliveries nor repeats them', async () => {
    let offset = 0;
    const jumping = {
      now: () => clock.now() + offset,
      monotonic: () => clock.monotonic(),
      schedule: clock.schedule.bind(clock),
    };
    const controller = controllerOn(world, { clock: jumping });
    let last = await publish(world, 'web');
    await create();
    await controller.reconcile(KEY, CONTEXT);
    const year = 365 * DAY_MS;
    for (const [index, jump] of [-2 * year, 10 * year, -3 * year, 0].entries()) {
      offset = jump;
      last = await publishNext(world, last, `jump${index}`, `${index + 2}`);
      await controller.reconcile(KEY, CONTEXT);
      expect(value('web')).toBe(`${index + 2}`);
      const before = [head(), pushes()];
      // The next check of the branch is due after a time, whatever the date.
      expect(await controller.reconcile(KEY, CONTEXT)).toMatchObject({ requeueAfter: 300_000 });
      expect([head(), pushes()]).toEqual(before);
      expect(await statusOf(world)).toMatchObject({ reason: 'Delivered', status: { lastCommit: head() } });
    }
  });
});

/** A file system of 8 MiB; undefined where this user may not mount one. */
function mountSmallDisk(): string | undefined {
  const path = mkdtempSync(join(tmpdir(), 'sluice-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', path], { stdio: 'ignore' });
    return path;
  } catch {
    rmSync(path, { recursive: true });
    return undefined;
  }
}

const probe = mountSmallDisk();
if (probe !== undefined) unmount(probe);

function unmount(path: string): void {
  execFileSync('umount', [path]);
  rmSync(path, { recursive: true });
}

test(
  'a target on a full disk is reported, keeps its content, and is delivered to when there is space',
  skipFor(probe === undefined && 'only root may mount a tmpfs'),
  async () => {
    const disk = mountSmallDisk() ?? '';
    try {
      await using world = await fixture();
      await world.register('apps');
      const site = join(disk, 'site.git');
      cpSync(await world.bare('site'), site, { recursive: true });
      const server = await startGitServer({ root: disk });
      try {
        const controller = controllerOn(world);
        const web = await publish(world, 'web');
        const git = { repo: `${server.url}/site.git` };
        await world.client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec: { selector: {}, git } });
        await controller.reconcile(KEY, CONTEXT);
        const before = gitCli(site, ['rev-parse', 'main']);
        const filler = join(disk, 'filler');
        const { bavail, bsize } = statfsSync(disk);
        writeFileSync(filler, Buffer.alloc(bavail * bsize));
        await publishNext(world, web, 'w2', '2');
        for (let attempt = 0; attempt < 3; attempt += 1) {
          await expect(controller.reconcile(KEY, CONTEXT)).rejects.toMatchObject({ code: 'Unavailable' });
          const { reason, message, packages } = await statusOf(world);
          expect(reason).toBe('Error');
          expect(message).toContain('The disk of the Git host is full: free space there');
          expect(packages).toMatchObject([{ package: 'web', revision: 1 }]);
          expect(gitCli(site, ['rev-parse', 'main'])).toBe(before);
        }
        rmSync(filler);
        await controller.reconcile(KEY, CONTEXT);
        expect(gitCli(site, ['show', 'main:web/cm.yaml'])).toContain('value: "2"');
        expect((await statusOf(world)).reason).toBe('Delivered');
        fsck(site);
      } finally {
        await server.close();
      }
    } finally {
      unmount(disk);
    }
  },
);
