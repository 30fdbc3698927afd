import { dirname } from 'node:path';
import { generateKey } from 'openpgp';
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { approveTogether } from '../../../../test/support/approve-together.ts';
import { CONTEXT, configMap, controllerOn } from '../../../../test/support/delivery.ts';
import { ANNA, type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { fsck, git, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { startGitServer } from '../../../../test/support/git/git-server.ts';
import { gpgVerifier, isInstalled, sshKey, type Verify } from '../../../../test/support/git/signing-keys.ts';
import { repositoryControllerOf } from '../../../../test/support/repository-controller.ts';
import { skipFor } from '../../../../test/support/skip.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { SIGNING_ANNOTATION } from '../../../resource/kinds/common/git-location.ts';
import { secretKind } from '../../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../../resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../../resource/object/condition.ts';

const BERTA = { ...ANNA, actor: { name: 'berta' } };
const keys = temporaryFolder();
afterAll(() => keys.remove());

/** Of the past, so that a clock of the past can sign with it. */
async function openPgpKey(expires?: number): Promise<{ privateKey: string; publicKey: string }> {
  return generateKey({
    userIDs: [{ name: 'Sluice', email: 'sluice@localhost' }],
    format: 'armored',
    date: new Date('2026-01-01T00:00:00Z'),
    passphrase: 'geheim',
    ...(expires === undefined ? {} : { keyExpirationTime: expires }),
  });
}

/** A key that does not expire; making one takes long. */
const lasting = openPgpKey();

describe('signed repositories', () => {
  let clock: ManualClock;
  let world: Fixture;
  let controller: ReturnType<typeof repositoryControllerOf>;
  let path: string;
  beforeEach(async () => {
    clock = new ManualClock(Date.parse('2026-01-01T00:01:00Z'));
    world = await fixture(clock);
    controller = repositoryControllerOf(world);
    path = await world.bare('apps');
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const secret = (stringData: Readonly<Record<string, string>>) =>
    world.client.create(secretKind, { metadata: { name: 'key' }, stringData });
  const changeSecret = async (data: Readonly<Record<string, string>>) => {
    const known = await world.client.get(secretKind, { name: 'key' });
    const encoded = Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
    await world.client.update(secretKind, { ...known, data: Object.fromEntries(encoded) });
  };
  const register = (name = 'key') => {
    const annotations = { [SIGNING_ANNOTATION]: name };
    return world.client.create(repositoryKind, {
      metadata: { name: 'apps', annotations },
      spec: { git: { repo: path } },
    });
  };
  const look = async () => {
    await controller.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
    const { status } = await world.client.get(repositoryKind, { name: 'apps' });
    const ready = findCondition(status?.conditions, 'Ready');
    return `${ready?.status} ${ready?.message}`;
  };

  const pairs: readonly (readonly [
    string,
    boolean,
    () => Promise<{ data: Record<string, string>; verify: Verify }>,
  ])[] = [
    [
      'OpenPGP',
      isInstalled('gpg'),
      async () => {
        const { privateKey, publicKey } = await lasting;
        return { data: { 'git.asc': privateKey, passphrase: 'geheim\n' }, verify: gpgVerifier(keys.path, publicKey) };
      },
    ],
    [
      'SSH',
      isInstalled('ssh-keygen'),
      async () => {
        const { privateKey, verify } = sshKey(keys.path, 'ed25519');
        return { data: { identity: privateKey }, verify };
      },
    ],
  ];
  for (const [kind, installed, pair] of pairs) {
    test(
      `git verifies all that is written with a key of ${kind}`,
      skipFor(!installed && `${kind}: the program for its keys is not installed`),
      async () => {
        const { data, verify } = await pair();
        await secret(data);
        await register();
        expect(await look()).toBe('True ');
        const foreign = git(path, ['rev-parse', 'main']);
        const seen = new Set<string>();
        const verifyAll = () => {
          for (const [ref, oid] of refsOf(path)) {
            if (oid === foreign) continue;
            const type = ref.startsWith('refs/tags/') ? 'tag' : 'commit';
            verify(path, type, oid);
            verify(path, 'commit', git(path, ['rev-parse', `${ref}^{commit}`]));
            seen.add(ref.replace(/[0-9a-f-]{36}/, '<uid>'));
          }
          fsck(path);
        };

        const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
        verifyAll();
        await world.store.update(name, { action: 'propose' }, ANNA);
        verifyAll();
        await world.store.update(name, { action: 'approve' }, BERTA);
        verifyAll();
        expect(git(path, ['tag', '--list', '--format=%(objecttype) %(contents:subject) %(taggername)'])).toBe(
          'tag apps.web.w1 sluice',
        );

        const site = await world.bare('site');
        await world.client.create(deliveryTargetKind, {
          metadata: { name: 'edge', annotations: { [SIGNING_ANNOTATION]: 'key' } },
          spec: { selector: {}, git: { repo: site } },
        });
        await controllerOn(world).reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
        expect(git(site, ['log', '-1', '--format=%s', 'main'])).toBe('Deliver web v1');
        verify(site, 'commit', 'main');

        await world.store.update(name, { action: 'propose-deletion' }, ANNA);
        await world.store.update(name, { action: 'delete' }, BERTA);
        verifyAll();
        expect([...seen].sort()).toEqual([
          'refs/heads/drafts/web/w1',
          'refs/heads/main',
          'refs/heads/proposed/web/w1',
          'refs/sluice/deleted/web%2Fv1',
          'refs/sluice/records/web/w1',
          'refs/sluice/repository',
          'refs/tags/web/v1',
        ]);
      },
    );
  }

  test(
    'the same applies over HTTP to publications in one push',
    skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed'),
    async () => {
      const { privateKey, verify } = sshKey(keys.path, 'ed25519', ['-C', 'http']);
      const server = await startGitServer({ root: dirname(path) });
      onTestFinished(() => server.close());
      await secret({ identity: privateKey });
      const annotations = { [SIGNING_ANNOTATION]: 'key' };
      const spec = { git: { repo: `${server.url}/apps.git` } };
      await world.client.create(repositoryKind, { metadata: { name: 'apps', annotations }, spec });
      expect(await look()).toBe('True ');
      const foreign = git(path, ['rev-parse', 'main']);
      const drafts = await Promise.all(['a', 'b', 'c'].map((name) => world.draft(`apps/${name}/w1`)));
      await Promise.all(drafts.map(({ name }) => world.publish(name)));
      for (const [ref, oid] of refsOf(path)) verify(path, ref.startsWith('refs/tags/') ? 'tag' : 'commit', oid);
      const line = git(path, ['rev-list', '--first-parent', `${foreign}..main`]).split('\n');
      expect(line).toHaveLength(3);
      for (const commit of line) verify(path, 'commit', commit);
      expect([...refsOf(path).keys()].filter((ref) => ref.startsWith('refs/tags/'))).toHaveLength(3);
      fsck(path);
      // And to those of one commit.
      const together = await Promise.all(['d', 'e'].map((path) => world.draft(`apps/${path}/w1`)));
      for (const draft of together) await world.store.update(draft.name, { action: 'propose' }, ANNA);
      const names = together.map((draft) => draft.name);
      await approveTogether(world.store, names, BERTA);
      verify(path, 'commit', 'main');
      for (const draft of names) {
        expect(world.store.get(draft)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
        expect(world.store.get(draft).commit).toBe(git(path, ['rev-parse', 'main']));
        verify(path, 'tag', world.store.get(draft).refOid);
      }
      const name = 'apps.a.w1';
      await world.store.update(name, { action: 'propose-deletion' }, ANNA);
      await world.store.update(name, { action: 'delete' }, BERTA);
      expect(refsOf(path).has('refs/tags/a/v1')).toBe(false);
    },
  );

  test('another process reads earlier publications, and its own later ones', async () => {
    const { privateKey } = await lasting;
    await secret({ 'git.asc': privateKey, passphrase: 'geheim' });
    await register();
    await look();
    const { name } = await world.draft('apps/web/w1');
    await world.publish(name);
    await using other = await fixture(clock);
    const theirs = repositoryControllerOf(other);
    await other.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git: { repo: path } } });
    await theirs.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
    expect(other.store.get(name)).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
    const copy = { type: 'copy', source: name } as const;
    const second = await world.store.create('apps', { package: 'web', workspace: 'w2', source: copy }, ANNA);
    await world.publish(second.name);
    clock.advance(1000);
    await theirs.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
    expect(other.store.get(second.name)).toMatchObject({ lifecycle: 'Published', revision: 2, outOfBand: undefined });
    expect(await other.events(second.name)).toEqual([]);
    // Who does not sign deletes what was signed all the same.
    await other.store.update(name, { action: 'propose-deletion' }, ANNA);
    await other.store.update(name, { action: 'delete' }, BERTA);
    clock.advance(1000);
    await look();
    expect(world.store.find(name)).toBeUndefined();
    expect(await world.events(name)).toEqual([]);
  });

  test('without the key nothing is written, packages can be read, and a key that is added later counts at once', async () => {
    const { privateKey } = await lasting;
    await world.push(path, { 'db/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: db\n' });
    await register();
    const complaint = 'commits of Repository default/apps are signed with the key in Secret default/key: ';
    expect(await look()).toBe(`False ${complaint}it does not exist; create it with git.asc, or identity`);
    expect(world.store.get('apps.db.main').lifecycle).toBe('Published');
    const refs = refsOf(path);
    const refusal = { code: 'Unavailable', message: expect.stringContaining(`cannot write: ${complaint}`) };
    await expect(world.draft('apps/web/w1')).rejects.toMatchObject(refusal);

    await secret({ password: 'x' });
    expect(await look()).toBe(`False ${complaint}it has none of the keys git.asc, identity and ssh-privatekey`);
    await changeSecret({ 'git.asc': privateKey, passphrase: 'falsch' });
    expect(await look()).toMatch(/^False .*: the passphrase of the OpenPGP key [0-9A-F]{16} is wrong$/);
    await expect(world.draft('apps/web/w1')).rejects.toMatchObject(refusal);
    expect(refsOf(path)).toEqual(refs);
    expect((await world.events('apps')).length).toBe(3);

    await changeSecret({ 'git.asc': privateKey, passphrase: 'geheim' });
    await world.draft('apps/web/w1');
    expect(await look()).toBe('True ');
  });

  test('a key that expires closes the repository for writes', async () => {
    const { privateKey } = await openPgpKey(3600);
    await secret({ 'git.asc': privateKey, passphrase: 'geheim' });
    await register();
    expect(await look()).toBe('True ');
    const { name } = await world.draft('apps/web/w1');
    clock.advance(3_600_000);
    await expect(world.publish(name)).rejects.toMatchObject({ code: 'Unavailable' });
    expect(await look()).toMatch(/^False .*cannot sign: .*expired/);
  });

  test(
    'a new key in the Secret signs the next commit',
    skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed'),
    async () => {
      const [first, second] = [sshKey(keys.path, 'ecdsa'), sshKey(keys.path, 'ecdsa', ['-b', '384'])];
      await secret({ 'ssh-privatekey': first.privateKey });
      await register();
      await look();
      await world.draft('apps/one/w1');
      await changeSecret({ 'ssh-privatekey': second.privateKey });
      await world.draft('apps/two/w1');
      first.verify(path, 'commit', 'drafts/one/w1');
      second.verify(path, 'commit', 'drafts/two/w1');
    },
  );

  test('a repository signs from the moment on that the annotation is there', async () => {
    const { privateKey } = await lasting;
    await secret({ 'git.asc': privateKey, passphrase: 'geheim' });
    await world.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git: { repo: path } } });
    await look();
    const { name } = await world.draft('apps/web/w1');
    await world.publish(name);
    const known = await world.client.get(repositoryKind, { name: 'apps' });
    const annotations = { [SIGNING_ANNOTATION]: 'key' };
    await world.client.update(repositoryKind, { ...known, metadata: { ...known.metadata, annotations } });
    await look();
    const copy = { type: 'copy', source: name } as const;
    const second = await world.store.create('apps', { package: 'web', workspace: 'w2', source: copy }, ANNA);
    await world.publish(second.name);
    expect(git(path, ['tag', '--list', '--format=%(refname:short) %(objecttype)'])).toBe('web/v1 commit\nweb/v2 tag');
    // What was published before is deleted as any other.
    await world.store.update(name, { action: 'propose-deletion' }, ANNA);
    await world.store.update(name, { action: 'delete' }, BERTA);
    expect(git(path, ['tag', '--list'])).toBe('web/v2');
  });
});
