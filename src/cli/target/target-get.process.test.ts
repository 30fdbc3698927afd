import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cliFixture } from '../testing.ts';

test('without targets, target get names the next step; one without an engine has no empty cell', async () => {
  await using cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  expect(await cli.run('target', 'get')).toMatchObject({
    ...{ code: 0, stdout: '' },
    stderr: expect.stringMatching(
      /^No targets found in namespace default\. To deliver packages, write a DeliveryTarget /,
    ),
  });
  expect((await cli.run('target', 'get', '-A')).stderr).toContain('No targets found. To');

  const folder = join(cli.folder, 'conf');
  await mkdir(folder);
  await writeFile(
    join(folder, 'target.yaml'),
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: site}\nspec: {selector: {}, git: {repo: ${cli.bare('site.git')}}}\n`,
  );
  const cells = async (...words: string[]) =>
    (await cli.run('target', 'get', '--no-headers', ...words)).stdout.trimEnd().split(/ {3,}/);
  await cli.run('up', '--until-idle', '--config', folder, '--disable', 'delivery');
  expect(await cells()).toEqual([
    ...['site', '0', 'Unknown', '-', '-', '-'],
    expect.stringMatching(/^no delivery was tried yet: .*; without spec\.engine nothing reports whether it is synced$/),
  ]);
  await cli.run('up', '--until-idle');
  const message = 'without spec.engine nothing reports whether it is synced';
  expect(await cells('-A')).toEqual(['default', 'site', '0', 'True', '-', '-', '-', message]);
  expect((await cli.run('target', 'get', '--packages')).stderr).toBe('No packages are delivered\n');
});
