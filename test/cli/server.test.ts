import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { completeNames } from '../../src/cli/completion/complete-names.ts';
import { type CliFixture, type CliResult, cliFixture, runCli } from '../../src/cli/testing.ts';
import { KubeApi } from '../support/api/kube-api.ts';
import { Up } from '../support/up.ts';

interface OpenApi {
  readonly paths: Record<string, { get?: { parameters?: { name: string }[] } }>;
  readonly components: { readonly schemas: object };
}

let cli: CliFixture;
let up: Up;
beforeAll(async () => {
  cli = await cliFixture();
  up = new Up(cli.data);
  await up.said(/kubectl --kubeconfig/);
  await ok(cli.run('repo', 'reg', cli.bare('shared.git')));
  await ok(cli.run('rpkg', 'init', 'web', '--repository', 'shared', '--workspace', 'v1'));
});
afterAll(async () => {
  up.child.kill('SIGKILL');
  await cli[Symbol.asyncDispose]();
});

const kubeconfig = () => join(cli.data, 'kubeconfig');
/** A command line that names the server by its kubeconfig, not the data folder. */
const remote = (...words: string[]) => runCli([...words, '--kubeconfig', kubeconfig()], { SLUICE_USER: 'anna' });

async function ok(result: Promise<CliResult>, stdout?: string): Promise<CliResult> {
  const given = await result;
  expect(given).toMatchObject({ code: 0, ...(stdout === undefined ? {} : { stdout }) });
  return given;
}

/** Pulls a draft into a new folder. */
async function pulled(name: string, into: string, run = cli.run): Promise<string> {
  const folder = join(cli.folder, into);
  await ok(run('rpkg', 'pull', name, folder));
  return folder;
}

