import { mkdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import type { MigrationReport } from '../../src/cli/migrate/migration-report.ts';
import { runCli } from '../../src/cli/testing.ts';
import { ADMIN_CONTEXT } from '../../src/server/authentication/kubeconfig.ts';
import { eventually } from '../support/api/eventually.ts';
import { KubeApi, type KubeObject } from '../support/api/kube-api.ts';
import { git, initBare } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { skipFor } from '../support/skip.ts';
import { Up } from '../support/up.ts';
import { applyObjects } from './support/apply-objects.ts';
import { ControlPlane } from './support/control-plane.ts';
import { API_SERVICE, PACKAGE_VERSION } from './support/extension-server.ts';
import { DEFINITIONS, readDefinitions } from './support/install-definitions.ts';
import { porchProgram } from './support/porch/porch-program.ts';
import { PorchServer, REPOSITORIES } from './support/porch/porch-server.ts';
import { clusterPrograms } from './support/programs.ts';
import { readManifests } from './support/render.ts';
import { Installation, NAMESPACE } from './support/sluice-serve.ts';

const program = inject('serverMissing') === '' ? await porchProgram() : { missing: inject('serverMissing') };
const missing = 'missing' in program && program.missing;
const VARIANTS = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/team/packagevariants';
const PASSWORD = 'pass-word-of-the-host';

describe('migration from a Porch server', skipFor(missing), () => {
  let plane: ControlPlane;
  let admin: KubeApi;
  let porch: PorchServer;
  let host: GitServer;
  let folder: string;

  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs || 'missing' in program) return;
    plane = await ControlPlane.start({ programs });
    admin = await KubeApi.of(plane.kubeconfig);
    const root = join(plane.folder, 'git');
    mkdirSync(root);
    for (const name of ['apps', 'blueprints']) {
      const repository = initBare(join(root, `${name}.git`));
      const commit = git(repository, ['commit-tree', '-m', 'begin', git(repository, ['mktree'])]);
      git(repository, ['update-ref', 'refs/heads/main', commit]);
    }
    host = await startGitServer({ root, auth: { username: 'bot', password: PASSWORD } });
    porch = await PorchServer.start(program, plane, admin);
    await admin.post('/api/v1/namespaces', { metadata: { name: 'team' } });
    await admin.post('/api/v1/namespaces/team/secrets', {
      ...{ metadata: { name: 'host-auth' }, type: 'kubernetes.io/basic-auth' },
      stringData: { username: 'bot', password: PASSWORD },
    });
    const secretRef = { name: 'host-auth' };
    const gitOf = (name: string, directory: string) => ({ repo: `${host.url}/${name}.git`, directory, secretRef });
    await porch.register('team', 'apps', { type: 'git', deployment: true, git: gitOf('apps', '/') });
    await porch.register('team', 'blueprints', { type: 'git', git: gitOf('blueprints', 'packages') });

    await porch.init('team', 'blueprints', 'base', 'v1');
    await porch.setLifecycle('team', 'blueprints.base.v1', 'Proposed', 'Published');
    await porch.init('team', 'apps', 'web', 'first');
    await porch.setFiles('team', 'apps.web.first', {
      'web.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web # größer\n',
    });
    await porch.setLifecycle('team', 'apps.web.first', 'Proposed', 'Published');
    await porch.copy('team', 'apps.web.first', 'second');
    await porch.setMetadata('team', 'apps.web.second', {
      labels: { tier: 'front' },
      annotations: { 'example.com/why': 'a test' },
    });
    await porch.init('team', 'apps', 'net/edge', 'v1');
    await porch.setLifecycle('team', 'apps.net.edge.v1', 'Proposed');
    await porch.init('team', 'apps', 'old', 'v1');
    await porch.setLifecycle('team', 'apps.old.v1', 'Proposed', 'Published', 'DeletionProposed');
  });
  afterAll(async () => {
    await porch?.[Symbol.asyncDispose]();
    await host?.close();
    admin?.close();
    await plane?.stop();
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-migrate-'));
    return () => rm(folder, { recursive: true, force: true });
  });

  const environment = { SLUICE_USER: 'anna', SLUICE_ALLOW_GIT_HOST: '127.0.0.1' };
  const sluice = (...words: string[]) => runCli([...words, '--data', join(folder, 'data')], environment);
  const migrate = (...words: string[]) => sluice('migrate', 'porch', '--kubeconfig', plane.kubeconfig, ...words);
  const reportOf = async (...words: string[]) => {
    const { code, stdout, stderr } = await migrate(...words, '-o', 'json');
    expect(stdout + stderr).not.toContain(PASSWORD);
    return { code, stderr, ...(JSON.parse(stdout) as MigrationReport) };
  };
  const repositoriesAtPorch = async () => (await admin.list(`${REPOSITORIES}/team/repositories`)).body.items;

  test('a dry run changes nothing, and a migration shows every revision of Porch alike, again and again', async () => {
    const before = await repositoriesAtPorch();
    const dry = await reportOf('--include-secrets');
    expect(dry).toMatchObject({
      ...{ code: 0, applied: false, differences: [] },
      repositories: [
        { name: 'apps', action: 'register', porch: 6, secret: { name: 'host-auth', state: 'copy' } },
        { name: 'blueprints', action: 'register', porch: 2, secret: { name: 'host-auth', state: 'copy' } },
      ],
      notes: expect.arrayContaining([expect.objectContaining({ subject: 'apps', reason: 'OutOfBand' })]),
    });
    await expect(stat(join(folder, 'data'))).rejects.toThrow('ENOENT');
    const refused = await reportOf('--yes');
    expect(refused).toMatchObject({ code: 1, repositories: [{ action: 'blocked' }, { action: 'blocked' }] });

    const first = await reportOf('--yes', '--include-secrets');
    expect(first).toMatchObject({
      ...{ code: 0, differences: [], stderr: '' },
      repositories: [
        { name: 'apps', action: 'registered', porch: 6, sluice: 6, alike: 6 },
        { name: 'blueprints', action: 'registered', porch: 2, sluice: 2, alike: 2 },
      ],
    });
    expect(first.repositories[0]?.metadata).toEqual([
      { name: 'apps.web.second', copied: true, what: 'label tier=front, annotation example.com/why' },
    ]);
    expect(first.notes).toContainEqual(
      expect.objectContaining({
        subject: 'apps',
        reason: 'PorchApproval',
        names: ['apps.old.v1', 'apps.web.first'],
      }),
    );

    const again = await reportOf('--yes');
    expect(again).toMatchObject({
      code: 0,
      differences: [],
      repositories: [
        { action: 'present', alike: 6 },
        { action: 'present', alike: 2 },
      ],
    });
    expect(again.repositories[0]?.metadata).toBeUndefined();
    expect(await repositoriesAtPorch()).toEqual(before);

    expect(await sluice('repo', 'adopt', 'apps', '-n', 'team', '--yes')).toMatchObject({ code: 0 });
    const { notes } = await reportOf('--only', 'apps');
    expect(notes).toEqual([]);
  });

  test('Porch and Sluice work on the repositories at the same time, and differences are named with the next step', async () => {
    await reportOf('--yes', '--include-secrets');
    // A package that each of them makes is seen by the other.
    await porch.init('team', 'apps', 'late', 'v1');
    await porch.setLifecycle('team', 'apps.late.v1', 'Proposed', 'Published');
    expect(
      await sluice('rpkg', 'init', 'ours', '--repository', 'apps', '--workspace', 'v1', '-n', 'team'),
    ).toMatchObject({
      code: 0,
    });
    for (const step of ['propose', 'approve'])
      expect(await sluice('rpkg', step, 'apps.ours.v1', '-n', 'team')).toMatchObject({ code: 0 });
    await eventually(
      () => reportOf('--only', 'apps'),
      ({ code, repositories }) => code === 0 && repositories[0]?.alike === 10,
    );

    await porch.setMetadata('team', 'apps.ours.v1', { labels: { tier: 'back' } });
    expect(await reportOf('--only', 'apps')).toMatchObject({
      ...{ code: 0, applied: false },
      repositories: [{ metadata: [{ name: 'apps.ours.v1', copied: false, what: 'label tier=back' }] }],
    });
    await reportOf('--only', 'apps', '--yes');
    await porch.setMetadata('team', 'apps.ours.v1', { labels: { tier: 'middle' } });
    expect(await reportOf('--only', 'apps')).toMatchObject({
      code: 1,
      differences: [{ name: 'apps.ours.v1', field: 'metadata.labels[tier]', porch: 'middle', sluice: 'back' }],
    });
    const text = await migrate('--only', 'apps');
    expect(text.code).toBe(1);
    expect(text.stdout).toMatch(/^team\/apps\.ours\.v1 +metadata\.labels\[tier\] +middle +back +/m);
    expect(text.stderr).toContain('0 of 1 repository alike, 1 difference; nothing was changed');
  });

  test('migrates to a server of Sluice, without the files of the package revisions if so requested', async () => {
    await using up = await startUp(join(folder, 'data'));
    const target = ['--to-kubeconfig', join(folder, 'data', 'kubeconfig'), '--to-context', up.context, '-n', 'team'];
    const words = ['migrate', 'porch', '--kubeconfig', plane.kubeconfig, ...target, '--yes', '--include-secrets'];
    const { code, stdout, stderr } = await runCli([...words, '--no-contents'], environment);
    expect({ code, stderr }, stderr).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('2 of 2 repositories alike'),
    });
    expect(stdout).toMatch(/^team\/apps +http:\S+\/apps.git +registered +host-auth \(copied\) /m);
  });

  test('what Sluice cannot take over is reported, and then it takes the place of Porch in the cluster', async () => {
    const variant = await admin.post(VARIANTS, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'PackageVariant', metadata: { name: 'edge' } },
      spec: { upstream: { repo: 'blueprints', package: 'base' }, downstream: { repo: 'apps', package: 'web' } },
    });
    const owner = { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'PackageVariant', name: 'edge' };
    const ownerReferences = [{ ...owner, uid: variant.body.metadata.uid }];
    await porch.setMetadata('team', 'apps.web.second', { ownerReferences });
    const report = await reportOf('--yes', '--include-secrets');
    expect(report).toMatchObject({ code: 0, differences: [] });
    expect(report.repositories[0]?.metadata).toContainEqual({
      ...{ name: 'apps.web.second', copied: false },
      what: expect.stringContaining('Sluice does not have the owner PackageVariant/edge'),
    });
    expect(report.notes).toContainEqual(
      expect.objectContaining({ subject: 'PackageVariant', reason: 'Stays', names: ['edge'] }),
    );

    const revisions = `${PACKAGE_VERSION}/namespaces/team/packagerevisions`;
    const atPorch = viewsOf((await admin.list(revisions)).body.items);
    expect(await reportOf('--yes', '--same-cluster')).toMatchObject({ code: 0, differences: [] });
    expect(await sluice('repo', 'adopt', 'apps', '-n', 'team', '--yes')).toMatchObject({ code: 0 });
    const identity = await readFile(join(folder, 'data/keys/statement-key'), 'utf8');

    // Stopped first: with such a repository, Porch 1.5.3 was seen to drop all connections.
    await porch[Symbol.asyncDispose]();
    await admin.post(`${REPOSITORIES}/team/repositories`, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'images' } },
      spec: { type: 'oci', oci: { registry: 'registry.example.com/packages' } },
    });
    expect(await reportOf('--yes')).toMatchObject({
      ...{ code: 1, differences: [] },
      repositories: [
        { name: 'apps', action: 'blocked', next: 'remove the cause, and run the command again' },
        { name: 'blueprints', action: 'blocked' },
        { name: 'images', action: 'blocked', message: 'repositories of type oci are not supported' },
      ],
    });

    // Then Sluice takes the place of Porch in this cluster, with the key of the data folder.
    for (const { file: _file, ...definition } of readDefinitions()) {
      const path = `${DEFINITIONS}/${definition.metadata.name}`;
      expect((await admin.apply(path, 'install', definition, '&force=true')).status).toBeLessThan(300);
    }
    await admin.delete(API_SERVICE);
    await using installation = await Installation.create(plane);
    await applyObjects(installation.admin, readManifests('components/git-credentials-everywhere/git-credentials'));
    const secret = { metadata: { name: 'sluice-signing-key' }, stringData: { identity } };
    expect(await admin.post(`/api/v1/namespaces/${NAMESPACE}/secrets`, secret)).toMatchObject({ status: 201 });
    const leader = await installation.start({ options: ['--allow-git-host', '127.0.0.1'] });
    await leader.leading();
    await installation.served();
    const { items } = await eventually(
      async () => (await admin.list(revisions)).body,
      (list) => list.items?.length === atPorch.length,
    );
    expect(viewsOf(items)).toEqual(atPorch);
    const published = items.find(({ metadata: { name } }) => name === 'apps.web.first');
    expect(published?.status).not.toHaveProperty('outOfBand');
  });
});

/** A server of Sluice that reads Git hosts on this machine. */
async function startUp(data: string): Promise<AsyncDisposable & { readonly context: string }> {
  const up = new Up(data, '--allow-git-host', '127.0.0.1');
  await up.said(/https:\/\//);
  return { context: ADMIN_CONTEXT, [Symbol.asyncDispose]: async () => void (await up.end('SIGTERM')) };
}

/** What must not change for the clients of a package revision. */
function viewsOf(items: readonly KubeObject[]) {
  return items
    .map(({ metadata: { name, uid, labels = {}, ownerReferences = [] }, spec }) => {
      const { lifecycle, revision = 0, packageName, workspaceName } = spec as Record<string, unknown>;
      return { name, uid, labels, ownerReferences, lifecycle, revision, packageName, workspaceName };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
