import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
const name = 'packages.web.v1';

beforeAll(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
  const folder = join(cli.folder, 'web');
  await cli.run('rpkg', 'pull', name, folder);
  await writeFile(join(folder, 'cm.yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n');
  expect(await cli.run('rpkg', 'push', name, folder)).toMatchObject({ code: 0 });
});
afterAll(() => cli[Symbol.asyncDispose]());

async function addTarget(target: string, spec: string): Promise<void> {
  const config = join(cli.folder, `${target}.yaml`);
  const head = `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: ${target}}\n`;
  await writeFile(config, `${head}spec: ${spec}\n`);
  // Only the object is needed; no controller runs.
  const up = await cli.run('up', '--config', config, '--no-listen', '--until-idle', '--disable', 'delivery');
  expect(up, up.stderr).toMatchObject({ code: 0 });
}

test('prints the patch of each target on stdout, and on stderr what does not change', async () => {
  expect(await cli.run('rpkg', 'preview', name)).toEqual({
    ...{ code: 0, stdout: '' },
    stderr: `no DeliveryTarget selects ${name}\n`,
  });
  await addTarget('east', `{selector: {}, git: {repo: ${cli.bare('east.git')}, directory: clusters/east}}`);
  const one = await cli.run('rpkg', 'preview', name);
  expect(one).toMatchObject({ code: 0, stderr: '' });
  expect(one.stdout).toMatch(/^diff --git a\/clusters\/east\/web\/cm\.yaml b\/clusters\/east\/web\/cm\.yaml\n/);
  expect(one.stdout).toContain('+  name: web\n');

  await addTarget('west', `{selector: {}, git: {repo: ${cli.bare('west.git')}}}`);
  await addTarget('asleep', `{selector: {}, suspend: true, git: {repo: ${join(cli.folder, 'west.git')}}}`);
  const all = await cli.run('rpkg', 'preview', name);
  expect(all.code).toBe(0);
  expect(all.stdout.match(/^# target .*$/gm)).toEqual([
    `# target east: v1 of ${name} on branch main of ${join(cli.folder, 'east.git')}`,
    `# target west: v1 of ${name} on branch main of ${join(cli.folder, 'west.git')}`,
  ]);
  expect(all.stderr).toBe(
    `warning: target asleep would not deliver v1 of ${name}: nothing is changed while spec.suspend is set\n`,
  );
  expect((await cli.run('rpkg', 'preview', name, '--target', 'east')).stdout).toBe(one.stdout);
  const json = await cli.run('rpkg', 'preview', name, '--target', 'west', '-o', 'json');
  expect(JSON.parse(json.stdout)).toMatchObject({ revision: 1, targets: [{ target: 'west', state: 'Changes' }] });
  expect((await cli.run('rpkg', 'preview', name, '--target', 'west', '-o', 'yaml')).stdout).toContain('target: west\n');
});

test('a target that does not exist is an error, and one that cannot be read is exit code 1', async () => {
  expect(await cli.run('rpkg', 'preview', name, '--target', 'gone')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('deliverytargets.sluice.dev "gone" not found'),
  });
  await addTarget('broken', `{selector: {}, git: {repo: ${join(cli.folder, 'none.git')}}}`);
  expect(await cli.run('rpkg', 'preview', name, '--target', 'broken')).toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: expect.stringContaining('target broken cannot be read'),
  });
});