describe('commands on the data folder of a running up use its server', () => {
  const name = 'packages.net.upf.v1';

  test('which -v reports', async () => {
    const { stderr } = await ok(cli.run('repo', 'get', '-v'));
    expect(stderr).toMatch(/^using https:\/\/127\.0\.0\.1:\d+ \("sluice up" on \S+\)$/m);
  });

  test('repositories and packages complete their lifecycle', async () => {
    // Repositories: reg waits until packages can be used; an invalid one is reported at once.
    {
      const reg = await ok(
        cli.run('repo', 'reg', cli.bare('packages.git'), '--description', 'all'),
        'packages created\n',
      );
      expect(reg.stderr).toBe('0 package revisions found\n');
      expect((await ok(cli.run('repo', 'get'))).stdout).toMatch(/^packages +git +Package +True /m);
      const again = await cli.run('repo', 'reg', join(cli.folder, 'packages.git'), '--name', 'other');
      expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('Repository conflict with existing') });
      const gone = await cli.run('repo', 'reg', join(cli.folder, 'gone.git'));
      expect(gone).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^error: gone cannot be used: .*nothing was registered/),
      });
      await ok(cli.run('repo', 'reg', join(cli.folder, 'gone.git'), '--no-wait'), 'gone created\n');
      await expect.poll(async () => (await cli.run('repo', 'get')).stderr).toMatch(/warning: gone: .*gone\.git/);
      await ok(cli.run('repo', 'unreg', 'gone'), 'gone unregistered\n');
      expect((await cli.run('repo', 'get', 'package')).stderr).toContain('did you mean packages?');
    }

    // Init, pull, push: changes by others are not overwritten.
    {
      await ok(
        cli.run('rpkg', 'init', 'net/upf', '--repository', 'packages', '--workspace', 'v1'),
        `${name} created\n`,
      );
      const folder = await pulled(name, 'upf');
      const other = await pulled(name, 'other');
      const metadata = load(await readFile(join(folder, '.KptRevisionMetadata'), 'utf8'));
      // As porchctl writes and reads it.
      expect(metadata).toMatchObject({
        kind: 'KptRevisionMetadata',
        metadata: { name, namespace: 'default', resourceVersion: expect.stringMatching(/^\d+$/) },
      });
      const kptfile = await readFile(join(folder, 'Kptfile'), 'utf8');
      const gated = kptfile.replace('info:\n', 'info:\n  readinessGates:\n    - conditionType: Tested\n');
      await writeFile(join(folder, 'Kptfile'), gated);
      await rm(join(folder, 'README.md'));
      await ok(cli.run('rpkg', 'push', name, folder, '--reason', 'tests: 100% ☂'), `${name} pushed\n`);
      await ok(cli.run('rpkg', 'push', name, folder), `${name} is unchanged\n`);
      const late = await cli.run('rpkg', 'push', name, other);
      expect(late).toMatchObject({ code: 1, stderr: expect.stringContaining('has moved since it was pulled') });
      expect(late.stderr).toContain('(server: https://127.0.0.1:');
      expect((await cli.run('rpkg', 'history', name)).stdout).toMatch(/anna \(api\).*tests: 100% ☂/);
    }

    // Gates, affirmed conditions, approval.
    {
      const refused = await cli.run('rpkg', 'propose', name);
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`see: sluice why ${name}`) });
      const set = () => cli.run('rpkg', 'condition', 'set', name, 'Tested', 'True', '--message', 'ran all');
      await ok(set(), `${name} condition Tested is True\n`);
      const folder = await pulled(name, 'tested');
      await writeFile(join(folder, 'service.yaml'), 'apiVersion: v1\nkind: Service\nmetadata:\n  name: upf\n');
      await ok(cli.run('rpkg', 'push', name, folder));
      // The same message for other content.
      expect((await cli.run('rpkg', 'propose', name)).code).toBe(1);
      const before = cli.git('packages.git', 'rev-parse', 'drafts/net/upf/v1');
      await ok(set());
      expect(cli.git('packages.git', 'rev-parse', 'drafts/net/upf/v1'), 'affirming makes no commit').toBe(before);
      await ok(cli.run('rpkg', 'propose', name, '--reason', 'it is time'), `${name} proposed\n`);
      await ok(cli.run('rpkg', 'propose', name), `${name} is already proposed\n`);
      const other = await cli.run('rpkg', 'approve', name, '--commit', '0'.repeat(40));
      expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('the request is for 0000') });
      await ok(cli.run('rpkg', 'approve', name, '--as', 'boss'), `${name} approved\n`);
      expect((await cli.run('rpkg', 'approve', name)).stderr).toContain('only Proposed packages can be approved');
      expect(cli.git('packages.git', 'tag')).toBe('net/upf/v1');
      const { stdout } = await cli.run('rpkg', 'history', name, '-o', 'json');
      expect((JSON.parse(stdout) as unknown[])[0]).toMatchObject({ by: 'boss', action: 'approve' });
    }

    // Copy, diff, clone, upgrade, reject, deletion.
    {
      const copy = 'packages.net.upf.v2';
      await ok(cli.run('rpkg', 'copy', name, '--workspace', 'v2'), `${copy} created\n`);
      await ok(cli.run('rpkg', 'diff', copy), '');
      await ok(cli.run('rpkg', 'clone', name, 'edge', '--repository', 'packages'), 'packages.edge.v1 created\n');
      const folder = await pulled(copy, 'copy');
      await writeFile(join(folder, 'service.yaml'), 'apiVersion: v1\nkind: Service\nmetadata:\n  name: smf\n');
      await ok(cli.run('rpkg', 'push', copy, folder));
      const diff = await cli.run('rpkg', 'diff', copy);
      expect(diff).toMatchObject({ code: 1, stdout: expect.stringContaining('-  name: upf\n+  name: smf\n') });
      for (const one of [copy, 'packages.edge.v1']) {
        await ok(cli.run('rpkg', 'condition', 'set', one, 'Tested', 'True', '--message', 'ran all'));
        await ok(cli.run('rpkg', 'propose', one));
        await ok(cli.run('rpkg', 'reject', one), `${one} no longer proposed for approval\n`);
        await ok(cli.run('rpkg', 'propose', one));
        await ok(cli.run('rpkg', 'approve', one));
      }
      const found = await ok(cli.run('rpkg', 'upgrade', 'packages.edge.v1', '--discover', 'upstream'));
      expect(found.stdout).toMatch(/^packages\.edge\.v1 +packages +v2$/m);
      await ok(
        cli.run('rpkg', 'upgrade', 'packages.edge.v1', '--workspace', 'v2'),
        'packages.edge.v1 upgraded to packages.edge.v2\n',
      );
      const both = await cli.run('rpkg', 'del', 'packages.edge.v2', copy);
      expect(both).toMatchObject({ code: 1, stdout: 'packages.edge.v2 deleted\n' });
      expect(both.stderr).toContain('must be proposed for deletion');
      await ok(cli.run('rpkg', 'propose-delete', copy), `${copy} proposed for deletion\n`);
      await ok(cli.run('rpkg', 'reject', copy), `${copy} no longer proposed for deletion\n`);
      await ok(cli.run('rpkg', 'propose-delete', copy));
      await ok(cli.run('rpkg', 'del', copy), `${copy} deleted\n`);
    }

    // A sync on request reads what was pushed to the repository.
    {
      const head = cli.git('packages.git', 'rev-parse', 'net/upf/v1^{}');
      cli.git('packages.git', 'update-ref', 'refs/heads/drafts/net/upf/v9', head);
      const sync = await ok(cli.run('repo', 'sync', '--all'));
      expect(sync.stdout).toMatch(/^packages synced \(\d+ package revisions\)$/m);
      await ok(cli.run('rpkg', 'del', 'packages.net.upf.v9'));
    }
  });
});

