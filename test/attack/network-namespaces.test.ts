import { readdirSync, symlinkSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { packageRepositoryAt } from '../../controllers/delivery/branch/package-branches.ts';
import { dataFolder } from '../../src/app/data/data-folder.ts';
import { Session } from '../../src/app/session/session.ts';
import { HostRules } from '../../src/git/network/host-rules.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { publishedRecordOf } from '../../src/package/model/record/commit-message.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { commitFiles } from '../support/scratch-repository.ts';
import { newSigner } from '../support/trust.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n';

let folder: string;
let server: GitServer;
let session: Session;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-namespaces-'));
  server = await startGitServer({ root: folder });
  session = await openSession();
});
afterEach(async () => {
  await session.close();
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

function openSession(): Promise<Session> {
  return Session.open({
    folder: dataFolder(join(folder, 'data')),
    actor: { name: 'anna' },
    write: true,
    network: { hosts: new HostRules([new URL(server.url).host]) },
  });
}

async function bare(name: string, packageName = 'web'): Promise<string> {
  const git = await initRepository(join(folder, `${name}.git`));
  await commitFiles(git, { [`${packageName}/Kptfile`]: KPTFILE }, 0);
  await git.close();
  return `${server.url}/${name}.git`;
}

/** Registers and opens a repository, as the repository controller would. */
async function register(namespace: string, name: string, repo: string, annotations = {}, git = {}): Promise<void> {
  const object = await session.client.create(repositoryKind, {
    metadata: { name, namespace, annotations },
    spec: { git: { repo, ...git } },
  });
  await session.repositories.open(`${namespace}/${name}`);
  const lastFullSyncTime = new Date().toISOString();
  await session.client.updateStatus(repositoryKind, { ...object, status: { ...object.status, lastFullSyncTime } });
}

test('two namespaces each have a repository of one name, and each lists its own packages', async () => {
  await register('team-a', 'packages', await bare('one', 'shop'));
  await register('team-b', 'packages', await bare('two', 'shop'));
  const init = { spec: { repository: 'packages', packageName: 'web', workspaceName: 'v1', tasks: [] } };
  for (const namespace of ['team-a', 'team-b'])
    await session.client.create(packageRevisionKind, { metadata: { name: '', namespace }, ...init } as never);
  const inA = await session.client.get(packageRevisionKind, { namespace: 'team-a', name: 'packages.web.v1' });
  const inB = await session.client.get(packageRevisionKind, { namespace: 'team-b', name: 'packages.web.v1' });
  expect(inA.metadata.uid).not.toBe(inB.metadata.uid);
  await session.client.delete(packageRevisionKind, { namespace: 'team-b', name: 'packages.web.v1' });
  const names = async (namespace: string) =>
    (await session.client.list(packageRevisionKind, { namespace })).items.map(({ metadata }) => metadata.name).sort();
  expect(await names('team-a')).toEqual(['packages.shop.main', 'packages.web.v1']);
  expect(await names('team-b')).toEqual(['packages.shop.main']);
  expect(session.store.find('team-a/packages.web.v1')).toBeDefined();
  expect(session.store.find('team-b/packages.web.v1')).toBeUndefined();
  // Names alone say nothing here.
  expect(() => session.store.find('packages.web.v1')).toThrow(/several namespaces/);
});

test('registering a repository in another namespace does not bypass the policies of the first', async () => {
  const repo = await bare('shared');
  await register('team-a', 'packages', repo);
  await session.client.create(packagePolicyKind, {
    metadata: { name: 'reviewed', namespace: 'team-a' },
    spec: { selector: { repositories: ['packages'] }, requiredGates: [{ conditionType: 'Reviewed' }] },
  });
  // Under another name, by an alias of the address, and with gates switched off there.
  const alias = repo.replace('http:', 'HTTP:').replace(/\.git$/, '/');
  await register('team-b', 'other', alias, { 'sluice.dev/gates': 'off' });
  for (const id of ['team-a/packages', 'team-b/other']) {
    const { name, namespace } = await session.store.create(
      id,
      { package: `of-${id.split('/')[1]}`, workspace: 'v1', source: { type: 'init' } },
      session.context(),
    );
    const { policy } = await session.store.evaluate(`${namespace}/${name}`);
    expect(policy.enforcement).toBe('enforce');
    expect(policy.requiredGates.map(({ conditionType }) => conditionType)).toEqual(['Reviewed']);
  }
  // One mirror, and what controllers do by themselves is done once.
  expect(readdirSync(join(folder, 'data', 'git'))).toHaveLength(1);
  expect(session.store.repositories().map(({ id, follows }) => `${id} ${follows}`)).toEqual([
    'team-a/packages false',
    'team-b/other true',
  ]);
  await session.store.repository('team-b/other').sync();
  expect(session.store.find('team-b/other.of-packages.v1')).toBeDefined();
});

test('another branch of the repository in another namespace does not bypass policies either: drafts and records are shared', async () => {
  const line = (name: string) => `${name} ${newSigner().publicKey}`;
  const list = (namespace: string, text: string) =>
    session.client.create(configMapKind, { metadata: { name: 'people', namespace }, data: { allowed_signers: text } });
  await list('team-a', `${line('anna')}\n`);
  await list('tenant', `${line('anna')}\n`);
  const repo = await bare('shared');
  const annotations = { 'sluice.dev/allowed-signers': 'people' };
  await register('team-a', 'packages', repo, { ...annotations, 'sluice.dev/host-users': 'people' });
  await session.client.create(packagePolicyKind, {
    metadata: { name: 'eyes', namespace: 'team-a' },
    spec: {
      requiredGates: [{ conditionType: 'reviewed' }],
      givers: [{ conditionType: 'reviewed', actors: ['anna'] }],
      approval: { forbidSelfApproval: true },
    },
  });
  const gatesOff = { 'sluice.dev/gates': 'off', 'sluice.dev/host-users': 'people' };
  const other = { branch: 'other', createBranch: true };
  await register('tenant', 'packages', repo, { ...annotations, ...gatesOff }, other);
  await session.client.create(packagePolicyKind, {
    metadata: { name: 'mine', namespace: 'tenant' },
    spec: { pushMayGive: true },
  });
  const source = { type: 'init' } as const;
  await session.store.create('team-a/packages', { package: 'app', workspace: 'v1', source }, session.context());
  // It is the same draft in both.
  await session.store.repository('tenant/packages').sync();
  const { policy } = await session.store.evaluate('tenant/packages.app.v1');
  expect(policy).toMatchObject({ enforcement: 'enforce', forbidSelfApproval: true, hostUsers: undefined });
  expect(policy.requiredGates).toMatchObject([{ conditionType: 'reviewed', policy: 'team-a/eyes' }]);
  expect(policy.givers).toMatchObject([{ conditionType: 'reviewed', actors: ['anna'] }]);
  // "anna" is another key in the other namespace, so that neither list identifies her there.
  expect(policy.people.signers).toEqual([]);
  expect((await session.store.evaluate('team-a/packages.app.v1')).policy.hostUsers).toBeUndefined();
  // The branches have publications of their own: controllers act in both.
  expect(session.store.repositories().map(({ id, follows }) => `${id} ${follows}`)).toEqual([
    'team-a/packages false',
    'tenant/packages false',
  ]);
});

test.each([
  ['the same branch', {}],
  ['another branch', { branch: 'other', createBranch: true }],
])(
  'an approval that was given in another namespace with %s of the repository does not count in the first one',
  async (_, git) => {
    const repo = await bare('shared');
    await register('team-a', 'packages', repo);
    await session.client.create(packagePolicyKind, {
      metadata: { name: 'eyes', namespace: 'team-a' },
      spec: { approval: { forbidSelfApproval: true } },
    });
    await register('tenant', 'packages', repo, {}, git);
    const branch = 'drafts/app/v1';
    const pushed = await initRepository(join(folder, 'shared.git'));
    await commitFiles(pushed, { 'app/Kptfile': KPTFILE }, Date.now(), { branch, from: 'refs/heads/main' });
    await pushed.close();
    const act = async (namespace: string, name: string, action: 'propose' | 'approve') => {
      await session.store.repository(`${namespace}/packages`).sync();
      const id = `${namespace}/packages.app.v1`;
      return session.store.update(id, { action }, { ...session.context(), actor: { name } });
    };
    const lifecycle = () => session.store.find('team-a/packages.app.v1')?.lifecycle;
    await session.store.repository('team-a/packages').sync();
    await act('team-a', 'carl', 'propose');
    await act('tenant', 'mallory', 'approve');
    await act('team-a', 'bob', 'approve');
    expect(lifecycle()).toBe('Proposed');
    await act('team-a', 'dora', 'approve');
    expect(lifecycle()).toBe('Published');
    const statement = session.store.find('team-a/packages.app.v1')?.tip.facts;
    expect(JSON.stringify(statement)).not.toContain('mallory');
  },
);

describe('where two namespaces have registered one branch, users who may approve in one of them alone', () => {
  const eyes = (namespace: string) =>
    session.client.create(packagePolicyKind, {
      metadata: { name: 'eyes', namespace },
      spec: { approval: { forbidSelfApproval: true } },
    });
  const warnings: string[] = [];
  const act = async (namespace: string, name: string, action: 'propose' | 'approve') => {
    await session.store.repository(`${namespace}/packages`).sync();
    const context = { ...session.context(), actor: { name }, warn: (text: string) => void warnings.push(text) };
    return session.store.update(`${namespace}/packages.app.v1`, { action }, context);
  };
  const lifecycle = () => session.store.find('team-a/packages.app.v1')?.lifecycle;
  const subjects = () => {
    const { tip } = session.store.get('team-a/packages.app.v1');
    return publishedRecordOf(tip.facts)?.approvals?.map(({ namespace, subject }) => `${namespace}/${subject}`);
  };

  beforeEach(async () => {
    warnings.length = 0;
    const repo = await bare('shared');
    for (const namespace of ['team-a', 'tenant']) await register(namespace, 'packages', repo);
    await eyes('team-a');
    const source = { type: 'init' } as const;
    await session.store.create('team-a/packages', { package: 'app', workspace: 'v1', source }, session.context());
    await act('team-a', 'carl', 'propose');
  });

  test('do not publish where the policies of the other one forbid self-approval', async () => {
    await act('tenant', 'mallory', 'approve');
    await act('tenant', 'mary', 'approve');
    expect(lifecycle()).toBe('Proposed');
    const explained = (namespace: string) =>
      session.readings.explain(session.context(), { namespace, name: 'packages.app.v1' });
    expect((await explained('tenant')).reasons).toContainEqual({
      reason: 'ApprovalsNeeded',
      message:
        '0 of 1 approvals recorded in the namespace team-a, which has registered the same branch, and whose policies require them by users who may approve there',
      since: expect.any(String),
      resolvedBy: 'users who may approve in the namespace team-a',
    });
    // What was approved elsewhere is no approval here.
    expect((await explained('team-a')).approvals?.given).toEqual([]);
    expect(warnings).toContain(
      '1 of 2 approvals: policies of the namespace team-a, which has registered the same branch, require that a user approves packages.app.v1 there as well',
    );
    await act('team-a', 'bob', 'approve');
    expect(lifecycle()).toBe('Published');
    expect(subjects()).toEqual(['team-a/bob']);
  });

  test('publish together where both forbid it, and the statement names both', async () => {
    await eyes('tenant');
    await act('team-a', 'bob', 'approve');
    expect(lifecycle()).toBe('Proposed');
    // Who must not approve here must not do so there.
    await expect(act('tenant', 'carl', 'approve')).rejects.toThrow('carl proposed packages.app.v1');
    await act('tenant', 'mary', 'approve');
    await session.store.repository('team-a/packages').sync();
    expect(lifecycle()).toBe('Published');
    expect(subjects()).toEqual(['team-a/bob', 'tenant/mary']);
  });
});

test('in one namespace a repository is registered with two branches, each under its own policies', async () => {
  const repo = await bare('packages');
  await register('team-a', 'main', repo);
  await register('team-a', 'next', repo, { 'sluice.dev/gates': 'off' }, { branch: 'next', createBranch: true });
  const source = { type: 'init' } as const;
  for (const [name, enforcement] of [
    ['main', 'enforce'],
    ['next', 'off'],
  ] as const) {
    await session.store.create(`team-a/${name}`, { package: name, workspace: 'v1', source }, session.context());
    expect((await session.store.evaluate(`team-a/${name}.${name}.v1`)).policy.enforcement).toBe(enforcement);
  }
});

test('the keys of people that one namespace lists count where another one restricts issuers or approvers only if it lists them too', async () => {
  const line = (name: string) => `${name} ${newSigner().publicKey}`;
  const [anna, mallory] = [line('anna'), line('anna')];
  const list = (namespace: string, ...lines: string[]) =>
    session.client.create(configMapKind, {
      metadata: { name: 'people', namespace },
      data: { allowed_signers: `${lines.join('\n')}\n` },
    });
  await list('team-a', anna);
  await list('team-b', anna, mallory);
  const repo = await bare('shared');
  const annotations = { 'sluice.dev/allowed-signers': 'people' };
  await register('team-a', 'packages', repo, annotations);
  await register('team-b', 'packages', repo, annotations);
  const { name } = await session.store.create(
    'team-b/packages',
    { package: 'shop', workspace: 'v1', source: { type: 'init' } },
    session.context(),
  );
  const signers = async () => (await session.store.evaluate(`team-b/${name}`)).policy.people.signers;
  expect(await signers()).toHaveLength(2);
  await session.client.create(packagePolicyKind, {
    metadata: { name: 'eyes', namespace: 'team-a' },
    spec: { approval: { forbidSelfApproval: true } },
  });
  await expect.poll(async () => (await signers()).length).toBe(1);
  expect(anna).toContain((await signers())[0]?.publicKey.blob.toString('base64'));
  // Signatures that were checked are remembered by the list.
  expect(await signers()).toBe(await signers());
});

test('the policies of another namespace hold from the first request after a start, before its repository is open', async () => {
  const repo = await bare('shared');
  await register('team-a', 'packages', repo);
  await register('team-b', 'other', repo);
  await session.client.create(packagePolicyKind, {
    metadata: { name: 'reviewed', namespace: 'team-b' },
    spec: { requiredGates: [{ conditionType: 'Reviewed' }] },
  });
  const source = { type: 'init' } as const;
  await session.store.create('team-a/packages', { package: 'app', workspace: 'v1', source }, session.context());
  await session.close();
  session = await openSession();
  await session.repositories.open('team-a/packages');
  expect(session.store.repositories().map(({ id }) => id)).toEqual(['team-a/packages']);
  const propose = session.store.update('team-a/packages.app.v1', { action: 'propose' }, session.context());
  await expect(propose).rejects.toThrow(/gate Reviewed is closed/);
});

test('in one namespace an alias of an address is the same repository, and is refused', async () => {
  const repo = await bare('packages');
  await register('team-a', 'packages', repo);
  const path = join(folder, 'local.git');
  await bare('local');
  const link = join(folder, 'link');
  symlinkSync(path, link);
  await register('team-a', 'local', path);
  for (const [index, alias] of [
    repo.replace(/\.git$/, ''),
    `${repo}/`,
    repo.toUpperCase(),
    link,
    `file://${path}`,
  ].entries())
    await expect(register('team-a', `alias-${index}`, alias), alias).rejects.toMatchObject({
      code: 'Refused',
      message: expect.stringMatching(/conflict with existing repository: team-a\//),
    });
});

test('a target that names a repository of another namespace does not reveal its name there', async () => {
  const repo = await bare('shared');
  await register('team-a', 'secret-name', repo);
  const repositories = (await session.client.list(repositoryKind)).items;
  const found = (namespace: string) => packageRepositoryAt({ repo, branch: 'main' } as never, repositories, namespace);
  expect(await found('team-a')).toBe('Repository team-a/secret-name');
  expect(await found('tenant')).toBe('a Repository of another namespace');
});
