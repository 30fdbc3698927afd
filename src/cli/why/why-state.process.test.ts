import { execFileSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startGitServer } from '../../../test/support/git/git-server.ts';
import { cli, draft, register, up, useRepository, type WhyOutput } from './testing.ts';

useRepository();

test('resolvers are named where the package is their business', async () => {
  const name = await draft({ a: 'b' });
  const resolvers = async () =>
    (JSON.parse((await cli.run('why', name, '-o', 'json')).stdout) as { resolvers: { name: string }[] }).resolvers;
  expect(await resolvers()).toEqual([]);
  const folder = join(cli.folder, 'claims');
  await cli.run('rpkg', 'pull', name, folder);
  const claim =
    'apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPClaim\nmetadata: {name: n3}\nspec: {kind: network, networkInstance: {name: vpc}}\n';
  await writeFile(join(folder, 'claim.yaml'), claim);
  expect((await cli.run('rpkg', 'push', name, folder)).code).toBe(0);
  expect((await resolvers()).map((one) => one.name)).toEqual(['ipam']);
});

test('a published revision is explained from the last sync while the remote is down', async () => {
  cli.bare('far.git');
  cli.git('far.git', 'config', 'http.receivepack', 'true');
  const server = await startGitServer({ root: cli.folder });
  try {
    expect((await cli.run('repo', 'reg', `${server.url}/far.git`)).code).toBe(0);
    await cli.run('rpkg', 'init', 'web', '--repository', 'far', '--workspace', 'v1');
    for (const step of ['propose', 'approve']) expect((await cli.run('rpkg', step, 'far.web.v1')).code).toBe(0);
  } finally {
    await server.close();
  }
  const { code, stdout, stderr } = await cli.run('why', 'far.web.v1');
  expect([code, stdout]).toEqual([0, expect.stringContaining('far.web.v1  Published v1 (latest)')]);
  expect(stderr).toMatch(/^warning: the remote cannot be read \(.*\); this is what was read of it last\n$/);
  expect(await cli.run('rpkg', 'propose-delete', 'far.web.v1')).toMatchObject({ code: 1 });
});

const configMap = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: default}\n';
const site = () =>
  `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: site}\nspec: {selector: {}, git: {repo: ${cli.bare('site.git')}}}\n`;

async function published(path: string): Promise<string> {
  const name = `packages.${path}.v1`;
  await cli.run('rpkg', 'init', path, '--repository', 'packages', '--workspace', 'v1');
  const folder = join(cli.folder, name);
  await cli.run('rpkg', 'pull', name, folder);
  await writeFile(join(folder, 'shared.yaml'), configMap);
  for (const words of [
    ['push', name, folder],
    ['propose', name],
    ['approve', name],
  ])
    expect((await cli.run('rpkg', ...words)).code).toBe(0);
  return name;
}

test('no delivery is predicted that the target refuses', async () => {
  await register(site());
  const file = join(cli.folder, 'own.yaml');
  await writeFile(file, 'a: b\n');
  const blob = cli.git('site.git', 'hash-object', '-w', file);
  const folder = cli.tree('site.git', `100644 blob ${blob}\town.yaml\n`);
  const root = cli.tree('site.git', `040000 tree ${folder}\taaa\n`);
  const commit = cli.git('site.git', 'commit-tree', '-m', 'own', '-p', 'main', root);
  cli.git('site.git', 'update-ref', 'refs/heads/main', commit);
  const name = await published('aaa');
  await up();
  const { delivery } = JSON.parse((await cli.run('why', name, '-o', 'json')).stdout) as WhyOutput;
  expect(delivery).toEqual([
    {
      target: 'site',
      state: 'NotDelivered',
      message: expect.stringMatching(
        /the target refuses it: ForeignFolder: .*; move it away or choose another directory$/,
      ),
    },
  ]);
});

test('for a missing tag the commit is named, and the command that restores it', async () => {
  await register(site());
  const name = await published('aaa');
  await up();
  const commit = cli.git('packages.git', 'rev-parse', 'refs/tags/aaa/v1^{commit}');
  cli.git('packages.git', 'update-ref', '-d', 'refs/tags/aaa/v1');
  const lost = await cli.run('why', name);
  expect(lost).toMatchObject({ code: 1, stderr: expect.stringContaining(`its commit is ${commit}`) });
  const [, command = ''] = /restore it with: git (.*)/.exec(lost.stderr) ?? [];
  execFileSync('git', command.trim().split(' '));
  const { delivery } = JSON.parse((await cli.run('why', name, '-o', 'json')).stdout) as WhyOutput;
  expect(delivery).toMatchObject([{ target: 'site', state: 'Delivered' }]);
});

test.each([
  ['', 1],
  [', above a number that another tag has', 2],
])('a missing tag is reported if a branch with the name of its revision remains%s', async (_, number) => {
  const name = await draft({ a: 'b' });
  if (number > 1) {
    await writeFile(join(cli.folder, 'other'), 'x');
    const blob = cli.git('packages.git', 'hash-object', '-w', join(cli.folder, 'other')).trim();
    cli.git('packages.git', 'update-ref', 'refs/tags/web/v1', blob);
  }
  await cli.run('rpkg', 'propose', name);
  const proposed = cli.git('packages.git', 'rev-parse', 'proposed/web/v1').trim();
  await cli.run('rpkg', 'approve', name);
  const commit = cli.git('packages.git', 'rev-parse', `refs/tags/web/v${number}^{commit}`).trim();
  cli.git('packages.git', 'update-ref', 'refs/heads/proposed/web/v1', proposed);
  cli.git('packages.git', 'update-ref', '-d', `refs/tags/web/v${number}`);
  const output = JSON.parse((await cli.run('why', name, '-o', 'json')).stdout) as WhyOutput;
  expect(output.reasons).toContainEqual({
    reason: 'TagMissing',
    message: expect.stringMatching(
      `^it was published as v${number}, and its tag is missing in the repository while refs/heads/proposed/web/v1 is left; its commit is ${commit}; restore it with: git `,
    ),
  });
  execFileSync('git', output.next[0]?.split(' ').slice(1) ?? []);
  expect((await cli.run('why', name)).stdout).toContain(`Published v${number}`);
});

test('after a rule of the host refused a write, the next step is to change that rule', async () => {
  cli.bare('far.git');
  cli.git('far.git', 'config', 'http.receivepack', 'true');
  const closed = join(cli.folder, 'closed');
  const update = `#!/bin/sh\nif test -e '${closed}'; then echo "main is protected" >&2; exit 1; fi\n`;
  const server = await startGitServer({ root: cli.folder, hooks: { update } });
  try {
    expect((await cli.run('repo', 'reg', `${server.url}/far.git`)).code).toBe(0);
    await cli.run('rpkg', 'init', 'web', '--repository', 'far', '--workspace', 'v1');
    await cli.run('rpkg', 'propose', 'far.web.v1');
    await writeFile(closed, '');
    expect((await cli.run('rpkg', 'approve', 'far.web.v1')).stderr).toContain('main is protected');
    const next = async () =>
      (JSON.parse((await cli.run('why', 'far.web.v1', '-o', 'json')).stdout) as WhyOutput).next[0];
    expect(await next()).toMatch(
      /^permit Sluice's account what the Git host refused, at http:\S+\/far\.git \(branch protection, hooks, rights\), then: \S*sluice rpkg approve far\.web\.v1/,
    );
    await rm(closed);
    expect(await next()).toMatch(/^permit /);
    expect((await cli.run('rpkg', 'approve', 'far.web.v1')).code).toBe(0);
    expect(await next()).toBeUndefined();
  } finally {
    await server.close();
  }
});
