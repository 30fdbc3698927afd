import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { ObjectSet } from '../../app/data/object-set.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
});
afterEach(() => cli[Symbol.asyncDispose]());

async function secretOf(name: string) {
  const objects = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: false });
  try {
    return await objects.client({ name: 'anna' }).find(secretKind, { name });
  } finally {
    await objects.close();
  }
}

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

  test('one that fails is reported once for each request, with the exit code of its error', async () => {
    const empty = join(cli.folder, 'empty.git');
    await cli.run('repo', 'reg', empty, '--no-wait');
    const twice = await cli.run('repo', 'sync', 'empty', 'empty');
    expect(twice.code).toBe(1);
    expect(twice.stderr.match(/^empty failed \(there is no Git repository/gm)).toHaveLength(2);
    const branch = await cli.run('repo', 'reg', cli.bare('one.git'), '--branch', 'other');
    expect(branch).toMatchObject({ code: 2, stderr: expect.stringContaining('branch other does not exist') });
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

  test('credentials are stored in a Secret, not in the object or any output', async () => {
    const file = join(cli.folder, 'token');
    await writeFile(file, 's3cr3t\n');
    const reg = await cli.run(
      ...['repo', 'reg', 'http://127.0.0.1:9/x.git', '--repo-basic-username', 'ci', '--repo-basic-password-file', file],
      '--no-wait',
    );
    expect(reg).toMatchObject({ code: 0, stdout: 'x created\n' });
    const object = (await cli.run('repo', 'get', 'x', '-o', 'yaml')).stdout;
    expect(object).toContain('name: x-auth');
    const secret = () => secretOf('x-auth');
    expect((await secret())?.data?.password).toBe(Buffer.from('s3cr3t').toString('base64'));
    expect(reg.stdout + reg.stderr + object).not.toContain('s3cr3t');
    await cli.run('repo', 'unreg', 'x');
    expect(await secret()).toBeUndefined();
  });

  test('one that fails leaves no files, and no changes of existing ones', async () => {
    const file = join(cli.folder, 'token');
    await writeFile(file, 's3cr3t\n');
    const words = ['http://127.0.0.1:9/x.git', '--repo-basic-password-file', file];
    const failed = await cli.run('repo', 'reg', ...words, '--wait', '20s');
    expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('nothing was registered') });
    expect((await cli.run('repo', 'get', '-o', 'name')).stdout).toBe('');
    expect(await secretOf('x-auth')).toBeUndefined();
    expect((await cli.run('repo', 'reg', ...words, '--no-wait')).code).toBe(0);
    await cli.run('repo', 'unreg', 'x', '--keep-auth-secret');
    await writeFile(file, 'another\n');
    expect((await cli.run('repo', 'reg', ...words)).code).toBe(1);
    expect((await secretOf('x-auth'))?.data?.password).toBe(Buffer.from('s3cr3t').toString('base64'));
    expect(await cli.run('repo', 'reg', ...words, '--wait', 'long')).toMatchObject({ code: 2 });
  });

  test('edit changes the given fields, replaces credentials, and keeps the rest', async () => {
    const file = join(cli.folder, 'token');
    await writeFile(file, 'one\n');
    const ca = join(cli.folder, 'ca');
    await writeFile(ca, 'PEM\n');
    await cli.run('repo', 'reg', cli.bare('one.git'), '--description', 'first', '--label', 'a=b', '--deployment');
    expect(await cli.run('repo', 'edit', 'one', '--label', 'c=d', '--label', 'a-', '--gates', 'warn')).toMatchObject({
      ...{ code: 0, stdout: 'one edited\n', stderr: '' },
    });
    await cli.run('repo', 'edit', 'one', '--repo-basic-password-file', file, '--ca-file', ca);
    await writeFile(file, 'two\n');
    expect((await cli.run('repo', 'edit', 'one', '--repo-basic-password-file', file, '--no-deployment')).code).toBe(0);
    const { stdout } = await cli.run('repo', 'get', 'one', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      metadata: { labels: { c: 'd' }, annotations: { 'sluice.dev/gates': 'warn' } },
      spec: { description: 'first', deployment: false, git: { secretRef: { name: 'one-auth' } } },
    });
    const data = { username: 'git', password: 'two', 'ca.crt': 'PEM' };
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    expect((await secretOf('one-auth'))?.data).toEqual(Object.fromEntries(encoded));
    expect(await cli.run('repo', 'edit', 'one')).toMatchObject({ code: 2 });
    expect(await cli.run('repo', 'edit', 'won', '--gates', 'off')).toMatchObject({
      stderr: expect.stringContaining('did you mean one?'),
    });
  });

  test('for ssh the key and the host keys are stored in the Secret', async () => {
    const file = async (name: string, text: string) => {
      await writeFile(join(cli.folder, name), text);
      return join(cli.folder, name);
    };
    const reg = await cli.run(
      ...['repo', 'reg', 'git@127.0.0.1:team/edge.git', '--repo-ssh-key-file', await file('key', 's3cr3t\n')],
      '--no-wait',
      ...[
        '--known-hosts-file',
        await file('hosts', '127.0.0.1 ssh-ed25519 AAAA\n'),
        '--ca-file',
        await file('ca', 'PEM'),
      ],
    );
    expect(reg.code).toBe(0);
    expect(await cli.run('repo', 'get', 'edge')).toMatchObject({
      stdout: expect.stringMatching(/ADDRESS +REASON +AGE\nedge .* False .* Error +/),
      stderr: expect.stringContaining('private key for ssh: invalid PEM'),
    });
    expect((await cli.run('repo', 'get', '-o', 'wide')).stdout).toMatch(
      /REASON +MESSAGE .*\n.* private key for ssh: invalid PEM/,
    );
    expect(reg.stdout + reg.stderr).not.toContain('s3cr3t');
    const object = (await cli.run('repo', 'get', 'edge', '-o', 'yaml')).stdout;
    expect(object).toContain('repo: git@127.0.0.1:team/edge.git');
    const data = { identity: 's3cr3t', known_hosts: '127.0.0.1 ssh-ed25519 AAAA', 'ca.crt': 'PEM' };
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    expect(await secretOf('edge-auth')).toMatchObject({ type: 'Opaque', data: Object.fromEntries(encoded) });
  });

  test('the secret of a webhook is stored in a Secret that the object names, and is deleted with the object', async () => {
    const file = join(cli.folder, 'hook');
    await writeFile(file, 'too short\n');
    const short = await cli.run('repo', 'reg', cli.bare('one.git'), '--webhook-secret-file', file);
    expect(short).toMatchObject({ code: 2, stderr: expect.stringContaining('at least 16 characters') });
    await writeFile(file, '0123456789abcdef\n');
    const reg = await cli.run(
      'repo',
      'reg',
      join(cli.folder, 'one.git'),
      '--gates',
      'warn',
      '--webhook-secret-file',
      file,
    );
    expect(reg).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('webhooks go to /webhooks/git/default/one,'),
    });
    const object = (await cli.run('repo', 'get', 'one', '-o', 'yaml')).stdout;
    expect(object).toContain('sluice.dev/webhook-secret: one-webhook');
    const secret = () => secretOf('one-webhook');
    expect((await secret())?.data?.token).toBe(Buffer.from('0123456789abcdef').toString('base64'));
    expect(short.stderr + reg.stdout + reg.stderr + object).not.toContain('0123456789abcdef');
    await writeFile(file, 'another one, for another one\n');
    const taken = await cli.run('repo', 'reg', cli.bare('two.git'), '--name', 'one', '--webhook-secret-file', file);
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining('Repository default/one already exists') });
    expect((await secret())?.data?.token).toBe(Buffer.from('0123456789abcdef').toString('base64'));
    await cli.run('repo', 'unreg', 'one');
    expect(await secret()).toBeUndefined();
  });

  test('what cannot be registered is refused before anything is written', async () => {
    for (const words of [
      ['ssh://git:pass@example.com/x.git'],
      ['ssh://-oProxyCommand=id/x.git'],
      ['git@example.com:../x.git'],
      ['git@example.com:x.git', '--repo-ssh-key-file', '/dev/null'],
      ['git@example.com:x.git', '--known-hosts-file', '/dev/null'],
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

  test('the error about a damaged database names the next step, and the file stays unchanged', async () => {
    await cli.run('repo', 'reg', cli.bare('one.git'));
    const file = join(cli.data, 'objects.db');
    await writeFile(file, 'not a database, but still of use'.repeat(100));
    const get = await cli.run('repo', 'get');
    expect(get).toMatchObject({ code: 1, stderr: expect.stringMatching(/objects\.db is damaged: .*sluice restore/) });
    expect(await readFile(file, 'utf8')).toContain('still of use');
  });
});
