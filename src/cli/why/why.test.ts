import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli, draft, reasons, register, up, useRepository } from './testing.ts';

useRepository();

describe('approval annotations', () => {
  const policy = 'approval.nephio.org/policy';
  const delay = 'approval.nephio.org/delay';

  test.each([
    [{ [policy]: 'sometimes' }, 'InvalidPolicy', 'use initial or always'],
    [{ [policy]: 'always', [delay]: 'soon' }, 'InvalidDelay', 'use a duration'],
    [{ [policy]: 'always', [delay]: '10h' }, 'Ready', 'not before'],
  ])('%o on a draft is explained', async (annotations, reason, message) => {
    const name = await draft(annotations);
    await up();
    const reported = await reasons(name);
    expect(reported).toContainEqual({ reason, message: expect.stringContaining(message) });
    expect(reported.map((one) => one.reason)).not.toContain('NotMarked');
    await cli.run('rpkg', 'propose', name);
    const proposed = await reasons(name);
    const text = proposed.map((one) => one.message).join('\n');
    expect(text).toContain(message);
    expect(text).toContain(reason === 'Ready' ? 'the approval of controller:approval' : 'the approval of a user');
  });
});

test('packages of other namespaces that keep a revision from its deletion are counted and not named', async () => {
  const name = await draft({ a: 'b' });
  for (const step of ['propose', 'approve']) expect((await cli.run('rpkg', step, name)).code).toBe(0);
  expect((await cli.run('repo', 'reg', cli.bare('far.git'), '-n', 'other')).code).toBe(0);
  const source = `${join(cli.folder, 'packages.git')}/web@web/v1`;
  for (const place of [
    ['far', '-n', 'other'],
    ['packages', '-n', 'default'],
  ]) {
    const made = await cli.run('rpkg', 'clone', source, 'edge', '--repository', ...place);
    expect(made).toMatchObject({ code: 0 });
  }
  expect((await cli.run('rpkg', 'propose-delete', name)).code).toBe(0);
  expect(await reasons(name)).toContainEqual({
    reason: 'InUse',
    message: 'it cannot be deleted while other packages come from it: packages.edge.v1, 1 in other namespaces',
  });
});

test('why reports a commit that was pushed after the proposal', async () => {
  const name = await draft({ a: 'b' });
  await cli.run('rpkg', 'propose', name);
  expect((await reasons(name)).map(({ reason }) => reason)).toEqual(['WaitsForApproval']);
  const tree = cli.git('packages.git', 'rev-parse', 'proposed/web/v1^{tree}');
  const commit = cli.git('packages.git', 'commit-tree', '-m', 'sneak', '-p', 'proposed/web/v1', tree);
  cli.git('packages.git', 'update-ref', 'refs/heads/proposed/web/v1', commit);
  expect(await reasons(name)).toContainEqual({
    reason: 'PushedAfterProposal',
    message: expect.stringContaining(`a push brought commit ${commit.slice(0, 12)}`),
  });
  // What Sluice commits on top of it is no push.
  expect((await cli.run('rpkg', 'condition', 'set', name, 'example.com/Tested', 'True')).code).toBe(0);
  const tip = cli.git('packages.git', 'rev-parse', 'proposed/web/v1');
  expect(tip).not.toBe(commit);
  const author = cli.git('packages.git', 'log', '-1', '--format=%an', commit);
  expect(await reasons(name)).toContainEqual({
    reason: 'PushedAfterProposal',
    message: expect.stringMatching(
      `^a push brought commit ${commit.slice(0, 12)} at .* \\(says: ${author}\\), on which there are later commits up to ${tip.slice(0, 12)};`,
    ),
  });
});

test('content that an unknown user pushed needs two approvals, and each approval reports the count', async () => {
  await register(
    'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: eyes}\nspec: {approval: {forbidSelfApproval: true}}\n',
  );
  const name = await draft({ a: 'b' });
  await cli.run('rpkg', 'propose', name);
  const tree = cli.git('packages.git', 'rev-parse', 'proposed/web/v1^{tree}');
  const pushed = cli.git('packages.git', 'commit-tree', '-m', 'push', '-p', 'proposed/web/v1', tree);
  cli.git('packages.git', 'update-ref', 'refs/heads/proposed/web/v1', pushed);
  const first = await cli.run('rpkg', 'approve', name, '--as', 'berta');
  expect(first).toMatchObject({
    code: 0,
    stdout: `${name} approval 1 of 2 recorded; another user has to approve\n`,
  });
  const { stdout } = await cli.run('why', name);
  expect(stdout).toMatch(/^Changed by: anna \(cli\), an unknown user \(git push\)$/m);
  expect(stdout).toMatch(/^Approvals: 1 of 2, by berta at /m);
  expect(stdout).toContain('2 users must approve it, since content or the proposal was pushed with git by an unknown');
  expect((await cli.run('rpkg', 'approve', name, '--as', 'carl')).stdout).toBe(`${name} approved\n`);
  expect((await cli.run('rpkg', 'approve', name, '--as', 'dora')).stderr).toContain(
    'only Proposed packages can be approved; it is published as v1, approved by carl',
  );
});
