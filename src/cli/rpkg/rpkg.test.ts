import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_COMPARED_FILE_BYTES } from '../../package/model/diff/file-diff.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
beforeAll(async () => {
  cli = await cliFixture();
  const reg = await cli.run('repo', 'reg', cli.bare('packages.git'), '--label', 'tier=test');
  expect(reg).toMatchObject({ code: 0, stdout: 'packages created\n' });
});
afterAll(() => cli[Symbol.asyncDispose]());

const name = 'packages.net.upf.v1';

describe('one package from init to deletion', () => {
  test('init, get, and the error of a second init', async () => {
    const init = await cli.run(
      'rpkg',
      'init',
      'net/upf',
      '--repository',
      'packages',
      '--workspace',
      'v1',
      '--keywords',
      'a,b',
    );
    expect(init).toMatchObject({ code: 0, stdout: `${name} created\n` });
    const { stdout } = await cli.run('rpkg', 'get');
    expect(stdout.split('\n').map((line) => line.trim().split(/\s{2,}/))).toEqual([
      ['NAME', 'PACKAGE', 'WORKSPACENAME', 'REVISION', 'LATEST', 'LIFECYCLE', 'REPOSITORY'],
      [name, 'net/upf', 'v1', '0', 'false', 'Draft', 'packages'],
      [''],
    ]);
    const again = await cli.run('rpkg', 'init', 'net/upf', '--repository', 'packages', '--workspace', 'v1');
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('must be unique') });
    const kptfile = await cli.run('rpkg', 'get', name, '--show-kptfile');
    expect(kptfile.stdout).toMatch(/^apiVersion: kpt.dev\/v1\n/);
  });

  test('pull, change, push; removed files are removed, changes of others are not overwritten', async () => {
    const folder = join(cli.folder, 'upf');
    expect((await cli.run('rpkg', 'pull', name, folder)).code).toBe(0);
    expect(await cli.run('rpkg', 'pull', name, folder)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not empty'),
    });
    const other = join(cli.folder, 'other');
    await cli.run('rpkg', 'pull', name, other);
    await writeFile(join(folder, 'service.yaml'), 'apiVersion: v1\nkind: Service\nmetadata:\n  name: upf\n');
    await rm(join(folder, 'README.md'));
    expect(await cli.run('rpkg', 'push', name, folder)).toMatchObject({ code: 0, stdout: `${name} pushed\n` });
    expect(await cli.run('rpkg', 'push', name, folder)).toMatchObject({ code: 0, stdout: `${name} is unchanged\n` });
    const files = cli.git('packages.git', 'ls-tree', '-r', '--name-only', 'drafts/net/upf/v1');
    expect(files.split('\n')).toEqual(['net/upf/Kptfile', 'net/upf/package-context.yaml', 'net/upf/service.yaml']);
    const backlog = await cli.run('rpkg', 'push', name, other);
    expect(backlog).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/has moved since it was pulled \(from \w{40} to \w{40}, last by anna\)/),
    });
    expect(backlog.stderr).toMatch(/^packages\.net\.upf\.v1 failed \([^\n]*\)\n$/);
    const wrong = await cli.run('rpkg', 'push', 'packages.net.upf.v2', folder);
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('not from packages.net.upf.v2') });
    const list = await cli.run('rpkg', 'pull', name);
    expect(list.stdout).toContain('kind: ResourceList');
    expect(list.stdout).toContain('config.kubernetes.io/path: service.yaml');
  });

  test('binary files are pulled and pushed; a folder of another client, which has none, removes none', async () => {
    const [first, second] = [join(cli.folder, 'image1'), join(cli.folder, 'image2')];
    const stored = () => cli.git('packages.git', 'ls-tree', '-r', '--name-only', 'drafts/net/upf/v1').split('\n');
    await cli.run('rpkg', 'pull', name, first);
    const image = Buffer.from([0xff, 0xd8, 0]);
    await writeFile(join(first, 'image'), image);
    expect(await cli.run('rpkg', 'push', name, first)).toMatchObject({ stdout: `${name} pushed\n` });
    expect(await cli.run('rpkg', 'push', name, first)).toMatchObject({ stdout: `${name} is unchanged\n` });
    await cli.run('rpkg', 'pull', name, second);
    expect(await readFile(join(second, 'image'))).toEqual(image);
    await rm(join(second, 'image'));
    const state = await readFile(join(second, '.KptRevisionMetadata'), 'utf8');
    await writeFile(join(second, '.KptRevisionMetadata'), state.replace(/\n {2}annotations:\n {4}.*\n/, '\n'));
    expect((await cli.run('rpkg', 'push', name, second)).stdout).toBe(`${name} is unchanged\n`);
    expect(stored()).toContain('net/upf/image');
    await rm(join(first, 'image'));
    expect((await cli.run('rpkg', 'push', name, first)).stdout).toBe(`${name} pushed\n`);
    expect(stored()).not.toContain('net/upf/image');
  });

  test('a gate: why, propose refused, condition, propose, approve', async () => {
    const folder = join(cli.folder, 'gated');
    await cli.run('rpkg', 'pull', name, folder);
    const kptfile = await readFile(join(folder, 'Kptfile'), 'utf8');
    await writeFile(
      join(folder, 'Kptfile'),
      kptfile.replace('info:\n', 'info:\n  readinessGates:\n    - conditionType: Tested\n'),
    );
    await cli.run('rpkg', 'push', name, folder, '--reason', 'tests are asked for');
    const why = await cli.run('why', name, '-o', 'json');
    expect(JSON.parse(why.stdout)).toMatchObject({
      lifecycle: 'Draft',
      gates: [
        {
          type: 'Tested',
          open: false,
          state: 'Missing',
          requiredBy: ['Kptfile'],
          settledBy: 'anyone',
          next: expect.stringContaining(`sluice rpkg condition set ${name} Tested True`),
        },
      ],
      reasons: [{ reason: 'GatesClosed' }, { reason: 'NotMarked' }],
    });
    const wide = await cli.run('rpkg', 'get', name, '-o', 'wide');
    expect(wide.stdout).toMatch(/REPOSITORY +READY +GATES +AGE +REASON\n/);
    expect(wide.stdout).toMatch(/ False +0\/1 +\S+ +Tested \(/);
    const refused = await cli.run('rpkg', 'propose', name);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`see: sluice why ${name}`) });
    expect((await cli.run('rpkg', 'condition', 'set', name, 'Tested', 'perhaps')).code).toBe(2);
    const given = await cli.run('rpkg', 'condition', 'set', name, 'Tested', 'true', '--message', 'ran all');
    expect(given.stdout).toBe(`${name} condition Tested is True\n`);
    expect((await cli.run('rpkg', 'propose', name, '--reason', 'it is time')).stdout).toBe(`${name} proposed\n`);
    expect((await cli.run('rpkg', 'propose', name)).stdout).toBe(`${name} is already proposed\n`);
    const open = await cli.run('why', name);
    expect(open.stdout).toContain('1 of 1 open');
    expect(open.stdout).toContain('issued by   anna');
    expect(open.stdout).toContain(`sluice rpkg approve ${name}`);
    const other = await cli.run('rpkg', 'approve', name, '--commit', '0'.repeat(40));
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('the request is for 0000') });
    expect(await cli.run('rpkg', 'approve', name, '--as', 'boss')).toMatchObject({
      code: 0,
      stdout: `${name} approved\n`,
    });
    expect(cli.git('packages.git', 'tag')).toBe('net/upf/v1');
    const published = await cli.run('why', name);
    expect(published.stdout).toContain('Published v1 (latest)');
    expect(published.stdout).toContain('no DeliveryTarget selects it');
  });

  test('history shows who did what and why, newest first', async () => {
    const { stdout } = await cli.run('rpkg', 'history', name, '-o', 'json');
    const entries = JSON.parse(stdout) as { by: string; action: string; reason?: string }[];
    expect(entries[0]).toMatchObject({ by: 'boss', action: 'approve' });
    expect(entries.at(-1)).toMatchObject({ by: 'anna', action: 'init' });
    expect(entries).toContainEqual(expect.objectContaining({ action: 'propose', reason: 'it is time' }));
    expect(entries).toContainEqual(expect.objectContaining({ reason: 'tests are asked for' }));
  });

  test('copy, diff against its source, reject, deletion', async () => {
    const copy = 'packages.net.upf.v2';
    expect((await cli.run('rpkg', 'copy', name, '--workspace', 'v2')).stdout).toBe(`${copy} created\n`);
    expect(await cli.run('rpkg', 'diff', copy)).toMatchObject({ code: 0, stdout: '' });
    expect((await cli.run('why', copy)).stdout).toContain('the content is still that of packages.net.upf.v1');
    const folder = join(cli.folder, 'copy');
    await cli.run('rpkg', 'pull', copy, folder);
    await writeFile(join(folder, 'service.yaml'), 'apiVersion: v1\nkind: Service\nmetadata:\n  name: smf\n');
    await cli.run('rpkg', 'push', copy, folder);
    const diff = await cli.run('rpkg', 'diff', copy);
    expect(diff).toMatchObject({ code: 1, stdout: expect.stringContaining('-  name: upf\n+  name: smf\n') });
    const json = await cli.run('rpkg', 'diff', copy, '-o', 'json');
    const document = {
      from: name,
      to: copy,
      files: [{ path: 'service.yaml', change: 'Modified', patch: diff.stdout }],
    };
    expect([json.code, JSON.parse(json.stdout)]).toEqual([1, document]);
    const yaml = await cli.run('rpkg', 'diff', copy, '-o', 'yaml', '--name-only');
    expect(yaml.stdout).toBe(`from: ${name}\nto: ${copy}\nfiles:\n  - path: service.yaml\n    change: Modified\n`);
    const same = await cli.run('rpkg', 'diff', name, name, '-o', 'json');
    expect([same.code, JSON.parse(same.stdout)]).toEqual([0, { from: name, to: name, files: [] }]);
    expect((await cli.run('rpkg', 'diff', copy, 'latest', '--name-only')).stdout).toBe('service.yaml\n');
    await writeFile(join(folder, 'large.txt'), 'x'.repeat(2 * MAX_COMPARED_FILE_BYTES));
    await cli.run('rpkg', 'push', copy, folder);
    expect(await cli.run('rpkg', 'diff', copy)).toEqual({
      code: 1,
      stdout: diff.stdout,
      stderr: expect.stringContaining(
        `warning: the difference is too large: omitted large.txt; for the whole files: "sluice rpkg pull ${copy} <folder>" and "sluice rpkg pull ${name} <folder>"\n`,
      ),
    });
    expect(await cli.run('rpkg', 'diff', copy, '--name-only')).toMatchObject({ stdout: 'large.txt\nservice.yaml\n' });
    await rm(join(folder, 'large.txt'));
    await cli.run('rpkg', 'push', copy, folder);
    const stale = await cli.run('why', copy);
    expect(stale.stdout).toMatch(/changed since/);
    await cli.run('rpkg', 'condition', 'set', copy, 'Tested', 'True', '--message', 'ran all');
    await cli.run('rpkg', 'propose', copy);
    const rejected = await cli.run('rpkg', 'reject', copy, '--reason', 'wrong name');
    expect(rejected.stdout).toBe(`${copy} no longer proposed for approval\n`);
    expect((await cli.run('why', copy)).stdout).toContain('anna rejected');
    const both = await cli.run('rpkg', 'del', copy, name);
    expect(both).toMatchObject({ code: 1, stdout: `${copy} deleted\n` });
    expect(both.stderr).toContain("proposed for deletion by setting spec.lifecycle to 'DeletionProposed'");
    expect((await cli.run('rpkg', 'propose-delete', name)).stdout).toBe(`${name} proposed for deletion\n`);
    expect((await cli.run('rpkg', 'reject', name)).stdout).toBe(`${name} no longer proposed for deletion\n`);
    await cli.run('rpkg', 'propose-delete', name);
    expect((await cli.run('rpkg', 'del', name)).stdout).toBe(`${name} deleted\n`);
    expect(cli.git('packages.git', 'tag')).toBe('');
  });

  test('a condition type that is no name is refused, and that of reviews, unless the package has it already', async () => {
    const name = 'packages.web.v1';
    const set = (type: string) => cli.run('rpkg', 'condition', 'set', name, type, 'True');
    await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
    for (const type of ['example.com/Can ary', 'example.com/a/b', 'Example.com/A', 'a:b', '/a', 'a/'])
      expect([type, (await set(type)).stderr]).toEqual([
        type,
        expect.stringContaining('must be a name such as Tested'),
      ]);
    expect((await set('sluice.dev/Reviewed')).stderr).toContain('only Sluice sets sluice.dev/Reviewed, by the reviews');
    const folder = join(cli.folder, 'web');
    await cli.run('rpkg', 'pull', name, folder);
    const kptfile = join(folder, 'Kptfile');
    const text = await readFile(kptfile, 'utf8');
    await writeFile(kptfile, text.replace('info:\n', 'info:\n  readinessGates:\n    - conditionType: Can ary\n'));
    expect((await cli.run('rpkg', 'push', name, folder)).code).toBe(0);
    expect((await set('Can ary')).code).toBe(0);
    expect((await set('apps/v1.Deployment.a-long-name.with-dots')).code).toBe(0);
  });

  test('an unknown name is reported with similar ones', async () => {
    await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
    expect((await cli.run('why', 'packages.wbe.v1')).stderr).toContain('did you mean packages.web.v1?');
    expect((await cli.run('why', 'package.web.v1')).stderr).toContain('did you mean packages.web.v1?');
    expect((await cli.run('why', 'web.v1')).stderr).toContain('did you mean packages.web.v1?');
    expect(await cli.run('rpkg', 'condition', 'set', 'packages.web.v1', 'sluice.dev/Ready', 'True')).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('Sluice computes it') },
    });
    expect((await cli.run('repo', 'get', 'package')).stderr).toContain('did you mean packages?');
  });
});
