import { access, mkdir, writeFile } from 'node:fs/promises';
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
