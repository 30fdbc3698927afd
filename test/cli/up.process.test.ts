import { once } from 'node:events';
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
import { lockHolder } from '../../src/foundation/files/process-lock.ts';
import { sluice } from '../support/cli.ts';
import { Up } from '../support/up.ts';

let cli: CliFixture;
const running = new Set<Up>();
beforeEach(async () => {
  cli = await cliFixture();
});
afterEach(async () => {
  for (const up of running) up.child.kill('SIGKILL');
  running.clear();
  await cli[Symbol.asyncDispose]();
});

function start(...words: string[]): Up {
  const up = new Up(cli.data, ...words);
  running.add(up);
  return up;
}

async function config(text: string): Promise<string> {
  const folder = join(cli.folder, 'conf');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'config.yaml'), text);
  return folder;
}

const repository = (name: string, path: string) =>
  `apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: ${name}}\nspec: {git: {repo: ${path}}}\n---\n`;

describe('up', () => {
  test('a restart reports unchanged revisions in one line, and after a kill what was found and completed', async () => {
    await cli.run('repo', 'reg', cli.bare('packages.git'));
    const first = start('--no-listen');
    await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
    await cli.run('rpkg', 'init', 'db', '--repository', 'packages', '--workspace', 'v1');
    for (const step of ['propose', 'approve']) await cli.run('rpkg', step, 'packages.web.v1');
    await first.said(/packages\.web\.v1 .*Published v1/);
    expect(await first.end('SIGINT')).toBe(0);

    const second = start('--no-listen');
    await second.said(/packages +2 package revisions as before \(/);
    await cli.run('rpkg', 'init', 'new', '--repository', 'packages', '--workspace', 'v1');
    await second.said(/packages\.new\.v1 +found as Draft/);
    expect(second.output).not.toMatch(/packages\.(web|db)\.|Recovery|ended without/);
    await second.end('SIGKILL');

    const third = start('--no-listen');
    await third.said(new RegExp(`process ${second.child.pid}, at work since .*, ended without stopping`));
    await third.said(/recovery finished: 1 repository read; package revisions: \d as before, \d new or changed/);
    expect(third.output).not.toMatch(/packages\.(web|db)\./);
    expect(await third.end('SIGINT')).toBe(0);
  });

  test('a port in use is reported in one line with the next step, before any work begins', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    try {
      for (const option of ['--listen', '--webhook-listen'])
        expect(await sluice(['up', '--data', cli.data, option, `127.0.0.1:${port}`])).toEqual({
          code: 1,
          stdout: '',
          stderr: `error: cannot listen on 127.0.0.1:${port}: the port is in use; stop the process that uses it, or choose another port (0 takes a free one)\n`,
        });
    } finally {
      holder.close();
    }
  });

  test('after kill -9 another process can start', async () => {
    await cli.run('repo', 'reg', cli.bare('packages.git'));
    const killed = start();
    await killed.said(/1 repository/);
    await killed.end('SIGKILL');
    // As in a container that is recreated under another name.
    const output = JSON.parse(await readFile(join(cli.data, 'up-lock.json'), 'utf8')) as object;
    await writeFile(join(cli.data, 'up-lock.json'), JSON.stringify({ ...output, host: 'gone.example' }));
    expect((await sluice(['up', '--data', cli.data, '--until-idle'])).code).toBe(0);
  });

  test('it ends on request, also before a hanging repository was read', async () => {
    // It accepts connections and never responds.
    const silent = createServer();
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const { port } = silent.address() as AddressInfo;
    const connected = once(silent, 'connection');
    const up = start(
      '--allow-git-host',
      '127.0.0.1',
      '--config',
      await config(repository('silent', `http://127.0.0.1:${port}/silent.git`)),
    );
    const [socket] = await connected;
    expect(await up.end('SIGINT')).toBe(0);
    // Its start is no longer required.
    expect(up.output).not.toContain('Serving');
    expect(up.output).not.toContain('kubectl --kubeconfig');
    socket.destroy();
    silent.close();
  });

  test('a resolver from a file issues its conditions', async () => {
    const file = join(cli.folder, 'license.mjs');
    await writeFile(
      file,
      `export default {
        name: 'license',
        claims: ['example.com/License'],
        applies: () => true,
        resolve: ({ files }) => ({
          gates: ['example.com/License'],
          conditions: [{ type: 'example.com/License', status: files.has('LICENSE') ? 'True' : 'False', reason: 'Looked' }],
        }),
      };`,
    );
    await cli.run('repo', 'reg', cli.bare('packages.git'));
    await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
    const up = await sluice(['up', '--data', cli.data, '--until-idle', '--resolver', file]);
    expect(up).toMatchObject({ code: 0, stdout: expect.stringContaining('settled by resolver license') });
    expect((await cli.run('rpkg', 'get', 'packages.web.v1', '--show-kptfile')).stdout).toContain('example.com/License');
    const bad = join(cli.folder, 'bad.mjs');
    await writeFile(bad, 'export default { name: 1 };');
    const refused = await sluice(['up', '--data', cli.data, '--resolver', bad]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('name must be a text') });
  });

  test('data of a repository does not control the terminal', async () => {
    await cli.run('repo', 'reg', cli.bare('packages.git'));
    const steering = '\u001b]0;owned\u0007';
    const kptfile = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}\ninfo:\n  readinessGates: [{conditionType: Tested}]\nstatus:\n  conditions:\n    - {type: Tested, status: "False", message: "\\e]0;owned\\a\\nforged"}\n`;
    const folder = join(cli.folder, 'w');
    await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
    await cli.run('rpkg', 'pull', 'packages.web.v1', folder);
    await writeFile(join(folder, 'Kptfile'), kptfile);
    await writeFile(join(folder, `x${steering}.yaml`), 'a: b\n');
    await cli.run('rpkg', 'push', 'packages.web.v1', folder, '--as', 'anna', '--reason', `because ${steering}`);
    const outputs = [
      await sluice(['up', '--data', cli.data, '--until-idle']),
      await cli.run('why', 'packages.web.v1'),
      await cli.run('why', 'packages.web.v1', '-o', 'yaml'),
      await cli.run('rpkg', 'history', 'packages.web.v1'),
      await cli.run('rpkg', 'get', '-o', 'json'),
      await cli.run('rpkg', 'diff', 'packages.web.v1', '--name-only'),
    ];
    for (const { stdout, stderr } of outputs) expect(stdout + stderr).not.toContain('\u001b');
    expect(outputs[1]?.stdout).toContain('\\x1b]0;owned\\x07\\nforged');
    expect(await readFile(join(folder, 'Kptfile'), 'utf8')).toBe(kptfile);
  });

  test('shares the data folder with commands in other terminals, and not with another up', async () => {
    const up = start();
    await up.said(/no repository is registered yet/);
    expect((await cli.run('repo', 'reg', cli.bare('packages.git'))).code).toBe(0);
    await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
    await up.said(/packages\.web\.v1 +found as Draft, last by anna/);
    const second = await sluice(['up', '--data', cli.data]);
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining(`process ${up.child.pid}`) });
    await cli.run('rpkg', 'propose', 'packages.web.v1');
    await up.said(/packages\.web\.v1 +Draft → Proposed, by anna/);
    const why = await cli.run('why', 'packages.web.v1');
    expect(why.stdout).toContain('it waits for the approval of a user');
    await cli.run('rpkg', 'approve', 'packages.web.v1', '--as', 'bob');
    await up.said(/packages\.web\.v1 +Proposed → Published v1, by bob/);
    const empty = cli.git('packages.git', 'hash-object', '-w', '-t', 'blob', '/dev/null');
    const kptfile = cli.git('packages.git', 'rev-parse', 'main:web/Kptfile');
    const inner = cli.tree('packages.git', `100644 blob ${kptfile}\tKptfile\n100644 blob ${empty}\tsneaked.yaml\n`);
    const tree = cli.tree('packages.git', `040000 tree ${inner}\tweb\n`);
    cli.git(
      'packages.git',
      'update-ref',
      'refs/heads/main',
      cli.git('packages.git', 'commit-tree', '-m', 'sneak', '-p', 'main', tree),
    );
    await up.said(/packages\.web\.main +did not come through the gates: the main branch has other content/);
    expect(await up.end('SIGINT')).toBe(0);
    expect(await lockHolder(join(cli.data, 'up-lock'))).toBeUndefined();
  });

  test('a proposal whose branch was removed is reported, and "sluice why" says how to restore it', async () => {
    const up = start();
    await up.said(/no repository is registered yet/);
    expect((await cli.run('repo', 'reg', cli.bare('packages.git'))).code).toBe(0);
    await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
    await cli.run('rpkg', 'propose', 'packages.web.v1');
    await up.said(/packages\.web\.v1 +.*Proposed/);
    cli.git('packages.git', 'update-ref', '-d', 'refs/heads/proposed/web/v1');
    await up.said(/the proposed revision web\/v1 was removed/);
    const { code, stderr } = await cli.run('why', 'packages.web.v1');
    expect({ code, stderr }).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining('to restore packages.web.v1, restore the branch proposed/web/v1') },
    });
    await up.end('SIGINT');
  });

  test('--until-idle reports what waits; a repository that cannot be read makes it fail, without delay', async () => {
    const folder = await config(
      repository('good', cli.bare('good.git')) + repository('gone', join(cli.folder, 'gone.git')),
    );
    const first = await sluice(['up', '--data', cli.data, '--config', folder, '--until-idle']);
    expect(first.code).toBe(1);
    expect(first.stdout).toContain('Repositories that cannot be used:\n  gone: ');
    await cli.run('rpkg', 'init', 'web', '--repository', 'good', '--workspace', 'v1');
    await cli.run('repo', 'unreg', 'gone');
    const second = await sluice(['up', '--data', cli.data, '--until-idle', '--log', 'json']);
    expect([second.code, second.stderr]).toEqual([0, '']);
    const entries = second.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { event: string });
    expect(entries.at(-1)).toMatchObject({
      event: 'Idle',
      report: { revisions: [{ name: 'good.web.v1', reasons: [{ reason: 'NotMarked' }] }] },
    });
  });

  test('an error in the configuration is reported with file, line and field, and nothing is written', async () => {
    const folder = await config(`${repository('good', '/srv/x.git')}apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: Bad}
spec:
  git:
    repo: ssh://x
    brnch: main
`);
    const { code, stderr } = await sluice(['up', '--data', cli.data, '--config', folder]);
    expect(code).toBe(2);
    const file = join(folder, 'config.yaml');
    expect(stderr).toContain(`${file}:8:12: metadata.name: `);
    expect(stderr).toContain(`${file}:11:5: spec.git.repo: `);
    await expect(access(cli.data)).rejects.toThrow('ENOENT');
    expect((await sluice(['up', '--data', cli.data, '--disable', 'nothing'])).stderr).toContain(
      'there are repository,',
    );
    const prefix = await sluice(['up', '--data', cli.data, '--default-image-prefix', 'https://gcr.io/kpt-fn/']);
    expect([prefix.code, prefix.stderr]).toEqual([
      2,
      'error: --default-image-prefix "https://gcr.io/kpt-fn/" is no registry, such as registry.example.com/functions\n',
    ]);
    await expect(access(cli.data)).rejects.toThrow('ENOENT');
  });
});
