import { join } from 'node:path';
import { expect, test } from 'vitest';
import { completeNames } from '../completion/complete-names.ts';
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

const PLAN = `apiVersion: sluice.dev/v1alpha1
kind: WavePlan
metadata: {name: waves}
spec: {waves: [{name: all, percent: 100}]}
---
apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: office-hours}
spec:
  selector: {packages: [web]}
  requiredGates: [{conditionType: example.com/Tested, approveOnly: true}]
  approval:
    quorum: {required: 2, from: [ben, carla]}
    windows: [{cron: "0 0 29 2 *", duration: 1m, reason: leap days}]
---
apiVersion: sluice.dev/v1alpha1
kind: AnalysisRun
metadata: {name: errors}
spec: {templateRef: {name: error-rate}, scope: {plan: waves, wave: all}}
`;

test('a plan, its targets that wait, a run of an analysis, and a policy are explained', async () => {
  const name = await draft({});
  expect((await cli.run('rpkg', 'propose', name)).code).toBe(0);
  await register(PLAN);
  const plan = await cli.run('why', 'waveplan/waves');
  expect(plan.stdout).toMatch(/^WavePlan waves {2}Running$/m);
  expect(plan.stdout).toContain('  - it approves its targets in the waves all\n');
  expect(plan.stdout).toContain('targets: 1, of which 0 approved, 0 verified, 0 failed, 0 unreachable, 0 skipped\n');
  expect(plan.stdout).toMatch(/^ {2}- wave all: 0 of 1 targets verified; 1 wait for approval, .* \(since \S+Z\)$/m);
  expect(plan.stdout).toMatch(/^ {2}- packages\/web in wave all is Approving since \S+Z: .*example.com\/Tested/m);
  expect(plan.stdout).toContain(`  sluice why ${name}\n`);

  const policy = await cli.run('why', 'packagepolicy/office-hours');
  expect(policy.stdout).toMatch(/^PackagePolicy office-hours {2}in force, forbids approvals now$/m);
  expect(policy.stdout).toContain('  - it applies to packages web\n');
  expect(policy.stdout).toMatch(/permits approvals only in its windows: .*leap days\), until \S+Z; resolved by users/);
  expect(policy.stdout).toContain('  - required gates: example.com/Tested\n');
  expect(policy.stdout).toContain('  - it requires 2 approvals by ben, carla\n');
  expect(policy.stdout).toContain(`  - it selects 0 drafts, and 1 proposed revision: ${name}\n`);
  const run = await cli.run('why', 'analysisruns/errors');
  expect(run.stdout).toContain(
    'it measures the metrics of AnalysisTemplate error-rate for wave all of WavePlan waves\n',
  );
  expect(run.stdout).toContain('  sluice why waveplan/waves\n');
});

test('completion offers revisions, and objects of the kinds once their name has begun', async () => {
  const name = await draft({});
  await register(`${JSON.stringify(SET)}\n---\n${PLAN}`);
  const offered = (current: string) => completeNames('explained', current, [], { SLUICE_DATA: cli.data });
  expect(await offered('pack')).toEqual([
    ...['packagepolicy/lax', 'packagepolicy/office-hours'],
    ...[name, 'packagevariantset/fleet'].sort(),
  ]);
  expect(await offered('')).toEqual([name]);
  expect(await offered('waveplan/w')).toEqual(['waveplan/waves']);
  expect(await offered('analysisrun/')).toEqual(['analysisrun/errors']);
});