describe('commands with a kubeconfig use its server', () => {
  test('which acts for its user, or for the user of --as', async () => {
    const name = 'shared.own.v1';
    await ok(remote('rpkg', 'init', 'own', '--repository', 'shared', '--workspace', 'v1'), `${name} created\n`);
    const as = await remote('rpkg', 'propose', name, '--as', 'carl');
    expect(as.stderr).toContain('User "carl" cannot');
    await ok(remote('rpkg', 'propose', name), `${name} proposed\n`);
    expect((await cli.run('rpkg', 'history', name)).stdout).toMatch(/admin \(api\) +propose/);
  });

  test('KUBECONFIG counts only if nothing else is named, and namespaces are separate', async () => {
    const environment = { KUBECONFIG: kubeconfig(), SLUICE_USER: 'anna' };
    const get = await ok(runCli(['rpkg', 'get', '-o', 'name', '-v'], environment));
    expect(get.stdout).toContain('shared.web.v1\n');
    expect(get.stderr).toContain('context "sluice" of');
    const other = await runCli(['rpkg', 'get', '--data', join(cli.folder, 'none')], environment);
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('there is no data folder') });
    expect((await ok(runCli(['rpkg', 'get', '-n', 'empty'], environment))).stderr).toContain('No resources found');
    expect((await ok(runCli(['rpkg', 'get', '-n', 'empty', '-A', '-o', 'name'], environment))).stdout).toBe(get.stdout);
  });

  test('folders that were pulled in the data folder and from the server are the same', async () => {
    const name = 'shared.both.v1';
    await ok(remote('rpkg', 'init', 'both', '--repository', 'shared', '--workspace', 'v1'));
    const folder = await pulled(name, 'both', remote);
    await writeFile(join(folder, 'a.yaml'), 'a: b\n');
    await ok(cli.run('rpkg', 'push', name, folder), `${name} pushed\n`);
    // Binary files too.
    const image = Buffer.from([0xff, 0xd8, 0]);
    await writeFile(join(folder, 'image'), image);
    await ok(remote('rpkg', 'push', name, folder), `${name} pushed\n`);
    const again = await pulled(name, 'both-again', remote);
    expect(await readFile(join(again, 'image'))).toEqual(image);
    await rm(join(again, 'image'));
    await ok(remote('rpkg', 'push', name, again), `${name} pushed\n`);
    expect(await readdir(await pulled(name, 'both-without'))).not.toContain('image');
  });

  test('explanation, history and differences are those of the data folder, as are the raw sub-resources', async () => {
    const copy = join(cli.folder, 'elsewhere.kubeconfig');
    await writeFile(copy, await readFile(kubeconfig(), 'utf8'));
    const name = 'shared.web.v1';
    for (const words of [
      ['why', name, '-o', 'json'],
      ['rpkg', 'history', name, '-o', 'json'],
      ['rpkg', 'diff', name, 'source'],
    ]) {
      const [here, there] = [await cli.run(...words), await runCli([...words, '--kubeconfig', copy])];
      const placed = there.stdout.replaceAll(` --kubeconfig ${copy}`, '');
      expect({ ...there, stdout: placed }).toEqual(here);
      expect(there).toMatchObject({
        stderr: '',
        stdout: expect.stringContaining(words.includes('diff') ? '+++ ' : ':'),
      });
    }
    expect((await runCli(['why', name, '--kubeconfig', copy])).stdout).toContain(`--kubeconfig ${copy}\n`);
    const missing = await runCli(['why', 'shared.web.v7', '--kubeconfig', copy]);
    expect(missing.stderr).toContain('"shared.web.v7" not found; did you mean shared.web.v1?');
  });

  test('read-only sub-resources are documented, authorised by their own names, and accept no writes', async () => {
    const api = await KubeApi.of(kubeconfig());
    onTestFinished(() => api.close());
    const group = '/apis/porch.kpt.dev/v1alpha1';
    const path = `${group}/namespaces/default/packagerevisions/shared.web.v1`;
    const { resources } = (await api.get(group)).body as unknown as { resources: { name: string }[] };
    expect(resources.find((one) => one.name === 'packagerevisions/explain')).toMatchObject({
      ...{ group: 'sluice.dev', version: 'v1alpha1', kind: 'PackageRevisionExplanation', verbs: ['get'] },
    });
    const { paths, components } = (await api.get(`/openapi/v3${group}`)).body as unknown as OpenApi;
    const diff = paths[`${group}/namespaces/{namespace}/packagerevisions/{name}/diff`]?.get;
    expect(diff?.parameters?.map(({ name }) => name)).toContain('with');
    expect(JSON.stringify(components.schemas)).toContain('The difference in the form that git apply reads.');
    for (const name of ['explain', 'history', 'diff', 'preview']) {
      expect((await api.get(`${path}/${name}`)).body).toMatchObject({ metadata: { name: 'shared.web.v1' } });
      expect((await api.put(`${path}/${name}`, {})).status).toBe(405);
      expect((await api.get(path.replace('web', 'gone').concat(`/${name}`))).status).toBe(404);
      const stranger = await api.get(`${path}/${name}`, { 'impersonate-user': 'stranger' });
      expect(stranger.text).toContain(`cannot get resource \\"packagerevisions/${name}\\"`);
    }
  });

  test('a preview shows the content of a target only to a caller who may read the target', async () => {
    const api = await KubeApi.of(kubeconfig());
    onTestFinished(() => api.close());
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
    const meta = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'previewer' } };
    const rules = [{ apiGroups: ['porch.kpt.dev'], resources: ['packagerevisions/preview'], verbs: ['get'] }];
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'previewer' };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'previewer' }];
    const target = {
      ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'DeliveryTarget', metadata: { name: 'secret-site' } },
      spec: { selector: {}, suspend: true, git: { repo: cli.bare('secret-site.git') } },
    };
    const objects = {
      [`${rbac}/roles`]: { ...meta, kind: 'Role', rules },
      [`${rbac}/rolebindings`]: { ...meta, kind: 'RoleBinding', roleRef, subjects },
      '/apis/sluice.dev/v1alpha1/namespaces/default/deliverytargets': target,
    };
    for (const [path, object] of Object.entries(objects)) expect((await api.post(path, object)).status, path).toBe(201);
    const path = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions/shared.web.v1/preview';
    const limited = await api.get(`${path}?target=secret-site`, { 'impersonate-user': 'previewer' });
    expect(limited.body).toMatchObject({
      kind: 'PackageRevisionPreview',
      targets: [{ target: 'secret-site', state: 'Unreadable', reason: 'Forbidden', files: [] }],
    });
    expect(limited.text).not.toContain('secret-site.git');
    const { body } = await api.get(`${path}?target=secret-site`);
    expect(body).toMatchObject({ targets: [{ state: 'Refused', reason: 'Suspended' }] });
    expect((await api.get(`${path}?target=none`)).status).toBe(404);
  });

  test('an unusable kubeconfig is reported with the next step', async () => {
    const none = await runCli(['rpkg', 'get', '--kubeconfig', join(cli.folder, 'none')]);
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no kubeconfig at') });
    const wrong = join(cli.folder, 'wrong');
    const text = await readFile(kubeconfig(), 'utf8');
    await writeFile(wrong, text.replace(/(server: https:\/\/127\.0\.0\.1:)\d+/, '$11'));
    const unreachable = await runCli(['rpkg', 'get', '--kubeconfig', wrong]);
    expect(unreachable).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/cannot connect to .*: no server listens there.*\/wrong/),
    });
    await writeFile(wrong, text.replace(/token: \S+/, 'token: sluice_x'));
    const stranger = await runCli(['repo', 'get', '--kubeconfig', wrong]);
    expect(stranger).toMatchObject({ code: 1, stderr: expect.stringContaining('does not accept the credentials') });
    const context = await runCli(['repo', 'get', '--kubeconfig', kubeconfig(), '--context', 'other']);
    expect(context).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no context "other"') });
    expect((await runCli(['repo', 'get', '--context', 'other', '--data', cli.data])).code).toBe(2);
  });
});

