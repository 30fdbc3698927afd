import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
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
});
