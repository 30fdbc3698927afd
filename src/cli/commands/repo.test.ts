import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
});
afterEach(() => cli[Symbol.asyncDispose]());

describe('registered repositories', () => {
  test('reg, get, sync, unreg; one that is broken does not hide the others', async () => {
    expect((await cli.run('repo', 'reg', cli.bare('one.git'), '--deployment')).code).toBe(0);
    const two = cli.bare('two.git');
    await cli.run('repo', 'reg', two, '--name', 'second', '--description', 'the second');
    await rename(two, `${two}.away`);
    const get = await cli.run('repo', 'get');
    expect(get.code).toBe(0);
    expect(get.stdout).toMatch(/^one +git +Package +true +True /m);
    expect(get.stdout).toMatch(/^second +git +Package +False /m);
    expect(get.stderr).toContain('there is no Git repository');
    const list = await cli.run('rpkg', 'get');
    expect(list).toMatchObject({ code: 1, stderr: expect.stringContaining('repository second') });
    const sync = await cli.run('repo', 'sync', '--all');
    expect(sync).toMatchObject({ code: 1, stdout: 'one synced (0 package revisions)\n' });
    expect((await cli.run('repo', 'unreg', 'second')).stdout).toBe('second unregistered\n');
    expect((await cli.run('repo', 'get', '-o', 'name')).stdout).toBe('repository.config.porch.kpt.dev/one\n');
  });

  test('the same packages are not registered twice', async () => {
    const path = cli.bare('one.git');
    await cli.run('repo', 'reg', path);
    const again = await cli.run('repo', 'reg', `file://${path}`, '--name', 'other', '--directory', 'sub');
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Repository conflict with existing repository: default/one'),
    });
    expect((await cli.run('repo', 'get', '-o', 'name')).stdout).toBe('repository.config.porch.kpt.dev/one\n');
  });

  test('credentials go into a secret and not into the object or any output', async () => {
    const file = join(cli.folder, 'token');
    await writeFile(file, 's3cr3t\n');
    const reg = await cli.run(
      ...['repo', 'reg', 'http://127.0.0.1:9/x.git', '--repo-basic-username', 'ci', '--repo-basic-password-file', file],
    );
    expect(reg).toMatchObject({ code: 1, stderr: expect.stringContaining('is registered, but cannot be used yet') });
    const object = await readFile(
      join(cli.data, 'objects', 'repositories.config.porch.kpt.dev', 'default', 'x.yaml'),
      'utf8',
    );
    expect(object).toContain('name: x-auth');
    const secret = await readFile(join(cli.data, 'objects', 'secrets', 'default', 'x-auth.yaml'), 'utf8');
    expect(secret).toContain(Buffer.from('s3cr3t').toString('base64'));
    expect(reg.stdout + reg.stderr + object).not.toContain('s3cr3t');
    await cli.run('repo', 'unreg', 'x');
    await expect(readFile(join(cli.data, 'objects', 'secrets', 'default', 'x-auth.yaml'))).rejects.toThrow('ENOENT');
  });

  test('what cannot be registered is refused before anything is written', async () => {
    for (const words of [
      ['ssh://git@example.com/x.git'],
      ['https://user:pass@example.com/x.git'],
      ['/tmp/Bad Name.git'],
      ['/tmp/x.git', '--directory', '../..'],
      ['/tmp/x.git', '--branch', 'a..b'],
      ['/tmp/x.git', '--gates', 'perhaps'],
      ['/tmp/x.git', '--repo-basic-username', 'ci'],
    ]) {
      const { code, stdout, stderr } = await cli.run('repo', 'reg', ...words);
      expect([words, code, stdout]).toEqual([words, 2, '']);
      expect(stderr).not.toContain('pass@');
    }
    expect((await cli.run('repo', 'get', '-o', 'name')).stdout).toBe('');
  });

  test('a damaged file is told with its place, and the rest works', async () => {
    await cli.run('repo', 'reg', cli.bare('one.git'));
    await cli.run('repo', 'reg', cli.bare('two.git'));
    const file = join(cli.data, 'objects', 'repositories.config.porch.kpt.dev', 'default', 'two.yaml');
    await writeFile(file, 'apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repo');
    const get = await cli.run('repo', 'get', '-o', 'name');
    expect(get).toMatchObject({ code: 0, stdout: 'repository.config.porch.kpt.dev/one\n' });
    expect(get.stderr).toMatch(/two\.yaml:\d+:\d+: /);
  });

  test('a policy that cannot be read closes a gate, since nobody knows what it asks for', async () => {
    await cli.run('repo', 'reg', cli.bare('one.git'));
    await cli.run('rpkg', 'init', 'web', '--repository', 'one', '--workspace', 'v1');
    const policies = join(cli.data, 'objects', 'packagepolicies.sluice.dev', 'default');
    const { mkdir } = await import('node:fs/promises');
    await mkdir(policies, { recursive: true });
    await writeFile(join(policies, 'strict.yaml'), 'spec: {requiredGates: [');
    const propose = await cli.run('rpkg', 'propose', 'one.web.v1');
    expect(propose).toMatchObject({ code: 1, stderr: expect.stringContaining('sluice.dev.UnreadablePolicy') });
    const forced = await cli.run('rpkg', 'condition', 'set', 'one.web.v1', 'sluice.dev.UnreadablePolicy', 'True');
    expect(forced.code).toBe(1);
    expect((await cli.run('why', 'one.web.v1')).stdout).toContain('repair or remove');
  });
});