test('groups without the user that they are for are refused and not ignored', async () => {
  const { code, stderr } = await remote('rpkg', 'propose', 'shared.web.v1', '--as-group', 'security');
  expect(code).toBe(2);
  expect(stderr).toContain('a server adds --as-group only to the user of --as');
});

test('condition types are completed from a server whose kubeconfig is not that of a data folder', async () => {
  const copy = join(cli.folder, 'elsewhere.kubeconfig');
  await writeFile(copy, await readFile(kubeconfig(), 'utf8'));
  await ok(cli.run('rpkg', 'init', 'gated', '--repository', 'shared', '--workspace', 'v1'));
  await ok(cli.run('rpkg', 'condition', 'set', 'shared.gated.v1', 'example.com/Tested', 'True'));
  const line = ['rpkg', 'condition', 'set', 'shared.gated.v1', ''];
  expect(await completeNames('conditions', '', line, { KUBECONFIG: copy })).toEqual(['example.com/Tested']);
  expect(await completeNames('targets', '', ['target', 'get', ''], { KUBECONFIG: copy })).toEqual(['secret-site']);
});

test('while it runs, backups and tokens can be created, and nothing can be restored', async () => {
  const file = join(cli.folder, 'backup.db');
  await ok(cli.run('backup', file));
  expect(await cli.run('restore', file)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('stop "sluice up"'),
  });
  const { stdout } = await ok(cli.run('token', 'create', 'ci', '--group', 'readers'));
  const config = join(cli.folder, 'ci.kubeconfig');
  await writeFile(config, stdout);
  const get = async () => runCli(['rpkg', 'get', '-o', 'name', '--kubeconfig', config]);
  // The server checks the file once a second.
  await expect.poll(async () => (await get()).stderr, { timeout: 10_000 }).toContain('User "ci" cannot list');
});

