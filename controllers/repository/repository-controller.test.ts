import { readdir, rename, symlink } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { startGitServer } from '../../test/support/git/git-server.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';
import { newServerTrust } from '../../test/support/trust.ts';
import { SYNC_ANNOTATION } from './open-repository.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

async function statusOf(world: Fixture, name: string) {
  const { status } = await world.client.get(repositoryKind, { name });
  const ready = findCondition(status?.conditions, 'Ready');
  return { status, ready: `${ready?.status} ${ready?.reason} ${ready?.message}`.trim() };
}

describe('repository controller', () => {
  let clock: ManualClock;
  let world: Fixture;
  let controller: ControllerOptions;
  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    controller = repositoryControllerOf(world);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const reconcile = (name: string) => controller.reconcile({ namespace: 'default', name }, CONTEXT);
  const ready = async (name: string) => (await statusOf(world, name)).ready;
  const create = (name: string, git: { repo: string; branch?: string; directory?: string; createBranch?: boolean }) =>
    world.client.create(repositoryKind, { metadata: { name }, spec: { git } });

  test('problems in lists of people are reported by events', async () => {
    const repo = await world.bare('apps');
    const annotations = { 'sluice.dev/allowed-signers': 'missing', 'sluice.dev/host-users': 'people' };
    await world.client.create(configMapKind, {
      metadata: { name: 'people' },
      data: { host_users: 'octo=anna\nmona=push\n' },
    });
    await world.client.create(repositoryKind, { metadata: { name: 'apps', annotations }, spec: { git: { repo } } });
    await reconcile('apps');
    expect(await world.events('apps')).toEqual([
      'AllowedSigners: cannot attribute all pushes by ConfigMap missing: it does not exist',
      'HostUsers: cannot attribute all pushes by ConfigMap people: line 2: push cannot be the name of a user',
    ]);
  });

  test('a clock that is set back or ahead does not change when the next sync is', async () => {
    const repo = await world.bare('apps');
    await world.push(repo, { 'one/Kptfile': KPTFILE });
    await create('apps', { repo });
    await reconcile('apps');
    clock.setBy(-3_600_000);
    expect(await reconcile('apps')).toMatchObject({ requeueAfter: 1000 });
    clock.setBy(7_200_000);
    expect(await reconcile('apps')).toMatchObject({ requeueAfter: 1000 });
  });

  test('opens a repository, reports it, and syncs it every second', async () => {
    const repo = await world.bare('apps');
    const head = await world.push(repo, { 'one/Kptfile': KPTFILE, 'two/Kptfile': KPTFILE });
    await create('apps', { repo });
    expect(await reconcile('apps')).toEqual({ requeueAfter: 1000, reason: 'the next sync of the repository' });
    const { status, ready } = await statusOf(world, 'apps');
    expect(ready).toBe('True Ready');
    expect(status).toMatchObject({
      observedGeneration: 1,
      packageCount: 2,
      gitCommitHash: head,
      lastFullSyncTime: '2026-01-01T00:00:00Z',
      nextFullSyncTime: '2026-01-01T00:00:01Z',
    });
    const { items } = await world.client.list(packageRevisionKind);
    expect(items.map((object) => object.metadata.name)).toEqual(['apps.one.main', 'apps.two.main']);
    await world.push(repo, { 'three/Kptfile': KPTFILE }, 'drafts/three/w1', 'refs/heads/main');
    await reconcile('apps');
    expect(world.store.find('apps.three.w1')).toBeUndefined();
    clock.advance(1000);
    await reconcile('apps');
    expect(world.store.get('apps.three.w1').lifecycle).toBe('Draft');
    expect((await statusOf(world, 'apps')).status?.packageCount).toBe(3);
  });

  test('a sync can be requested by annotation and by runOnceAt', async () => {
    controller = repositoryControllerOf(world, { localInterval: 3_600_000 });
    const repo = await world.bare('apps');
    await create('apps', { repo });
    await reconcile('apps');
    await world.push(repo, { 'one/Kptfile': KPTFILE });
    await reconcile('apps');
    expect(world.store.list()).toHaveLength(0);
    await world.client.patch(
      repositoryKind,
      { name: 'apps' },
      { metadata: { annotations: { [SYNC_ANNOTATION]: '1' } } },
    );
    await reconcile('apps');
    expect(world.store.list()).toHaveLength(1);
    await world.push(repo, { 'two/Kptfile': KPTFILE });
    const runOnceAt = '2026-01-01T00:10:00Z';
    await world.client.patch(repositoryKind, { name: 'apps' }, { spec: { sync: { runOnceAt } } });
    expect(await reconcile('apps')).toMatchObject({ requeueAfter: 600_000 });
    expect((await statusOf(world, 'apps')).status?.observedRunOnceAt).toBeUndefined();
    clock.advance(600_000);
    expect(await reconcile('apps')).toMatchObject({ requeueAfter: 3_600_000 });
    expect(world.store.list()).toHaveLength(2);
    expect((await statusOf(world, 'apps')).status?.observedRunOnceAt).toBe(runOnceAt);
  });

  test('errors name the next step, and the next attempt corrects the status', async () => {
    const repo = join(world.folder, 'later.git');
    await create('apps', { repo });
    await expect(reconcile('apps')).rejects.toMatchObject({ code: 'NotFound' });
    const missing = `there is no Git repository at ${repo}; create one with: git init --bare ${repo}`;
    expect(await ready('apps')).toBe(`False Error ${missing}`);
    await world.bare('later', { empty: true });
    await expect(reconcile('apps')).rejects.toMatchObject({ code: 'InvalidInput' });
    expect(await ready('apps')).toContain('push a first commit, or set spec.git.createBranch: true');
    await world.push(repo, { 'one/Kptfile': KPTFILE });
    await reconcile('apps');
    expect(await ready('apps')).toBe('True Ready');
    expect((await world.events('apps')).map((text) => text.split(':')[0])).toEqual(['Error', 'Error']);
  });

  test('packages stay as they were when the folder disappears', async () => {
    const repo = await world.bare('apps');
    await world.push(repo, { 'one/Kptfile': KPTFILE });
    await create('apps', { repo });
    await reconcile('apps');
    await rename(repo, `${repo}.away`);
    clock.advance(1000);
    await expect(reconcile('apps')).rejects.toMatchObject({ code: 'NotFound' });
    expect(await ready('apps')).toBe(
      `False Error there is no Git repository at ${repo} any more; put it back, or unregister it`,
    );
    expect(world.store.list()).toHaveLength(1);
    await rename(`${repo}.away`, repo);
    await reconcile('apps');
    expect(await ready('apps')).toBe('True Ready');
  });

  test('an object that was recreated with another spec reopens the repository, and its deletion closes it', async () => {
    const repo = await world.bare('apps');
    await world.push(repo, { 'a/one/Kptfile': KPTFILE, 'b/two/Kptfile': KPTFILE });
    await create('apps', { repo, directory: 'a' });
    await reconcile('apps');
    // The folder of an object cannot change.
    await world.client.delete(repositoryKind, { name: 'apps' });
    await create('apps', { repo, directory: 'b' });
    await reconcile('apps');
    const names = async () => (await world.client.list(packageRevisionKind)).items.map(({ metadata }) => metadata.name);
    expect(await names()).toEqual(['apps.two.main']);
    expect((await statusOf(world, 'apps')).status?.observedGeneration).toBe(1);
    await world.client.delete(repositoryKind, { name: 'apps' });
    await reconcile('apps');
    expect(await names()).toEqual([]);
    expect(world.store.repositories()).toEqual([]);
  });

  test.each([
    ['the same place', {}, {}],
    ['a folder inside', {}, { directory: 'teams/a' }],
    ['a folder around', { directory: 'teams/a' }, { directory: 'teams' }],
  ])('two objects for %s: the first one stays', async (_, first, second) => {
    const repo = await world.bare('apps');
    await create('first', { repo, ...first });
    clock.advance(5000);
    await create('second', { repo: `file://${repo}`, ...second });
    await expect(reconcile('second')).rejects.toThrow('Repository conflict with existing repository: default/first');
    await reconcile('first');
    await expect(reconcile('second')).rejects.toThrow('Repository conflict with existing repository: default/first');
    expect(await ready('second')).toBe('False Error Repository conflict with existing repository: default/first');
    await world.client.delete(repositoryKind, { name: 'first' });
    await reconcile('first');
    await reconcile('second');
    expect(await ready('second')).toBe('True Ready');
  });

  test('an address is resolved again at each opening, since its target may have changed', async () => {
    const [repo, link] = [await world.bare('apps'), join(world.folder, 'link.git')];
    await create('first', { repo: link });
    await expect(reconcile('first')).rejects.toMatchObject({ code: 'NotFound' });
    clock.advance(5000);
    await create('second', { repo });
    await reconcile('second');
    await symlink(repo, link);
    await expect(reconcile('first')).rejects.toThrow('Repository conflict with existing repository: default/second');
  });

  test('neighbouring folders, other branches and other repositories are no conflict', async () => {
    const repo = await world.bare('apps');
    await world.push(repo, { x: 'x' }, 'next');
    await create('a', { repo, directory: 'teams/a' });
    await create('ab', { repo, directory: 'teams/ab' });
    await create('next', { repo, branch: 'next' });
    await create('other', { repo: await world.bare('other') });
    for (const name of ['a', 'ab', 'next', 'other']) {
      await reconcile(name);
      expect(await ready(name)).toBe('True Ready');
    }
  });

  test('reports pushes of others', async () => {
    const repo = await world.bare('apps');
    await create('apps', { repo });
    await reconcile('apps');
    const { name } = await world.draft('apps/app/w1');
    const { name: other } = await world.draft('apps/other/w1');
    const { name: third } = await world.draft('apps/third/w1');
    await world.store.update(third, { action: 'propose' }, ANNA);
    clock.advance(1000);
    await reconcile('apps');
    expect(await world.events('apps')).toEqual([]);

    const { git } = world.store.repository('apps');
    const draft = await git.resolveRef('refs/heads/drafts/app/w1');
    const main = await git.resolveRef('refs/heads/main');
    if (draft === undefined || main === undefined) throw new Error('no draft');
    const removed = await git.resolveRef('refs/heads/drafts/other/w1');
    const { path } = world.store.repository('apps').git;
    const rewritten = await world.push(path, { 'app/Kptfile': KPTFILE }, 'elsewhere', 'refs/heads/main');
    await git.transaction([
      { type: 'update', ref: 'refs/heads/drafts/app/w1', old: draft, new: rewritten },
      { type: 'delete', ref: 'refs/heads/drafts/other/w1', old: removed ?? '' },
      { type: 'create', ref: 'refs/tags/app/v1', new: rewritten },
    ]);
    const pushed = await world.push(path, { 'third/x.yaml': 'a: 1\n' }, 'proposed/third/w1');
    clock.advance(1000);
    await reconcile('apps');
    expect(await world.events(name)).toEqual([
      `DraftRewritten: the draft app/w1 was rewritten: ${draft} is not an ancestor of ${rewritten}`,
    ]);
    expect(await world.events('apps.app.v1')).toEqual([
      'OutOfBand: app/v1 points to a commit without a signed approval',
    ]);
    expect(await world.events('apps')).toEqual([
      expect.stringMatching(
        `^DraftRemoved: the draft other/w1 was removed, it was at ${removed}; to restore ${other}, `,
      ),
    ]);
    expect(world.store.find(other)).toBeUndefined();
    expect(await world.events(third)).toEqual([
      `ProposedPushed: the proposed revision third/w1 was changed to ${pushed} by a plain push: it is not what was proposed`,
    ]);
  });

  test.each([
    ['in a sync', async () => undefined, ''],
    [
      'by a request',
      (third: string) => world.store.update(third, { action: 'reject' }, ANNA).catch(() => undefined),
      ', after git fetch REMOTE refs/pull/NUMBER/head with the number of its pull request',
    ],
  ])(
    'a removed proposal is reported with its commit and how to restore it, where it is noticed %s',
    async (_, notice, fetched) => {
      const repo = await world.bare('apps');
      await create('apps', { repo });
      await reconcile('apps');
      const { name } = await world.draft('apps/third/w1');
      if (fetched !== '') {
        const forge = {
          provider: 'gitea',
          api: 'https://git.example.com/api/v1',
          secretRef: { name: 'forge' },
        } as const;
        const spec = { review: { forge, publishOn: 'approval' } } as const;
        await world.client.create(packagePolicyKind, { metadata: { name: 'review' }, spec });
        await expect.poll(() => world.policyFor(world.store.get(name)).review).toBeDefined();
      }
      await world.store.update(name, { action: 'propose' }, ANNA);
      clock.advance(1000);
      await reconcile('apps');
      const { git } = world.store.repository('apps');
      const old = (await git.resolveRef('refs/heads/proposed/third/w1')) ?? '';
      await git.transaction([{ type: 'delete', ref: 'refs/heads/proposed/third/w1', old }]);
      await notice(name);
      clock.advance(1000);
      await reconcile('apps');
      expect(world.store.find(name)).toBeUndefined();
      expect(await world.events('apps')).toEqual([
        `ProposedRemoved: the proposed revision third/w1 was removed, it was at ${old}; to restore ${name}, restore the branch proposed/third/w1 on the Git host, or push the commit to it again from a clone that has it${fetched}: git push REMOTE ${old}:refs/heads/proposed/third/w1`,
      ]);
      await git.transaction([{ type: 'create', ref: 'refs/heads/proposed/third/w1', new: old }]);
      clock.advance(1000);
      await reconcile('apps');
      expect(world.store.get(name).lifecycle).toBe('Proposed');
    },
  );

  test('a rewritten main branch is one finding about the repository', async () => {
    const repo = await world.bare('apps');
    const start = await world.push(repo, { 'one/Kptfile': KPTFILE, 'two/Kptfile': KPTFILE, 'three/Kptfile': KPTFILE });
    const head = await world.push(repo, { 'one/x.yaml': 'a: 1\n', 'two/x.yaml': 'a: 1\n', 'three/x.yaml': 'a: 1\n' });
    await create('apps', { repo });
    await reconcile('apps');
    const { git } = world.store.repository('apps');
    await git.transaction([{ type: 'update', ref: 'refs/heads/main', old: head, new: start }]);
    clock.advance(1000);
    await reconcile('apps');
    expect(await world.events('apps')).toEqual([
      `MainMoved: refs/heads/main is at ${start} and was rewritten: ${head} is not on its line any more`,
    ]);
    // A commit on top of it rewrites nothing.
    await world.push(repo, { 'one/y.yaml': 'a: 1\n' });
    clock.advance(1000);
    await reconcile('apps');
    const { items } = await world.client.list(eventKind);
    expect(items.map(({ reason }) => reason)).toEqual(['MainMoved']);
  });

  test('a record that does not count is reported on its revision, with the next step', async () => {
    const repo = await world.bare('apps');
    await create('apps', { repo });
    await reconcile('apps');
    const { name } = await world.draft('apps/app/w1');
    const { name: other } = await world.draft('apps/other/w1');
    const { git } = world.store.repository('apps');
    const [record, foreign] = await Promise.all(
      ['app', 'other'].map((path) => git.resolveRef(`refs/sluice/records/${path}/w1`)),
    );
    if (record === undefined || foreign === undefined) throw new Error('no record');
    await git.transaction([
      { type: 'update', ref: 'refs/sluice/records/app/w1', old: record, new: foreign },
      { type: 'delete', ref: 'refs/sluice/records/other/w1', old: foreign },
    ]);
    clock.advance(1000);
    await reconcile('apps');
    expect(await world.events(name)).toEqual([
      'RecordChanged: the record of app/w1 does not count (OtherRevision): its statement was made for other/w1; affirm the conditions of its gates',
    ]);
    expect(await world.events(other)).toEqual([
      'RecordRemoved: the record of other/w1 was removed by a push; its verdicts do not count any more',
    ]);
    const { status } = await world.client.get(packageRevisionKind, { name });
    expect(status?.recordDistrust).toEqual({
      reason: 'OtherRevision',
      message: 'its statement was made for other/w1',
    });
  });

  test.each([
    [2, 'app'],
    [12, 'apps'],
  ])('%i publications that lose their trust together are reported', async (count, about) => {
    const server = newServerTrust();
    await using own = await fixture(clock, server);
    const repo = await own.bare('apps');
    await own.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git: { repo } } });
    const look = repositoryControllerOf(own, { trust: server });
    await look.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
    for (let number = 1; number <= count; number += 1)
      await own.publish((await own.draft(`apps/app${number}/w1`)).name);
    const { ledger } = server;
    for (const known of ledger.repositories()) ledger.putRepository({ ...known, mainHeads: {} });
    for (const { fingerprint } of ledger.keys()) ledger.revokeKey(fingerprint, '2026-01-02T00:00:00Z');
    clock.advance(1000);
    await look.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
    const [first] = await own.events(about === 'apps' ? 'apps' : 'apps.app1.w1');
    const { items } = await own.client.list(eventKind);
    expect(items.map(({ reason }) => reason)).toEqual(
      Array.from({ length: count > 10 ? 1 : count }, () => 'TrustLost'),
    );
    expect(first).toContain('the publication of apps.app1.w1 does not count any more (RevokedKey)');
    const { status } = await own.client.get(packageRevisionKind, { name: 'apps.app1.w1' });
    expect(status?.outOfBand?.reason).toBe('RevokedKey');
  });

  test('steps that another process made through the kernel cause no event', async () => {
    const repo = await world.bare('apps');
    await create('apps', { repo });
    await reconcile('apps');
    await using elsewhere = await fixture(clock);
    await elsewhere.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git: { repo } } });
    await repositoryControllerOf(elsewhere).reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
    const look = async () => {
      clock.advance(1000);
      await reconcile('apps');
    };
    const { name } = await elsewhere.draft('apps/app/w1');
    await look();
    await elsewhere.store.update(name, { action: 'propose' }, ANNA);
    await look();
    await elsewhere.store.update(name, { action: 'reject' }, ANNA);
    await look();
    await elsewhere.publish(name);
    await look();
    expect(world.store.get(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    await elsewhere.store.update(name, { action: 'propose-deletion' }, ANNA);
    await look();
    await elsewhere.store.update(name, { action: 'delete' }, ANNA);
    await look();
    expect(world.store.find(name)).toBeUndefined();
    expect((await world.client.list(eventKind)).items).toEqual([]);
  });

  test('objects are packed from time to time, but not those of a repository that others maintain', async () => {
    const [own, foreign] = [join(world.folder, 'data/repositories/apps.git'), await world.bare('foreign')];
    await world.push(foreign, { 'one/Kptfile': KPTFILE });
    await create('apps', { repo: 'sluice:///apps.git', createBranch: true });
    await create('foreign', { repo: foreign });
    const packs = async (repo: string) => (await readdir(join(repo, 'objects', 'pack'))).length;
    for (const hours of [0, 1, 7]) {
      clock.advance(hours * 3_600_000);
      for (const name of ['foreign', 'apps']) await reconcile(name);
      if (hours < 7) expect(await packs(own)).toBe(0);
    }
    // Packing runs in the background, and is slow on a busy machine.
    await expect.poll(() => packs(own), { timeout: 30_000 }).toBeGreaterThan(0);
    expect(await packs(foreign)).toBe(0);
    expect(await ready('apps')).toBe('True Ready');
  });

  test('the index cache is saved from time to time and on close', async () => {
    controller = repositoryControllerOf(world, { saveInterval: 5000 });
    const repo = await world.bare('apps');
    await create('apps', { repo });
    await reconcile('apps');
    await world.push(repo, { 'one/Kptfile': KPTFILE });
    clock.advance(6000);
    await reconcile('apps');
    await world.client.delete(repositoryKind, { name: 'apps' });
    await reconcile('apps');
    await create('apps', { repo });
    await reconcile('apps');
    expect(await ready('apps')).toBe('True Ready');
    expect(world.store.list()).toHaveLength(1);
    expect(await world.events('apps')).toEqual([]);
  });
});

