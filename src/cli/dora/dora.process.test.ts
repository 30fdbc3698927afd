import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
let config: string;

beforeAll(async () => {
  cli = await cliFixture();
  config = join(cli.folder, 'conf');
  await mkdir(config);
  const target = (name: string, selector: string) =>
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: ${name}}\nspec: {selector: ${selector}, git: {repo: ${cli.bare(`${name}.git`)}}}\n---\n`;
  await writeFile(join(config, 'targets.yaml'), target('east', '{}') + target('west', '{packages: [none]}'));
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('rpkg', 'init', 'shop', '--repository', 'packages', '--workspace', 'w1');
  await publish('packages.shop.w1');
});
afterAll(() => cli[Symbol.asyncDispose]());

async function publish(name: string): Promise<void> {
  await cli.run('rpkg', 'propose', name);
  expect((await cli.run('rpkg', 'approve', name)).stderr).toBe('');
}

async function deliver(): Promise<void> {
  expect((await cli.run('up', '--until-idle', '--no-listen', '--config', config)).code).toBe(0);
}

test('deliveries and a revert of a running server are counted from Git', async () => {
  await deliver();
  await cli.run('rpkg', 'copy', 'packages.shop.w1', '--workspace', 'w2');
  const folder = join(cli.folder, 'w2');
  await cli.run('rpkg', 'pull', 'packages.shop.w2', folder);
  await writeFile(join(folder, 'cm.yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n');
  await cli.run('rpkg', 'push', 'packages.shop.w2', folder);
  await publish('packages.shop.w2');
  await deliver();
  await cli.run('rpkg', 'revert', 'packages.shop.w2', '--reason', 'checkout fails');
  expect((await cli.run('rpkg', 'approve', 'packages.shop.revert-2')).stderr).toBe('');
  await deliver();

  const { stdout, stderr, code } = await cli.run('dora', '-o', 'json');
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  const { rows, total } = JSON.parse(stdout);
  const figures = { deployments: 3, deploymentsPerDay: 3, judgedChanges: 2, failedChanges: 1, changeFailureRate: 0.5 };
  expect(rows).toEqual([
    { namespace: 'default', target: 'east', from: expect.any(String), ...figures },
    {
      namespace: 'default',
      target: 'west',
      from: expect.any(String),
      deployments: 0,
      judgedChanges: 0,
      failedChanges: 0,
    },
  ]);
  expect(total).toEqual({ from: expect.any(String), ...figures });
});
