import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cliFixture } from '../testing.ts';

test('the first start reports what is wrong, and not what it has not read yet', async () => {
  await using cli = await cliFixture();
  const repository = (name: string, annotations = {}) =>
    JSON.stringify({
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name, annotations } },
      spec: { git: { repo: cli.bare(`${name}.git`) } },
    });
  const set = (name: string, repo: string) =>
    JSON.stringify({
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name } },
      spec: { upstream: { repo, package: 'web' }, targets: [{ repositories: [{ name: 'blueprints' }] }] },
    });
  const config = join(cli.folder, 'config.yaml');
  const objects = [
    repository('blueprints'),
    repository('guard', { 'sluice.dev/policies': 'policies' }),
    set('fleet', 'blueprints'),
    set('misspelt', 'blueprint'),
  ];
  await writeFile(config, objects.join('\n---\n'));
  const { stdout } = await cli.run('up', '--until-idle', '--config', config);
  expect(stdout).not.toContain('not open yet');
  expect(stdout).toMatch(/fleet +UpstreamNotFound: could not find upstream package revision blueprints\/web/);
  expect(stdout).toMatch(
    /misspelt +UpstreamNotFound: repository blueprint is not registered in namespace default; did you mean blueprints\?/,
  );
  expect(stdout).toMatch(/guard +PoliciesInvalid: policies: there is no such folder on branch main/);
});

test('a kind that is misspelt in a configuration is reported with what may have been meant', async () => {
  await using cli = await cliFixture();
  const config = join(cli.folder, 'config.yaml');
  await writeFile(
    config,
    'apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVarient\nmetadata: {name: a}\nspec: {}\n',
  );
  expect(await cli.run('up', '--until-idle', '--config', config)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      'kind: PackageVarient (config.porch.kpt.dev/v1alpha1) is not known; did you mean PackageVariant (config.porch.kpt.dev/v1alpha1)',
    ),
  });
  expect((await cli.run('rpkg', 'upgrade', '--discover')).stderr).toContain(
    "option '--discover <upstream|downstream>' argument missing",
  );
});
