import { expect, test } from 'vitest';
import { annotate, cli, draft, register, up, useRepository } from './testing.ts';

useRepository();

test('a revision whose manifests are those of the one before is delivered under its own number', async () => {
  await register(
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: site}\nspec: {selector: {}, git: {repo: ${cli.bare('site.git')}}}\n`,
  );
  const name = await draft({ a: 'b' });
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, name);
  await up();
  await cli.run('rpkg', 'copy', name, '--workspace', 'v2');
  await annotate('packages.web.v2', { a: 'c' });
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, 'packages.web.v2');
  await up();
  const { stdout } = await cli.run('why', 'packages.web.v2');
  expect(stdout).toMatch(/site: Delivered commit [0-9a-f]+ \S+ ago: on branch main/);
  expect(cli.git('site.git', 'show', 'main:web/kustomization.yaml')).toContain('"web",2]');
});

test('a change by another writer that the target keeps is explained', async () => {
  const git = `{repo: ${cli.bare('site.git')}, directory: sites/east}`;
  await register(
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: site}\nspec: {selector: {}, drift: Report, git: ${git}}\n`,
  );
  const name = await draft({ a: 'b' });
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, name);
  await up();
  expect((await cli.run('why', name)).stdout).not.toContain('was changed by');
  // Another writer removes everything.
  const empty = cli.git('site.git', 'hash-object', '-t', 'tree', '-w', '/dev/null');
  const commit = cli.git('site.git', 'commit-tree', '-m', 'by hand', '-p', 'main', empty);
  cli.git('site.git', 'update-ref', 'refs/heads/main', commit);
  await up();
  const { stdout } = await cli.run('why', name);
  expect(stdout.split(`sites/east/web (v1) was changed by commit ${commit}`)).toHaveLength(2);
  expect(stdout).toContain('see condition Drifted of target site');
});
