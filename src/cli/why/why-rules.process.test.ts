import { expect, test } from 'vitest';
import { commitFiles } from '../../../test/support/scratch-repository.ts';
import { initRepository } from '../../git/open/open-repository.ts';
import { cli, draft, register, useRepository } from './testing.ts';

useRepository();

const policy = (name: string, spec: string) =>
  `apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: ${name}}\nspec: ${spec}\n`;
const STRICT = policy('strict', '{selector: {packages: [web]}, approval: {quorum: {required: 2, from: [ben, cleo]}}}');
const guardOf = (name: string) => `apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: ${name}, annotations: {sluice.dev/policies: policies}}
spec: {git: {repo: ${JSON.stringify(cli.bare(`${name}.git`))}}}
`;

async function push(repository: string, files: Record<string, string>): Promise<string> {
  const git = await initRepository(`${cli.folder}/${repository}.git`);
  return commitFiles(git, files, Date.now()).finally(() => git.close());
}

test('a policy in a file of a repository is explained, with its place and the state of the branch', async () => {
  const name = await draft({});
  expect((await cli.run('rpkg', 'propose', name)).code).toBe(0);
  await register(guardOf('guard'));
  expect((await cli.run('why', 'packagepolicy/strict')).stderr).toMatch(
    /no PackagePolicy "strict" .*the policies of Repository guard are not valid: policies: there is no such folder/,
  );
  const commit = (await push('guard', { 'policies/strict.yaml': STRICT })).slice(0, 10);

  const found = await cli.run('why', 'packagepolicy/strict');
  expect(found.stdout).toMatch(/^PackagePolicy strict of Repository guard {2}in force$/m);
  expect(found.stdout).toContain(
    `  - it is in policies/strict.yaml of Repository guard as of commit ${commit}; users who may push to branch main can change it, and it can only restrict\n`,
  );
  expect(found.stdout).toContain('  - it requires 2 approvals by ben, cleo\n');
  expect(found.stdout).toContain(`  - it selects 0 drafts, and 1 proposed revision: ${name}\n`);
  expect((await cli.run('why', 'packagepolicy/guard/strict')).stdout).toBe(found.stdout);
  expect((await cli.run('why', 'packagepolicy/strickt')).stderr).toContain(
    'did you mean "sluice why packagepolicy/strict"?',
  );

  // The last valid state stays in force.
  await push('guard', { 'policies/strict.yaml': 'kind: Nonsense\n' });
  await cli.run('repo', 'sync', 'guard');
  const broken = await cli.run('why', 'packagepolicy/strict');
  expect(broken.stdout).toContain('  - it requires 2 approvals by ben, cleo\n');
  expect(broken.stdout).toMatch(
    /the policies of Repository guard are not valid: policies\/strict.yaml:1:.* stay in force$/m,
  );
  const shown = await cli.run('repo', 'get', 'guard', '-o', 'json');
  expect(JSON.parse(shown.stdout).status.conditions).toContainEqual(
    expect.objectContaining({ type: 'sluice.dev/PoliciesValid', status: 'False', reason: 'Invalid' }),
  );
  expect(shown.stderr).toMatch(/^warning: guard: policies\/strict.yaml:1:/m);
});

test('an object comes first, and policies of its name in repositories are next steps', async () => {
  await register(`${guardOf('guard')}---\n${guardOf('other')}---\n${policy('strict', '{autoPropose: true}')}`);
  for (const repository of ['guard', 'other']) await push(repository, { 'policies/strict.yaml': STRICT });
  const { stdout } = await cli.run('why', 'packagepolicy/strict');
  expect(stdout).toMatch(/^PackagePolicy strict {2}in force$/m);
  expect(stdout).toContain('sluice why packagepolicy/guard/strict\n  sluice why packagepolicy/other/strict\n');
  expect((await cli.run('why', 'packagepolicy/other/strict')).stdout).toContain('strict of Repository other');
});

test('a gate that only a policy in a repository requires is known to spec.review.gateChecks', async () => {
  const name = await draft({});
  expect((await cli.run('rpkg', 'condition', 'set', name, 'example.com/Seen', 'True')).code).toBe(0);
  const forge = '{provider: gitea, api: "https://git.invalid/api/v1", secretRef: {name: forge}}';
  const rev = policy('rev', `{review: {forge: ${forge}, gateChecks: [example.com/Tested, example.com/Other]}}`);
  await register(`${guardOf('guard')}---\n${rev}`);
  await push('guard', {
    'policies/strict.yaml': policy('strict', '{requiredGates: [{conditionType: example.com/Tested}]}'),
  });
  const { stdout } = await cli.run('why', 'packagepolicy/rev');
  expect(stdout).toContain('spec.review.gateChecks names example.com/Other, which is a gate of no package');
  expect(stdout).not.toContain('spec.review.gateChecks names example.com/Tested');
});

const TARGET = (site: string) => `apiVersion: sluice.dev/v1alpha1
kind: DeliveryTarget
metadata: {name: edge}
spec: {selector: {}, git: {repo: ${JSON.stringify(site)}}}
---
apiVersion: sluice.dev/v1alpha1
kind: WavePlan
metadata: {name: waves}
spec: {waves: [{name: all, percent: 100, approval: {manual: true}}]}
`;

test('a freeze is explained: what it stops, since when, who started it, how it ends, and what waits', async () => {
  const name = await draft({});
  for (const step of ['propose', 'approve']) expect((await cli.run('rpkg', step, name)).code).toBe(0);
  await cli.run('rpkg', 'copy', name, '--workspace', 'v2');
  await cli.run('freeze', '--reason', 'core repair', '--name', 'core');
  await cli.run('freeze', '--reason', 'year end', '--name', 'year', '--until', '2h', '-A', '--as', 'ben');
  const target = TARGET(cli.bare('site.git'));
  await register(target);
  expect((await cli.run('rpkg', 'propose', 'packages.web.v2')).code).toBe(0);

  const core = await cli.run('why', 'freeze/core');
  expect(core.stdout).toMatch(/^Freeze default\/core {2}in force$/m);
  expect(core.stdout).toMatch(
    /- namespace default is frozen by Freeze default\/core since \S+Z by anna until it is ended \(core repair\)$/m,
  );
  for (const line of [
    'users who may delete Freeze default/core can end it',
    '1 proposed revision cannot be published: packages.web.v2',
    '1 delivery cannot be made: packages.web.v1 to edge',
    '1 wave plan cannot go on: waves',
  ])
    expect(core.stdout).toContain(`  - ${line}\n`);
  expect(core.stdout).toMatch(/\nNext:\n {2}\S*sluice freeze end core( --data \S+)?\n {2}sluice why packages.web.v2\n/);

  const year = JSON.parse((await cli.run('why', 'freezes/year', '-n', 'team', '-o', 'json')).stdout);
  expect(year).toMatchObject({ subject: 'Freeze sluice-system/year', state: 'in force' });
  expect(year.reasons).toContain('1 delivery cannot be made: packages.web.v1 to edge');
  expect(year.commands[0]).toMatch(/sluice freeze end year --all-namespaces/);
  expect((await cli.run('why', 'freeze/cor')).stderr).toContain('did you mean "sluice why freeze/core"?');

  await cli.run('freeze', 'end', 'core');
  await cli.run('freeze', 'end', 'year', '-A');
  await register(target);
  await cli.run('freeze', '--reason', 'again', '--name', 'again');
  expect((await cli.run('why', 'freeze/again')).stdout).toContain('  - 0 deliveries cannot be made\n');
});
