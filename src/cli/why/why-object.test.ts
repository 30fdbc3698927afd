import { expect, test } from 'vitest';
import { cli, draft, register, useRepository } from './testing.ts';

useRepository();

const SET = {
  ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'fleet' } },
  spec: {
    upstream: { repo: 'packages', package: 'web' },
    targets: [{ repositories: [{ name: 'packages', packageNames: ['east', 'west'] }] }],
    maxDrafts: 1,
  },
};

test('a set and its variants are explained: what they make, and what they wait for', async () => {
  const name = await draft({ a: 'b' });
  for (const step of ['propose', 'approve']) expect((await cli.run('rpkg', step, name)).code).toBe(0);
  await register(JSON.stringify(SET));
  const { stdout, code } = await cli.run('why', 'packagevariantset/fleet');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^PackageVariantSet fleet {2}in progress \(1 of 2 variants up to date\)$/m);
  expect(stdout).toContain('variants of packages/web for its targets, 1000 at most and with 1 open drafts at most\n');
  expect(stdout).toContain('variants: 2, of which 1 up to date, 1 waiting, 0 failing\n');
  const [, waiting = ''] = /sluice why packagevariant\/(\S+)/.exec(stdout) ?? [];
  expect(stdout).toContain(`  - ${waiting}: waits to open a draft: `);

  const one = await cli.run('why', `packagevariants/${waiting}`, '-o', 'json');
  expect(JSON.parse(one.stdout)).toEqual({
    subject: `PackageVariant ${waiting}`,
    state: 'not ready (Waiting)',
    reasons: [
      expect.stringMatching(/^it keeps packages\/(east|west) up to date with the latest revision of packages\/web$/),
      'it belongs to PackageVariantSet fleet',
      expect.stringMatching(/^waits to open a draft: .* \(since .*\)$/),
    ],
    next: ['packagevariantset/fleet'],
  });
  const other = waiting.endsWith('east') ? 'west' : 'east';
  const current = await cli.run('why', `packagevariant/fleet-packages-${other}`);
  expect(current.stdout).toMatch(/^PackageVariant fleet-packages-\w+ {2}up to date$/m);
  expect(current.stdout).toContain(`  sluice why packages.${other}.packagevariant-1\n`);
});

test('other kinds and missing objects are reported with the next step', async () => {
  expect(await cli.run('why', 'pod/a')).toMatchObject({
    stderr: expect.stringContaining('packagevariant/<name> or packagevariantset/<name>'),
    code: 2,
  });
  expect((await cli.run('why', 'packagevariant/gone')).stderr).toContain('"gone" not found');
});