describe('remote repositories', () => {
  test('credentials come from the Secret, are read again for each use, and are in no message', async () => {
    await using world = await fixture();
    const repo = await world.bare('apps');
    const auth = { username: 'robot', password: 's3cret-t0ken' };
    const server = await startGitServer({ root: dirname(repo), auth });
    try {
      const { client } = world;
      const git = { repo: `${server.url}/apps.git`, secretRef: { name: 'apps-auth' } };
      await client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git } });
      const controller = repositoryControllerOf(world, { remoteInterval: 0 });
      const reconcile = () => controller.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
      await expect(reconcile()).rejects.toThrow(
        'Secret default/apps-auth, which Repository default/apps refers to, does not exist',
      );
      const metadata = { name: 'apps-auth' };
      await client.create(secretKind, { metadata, stringData: { username: 'robot', password: 'wr0ng-t0ken' } });
      await expect(reconcile()).rejects.toMatchObject({ code: 'Refused' });
      const { ready } = await statusOf(world, 'apps');
      expect(ready).toContain('rejected the credentials');
      await client.update(
        secretKind,
        secretKind.complete({ metadata, stringData: { username: 'robot', token: 's3cret-t0ken\n' } }),
      );
      await reconcile();
      expect((await statusOf(world, 'apps')).ready).toBe('True Ready');
      await world.push(repo, { 'one/Kptfile': KPTFILE });
      await reconcile();
      expect(world.store.list()).toHaveLength(1);
      const output = JSON.stringify([(await client.list(eventKind)).items, await statusOf(world, 'apps'), ready]);
      expect(output).not.toMatch(/t0ken/);
    } finally {
      await server.close();
    }
  });

  test('a repository that hangs delays no other, and its status reports it', async () => {
    await using world = await fixture();
    const hanging: Server = createServer(() => {
      // Accepts the request and never responds.
    });
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    try {
      const { client, manager, store } = world;
      const repo = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/apps.git`;
      await client.create(repositoryKind, { metadata: { name: 'hanging' }, spec: { git: { repo } } });
      const local = await world.bare('local');
      await client.create(repositoryKind, { metadata: { name: 'local' }, spec: { git: { repo: local } } });
      manager.addController(repositoryControllerOf(world, { openingDeadline: 600, localInterval: 50 }));
      await manager.start();
      await world.push(local, { 'one/Kptfile': KPTFILE });
      await expect.poll(() => store.find('local.one.main')?.lifecycle, { timeout: 10_000 }).toBe('Published');
      await expect
        .poll(async () => (await statusOf(world, 'hanging')).ready, { timeout: 10_000 })
        .toBe(`False Error ${repo} did not answer in time; Sluice retries with exponential backoff`);
      expect((await statusOf(world, 'local')).ready).toBe('True Ready');
      await world.push(local, { 'two/Kptfile': KPTFILE });
      await expect.poll(() => store.find('local.two.main')?.lifecycle, { timeout: 10_000 }).toBe('Published');
      await client.delete(repositoryKind, { name: 'hanging' });
      await manager.idle();
      expect(manager.failing()).toEqual([]);
    } finally {
      hanging.closeAllConnections();
      await new Promise((resolve) => hanging.close(resolve));
    }
  });
});
