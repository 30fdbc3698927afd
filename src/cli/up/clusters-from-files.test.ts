import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cliFixture } from '../testing.ts';

test('WorkloadClusters in files are the targets of a set, and are injected; a further file is a further target', async () => {
  await using cli = await cliFixture();
  const config = join(cli.folder, 'clusters');
  await mkdir(config);
  const write = (name: string, ...objects: readonly object[]) =>
    writeFile(join(config, `${name}.yaml`), objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  const repository = (name: string, deployment: boolean) => ({
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name } },
    spec: { deployment, git: { repo: cli.bare(`${name}.git`) } },
  });
  const cluster = (name: string, type: string) => ({
    ...{ apiVersion: 'infra.nephio.org/v1alpha1', kind: 'WorkloadCluster' },
    metadata: { name, labels: { 'example.com/type': type } },
    spec: { clusterName: `cluster-of-${name}` },
  });
  await write(
    '1-repositories',
    ...['blueprints', 'east', 'west'].map((name) => repository(name, name !== 'blueprints')),
  );
  await write('2-clusters', cluster('east', 'edge'), cluster('west', 'core'));
  await write('3-set', {
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'fleet' } },
    spec: {
      upstream: { repo: 'blueprints', package: 'web' },
      targets: [
        {
          objectSelector: {
            ...{ apiVersion: 'infra.nephio.org/v1alpha1', kind: 'WorkloadCluster' },
            matchLabels: { 'example.com/type': 'edge' },
          },
          template: { injectors: [{ nameExpr: 'target.name' }] },
        },
      ],
    },
  });
  await cli.run('up', '--until-idle', '--config', config);
  await cli.run('rpkg', 'init', 'web', '--repository', 'blueprints', '--workspace', 'v1');
  const files = join(cli.folder, 'web');
  await cli.run('rpkg', 'pull', 'blueprints.web.v1', files);
  await writeFile(
    join(files, 'site.yaml'),
    'apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: site\n  annotations:\n    kpt.dev/config-injection: required\nspec:\n  clusterName: example\n',
  );
  for (const words of [
    ['push', 'blueprints.web.v1', files],
    ['propose', 'blueprints.web.v1'],
    ['approve', 'blueprints.web.v1', '--as', 'ben'],
  ])
    expect(await cli.run('rpkg', ...words)).toMatchObject({ code: 0 });

  const drafts = async () => {
    const { code, stderr } = await cli.run('up', '--until-idle', '--config', config);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const { stdout } = await cli.run('rpkg', 'get', '-o', 'name');
    return stdout.match(/(east|west)\.web\.packagevariant-\d+/g) ?? [];
  };
  expect(await drafts()).toEqual(['east.web.packagevariant-1']);
  const pulled = join(cli.folder, 'east');
  expect(await cli.run('rpkg', 'pull', 'east.web.packagevariant-1', pulled)).toMatchObject({ code: 0 });
  const site = await readFile(join(pulled, 'site.yaml'), 'utf8');
  expect(site).toContain('clusterName: cluster-of-east');
  expect(site).toContain('kpt.dev/injected-resource: east');

  await write('2-clusters', cluster('east', 'edge'), cluster('west', 'edge'));
  expect(await drafts()).toEqual(['east.web.packagevariant-1', 'west.web.packagevariant-1']);
});