test('a token is created for the server of KUBECONFIG, which package commands use too', async () => {
  const made = await ok(runCli(['token', 'create', 'kim', '-o', 'token'], { KUBECONFIG: kubeconfig() }));
  expect(await readFile(join(cli.data, 'tokens.csv'), 'utf8')).toMatch(/\bkim\b/);
  expect(made.stdout.trim().length).toBeGreaterThan(20);
  const why = await ok(runCli(['why', 'shared.web.v1'], { KUBECONFIG: kubeconfig() }));
  expect(why.stdout).toContain('shared.web.v1  Draft');
  const copy = join(cli.folder, 'copy.kubeconfig');
  await writeFile(copy, await readFile(kubeconfig(), 'utf8'));
  expect(await runCli(['token', 'create', 'kim'], { KUBECONFIG: copy })).toMatchObject({
    stdout: '',
    stderr: expect.stringMatching(/^error: .*copy\.kubeconfig is not the kubeconfig of a data folder.*--data\n$/),
  });
});

test('after the end of the server, commands work on the folder itself', async () => {
  await using own = await cliFixture();
  const server = new Up(own.data);
  onTestFinished(() => void server.child.kill('SIGKILL'));
  await server.said(/kubectl --kubeconfig/);
  await ok(own.run('repo', 'reg', own.bare('packages.git')));
  await ok(own.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1'));
  const folder = join(own.folder, 'goes-on');
  await ok(own.run('rpkg', 'pull', 'packages.web.v1', folder));
  await writeFile(join(folder, 'b.yaml'), 'b: c\n');
  expect(await server.end('SIGINT')).toBe(0);
  await ok(own.run('rpkg', 'push', 'packages.web.v1', folder), 'packages.web.v1 pushed\n');
  expect((await own.run('repo', 'get', '-v')).stderr).toContain(`using the data folder ${own.data}`);
});