test('a name in a selector that does not exist is reported, with what may have been meant', async () => {
  await register(`${JSON.stringify(SET)}
---
apiVersion: sluice.dev/v1alpha1
kind: WavePlan
metadata: {name: misspelt}
spec: {selector: {repositories: [package], variantSet: flet}, waves: [{name: all, percent: 100}]}
---
apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: misspelt}
spec: {selector: {repositories: [packages, packges], variantSets: [fleet, other]}}
`);
  const plan = await cli.run('why', 'waveplan/misspelt');
  expect(plan.stdout).toContain('names the repository package, which is not registered; did you mean packages?');
  expect(plan.stdout).toContain('names the PackageVariantSet flet, which does not exist; did you mean fleet?');
  const { reasons } = JSON.parse((await cli.run('why', 'packagepolicy/misspelt', '-o', 'json')).stdout);
  expect(reasons.filter((reason: string) => reason.startsWith('its selector names'))).toEqual([
    'its selector names the repository packges, which is not registered; did you mean packages?',
    'its selector names the PackageVariantSet other, which does not exist',
  ]);
});

test('other kinds and missing objects are reported with the next step', async () => {
  expect(await cli.run('why', 'pod/a')).toMatchObject({
    stderr: expect.stringMatching(
      /the kinds packagevariant, .*, repository, deliverytarget; other objects are shown by kubectl get pod a -o yaml\n$/,
    ),
    code: 2,
  });
  expect((await cli.run('why', 'PackageVarient/a')).stderr).toContain('did you mean "sluice why packagevariant/a"');
  expect(await cli.run('why', 'packagevariant/gone')).toMatchObject({
    stderr: expect.stringContaining('there is no PackageVariant "gone" in namespace default; there is none'),
    code: 1,
  });
  await register(PLAN);
  expect((await cli.run('why', 'waveplan/wavs')).stderr).toContain('did you mean "sluice why waveplan/waves"?');
  expect((await cli.run('why', 'packagepolicies/office-hour')).stderr).toContain('why packagepolicy/office-hours"?');
});

test('a repository and a delivery target are explained by their conditions, also by their short names', async () => {
  const broken = join(cli.folder, 'gone.git');
  const target = (name: string, repo: string) =>
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: ${name}}\nspec: {selector: {}, git: {repo: ${repo}}}\n---\n`;
  await register(target('site', cli.bare('site.git')) + target('broken', broken));
  for (const words of ['repository/packages', 'repo/packages', 'repositories.config.porch.kpt.dev/packages']) {
    const { stdout, code } = await cli.run('why', words);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Repository packages {2}ready$/m);
    expect(stdout).toMatch(/^ {2}- Ready is True since \S+Z: Repository Ready$/m);
    expect(stdout).toContain('  sluice rpkg get --repository packages');
  }
  const { stdout } = await cli.run('why', 'deliverytarget/site');
  expect(stdout).toMatch(/^DeliveryTarget site {2}delivered$/m);
  expect(stdout).toContain('  - without spec.engine nothing reports whether it is synced and healthy\n');
  const one = await cli.run('why', 'target/broken', '-o', 'json');
  expect(JSON.parse(one.stdout)).toMatchObject({
    state: 'not everything is delivered (Error)',
    reasons: expect.arrayContaining([
      expect.stringMatching(/^Ready is False since \S+Z: there is no Git repository at .*gone\.git; create one with: /),
    ]),
    commands: [expect.stringContaining('sluice target get broken --packages')],
  });
  expect((await cli.run('why', 'repo/package')).stderr).toContain('did you mean "sluice why repository/packages"?');

  await cli.run('repo', 'reg', broken, '--no-wait');
  const unread = await cli.run('why', 'repository/gone');
  expect(unread.stdout).toMatch(/^Repository gone {2}cannot be used$/m);
  expect(unread.stdout).toMatch(/^ {2}- Ready is False since .*gone\.git; create one with: /m);
  expect(unread.stdout).toContain('  sluice repo sync gone');
  // It may have been renamed.
  const moved =
    'if it has another address now: sluice repo unreg gone, and then: sluice repo reg NEW_ADDRESS --name gone';
  expect(unread.stdout).toContain(`  ${moved}`);

  const name = await draft({});
  expect((await cli.run('why', `packagerevision.porch.kpt.dev/${name}`)).stdout).toContain(`${name}  Draft`);
});
