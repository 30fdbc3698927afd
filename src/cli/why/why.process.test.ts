import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { annotate, cli, draft, reasons, register, up, useRepository, type WhyOutput } from './testing.ts';

useRepository();

describe('approval annotations', () => {
  const policy = 'approval.nephio.org/policy';

  test('initial has no effect on a second revision, and the output gives this reason', async () => {
    const first = await draft({ [policy]: 'initial' });
    await up();
    const { stdout } = await cli.run('rpkg', 'get', first);
    expect(stdout).toContain('Published');
    await cli.run('rpkg', 'copy', first, '--workspace', 'v2');
    await annotate('packages.web.v2', { [policy]: 'initial', more: 'x' });
    await up();
    expect(await reasons('packages.web.v2')).toContainEqual({
      reason: 'NotTheFirst',
      message: `${policy}: initial is for the first revision only, and ${first} is Published`,
    });
  });
});

test('a proposed deletion names its proposer and reason, and the placeholder names no last actor', async () => {
  const name = await draft({ a: 'b' });
  for (const step of ['propose', 'approve']) expect((await cli.run('rpkg', step, name)).code).toBe(0);
  await cli.run('rpkg', 'propose-delete', name, '--reason', 'end of life', '--as', 'carl');
  const { stdout } = await cli.run('why', name);
  expect(stdout).toMatch(/last propose-deletion by carl/);
  expect(stdout).toMatch(/it is proposed for deletion since \S+, by carl \(end of life\)/);
  const main = await cli.run('why', 'packages.web.main');
  expect(main.stdout).toContain('the main branch at ');
  expect(main.stdout).not.toContain('last ');
});

test('why requires another approver only of the users who proposed or changed the revision', async () => {
  await register(
    'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: eyes}\nspec: {approval: {forbidSelfApproval: true}}\n',
  );
  const name = await draft({ a: 'b' });
  await cli.run('rpkg', 'propose', name, '--as', 'carl');
  const next = async () => (JSON.parse((await cli.run('why', name, '-o', 'json')).stdout) as WhyOutput).next[0];
  expect(await next()).toContain('--as other-user');
  const { stdout } = await cli.run('why', name);
  expect(stdout).toMatch(/^Changed by: anna \(cli\)$/m);
  expect(stdout).toMatch(/^Approvals: 0 of 1$/m);
  expect(stdout).toContain('  anna changed its content and must not approve it\n');
  expect(stdout).toContain('  carl proposed it and must not approve it\n');
  expect(stdout).toContain('the approval of a user other than anna, carl');
});

test('a user whom a policy names may publish with closed gates and a reason, and why and history keep reporting it', async () => {
  await register(
    'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: p}\nspec: {requiredGates: [{conditionType: Tested, approveOnly: true}], approval: {breakGlass: [oncall]}}\n',
  );
  const name = await draft({ a: 'b' });
  await cli.run('rpkg', 'propose', name);
  const approve = (...words: string[]) => cli.run('rpkg', 'approve', name, '--break-glass', ...words);
  expect((await approve('--as', 'oncall')).stderr).toContain('needs a reason; give one with --reason');
  expect((await approve('--reason', 'why not')).stderr).toContain(
    'no policy permits anna to publish with closed gates',
  );
  expect(await approve('--as', 'oncall', '--reason', 'the site is down')).toMatchObject({
    code: 0,
    stdout: `${name} approved, with the gates as they are (break-glass)\n`,
  });
  expect((await reasons(name)).filter(({ reason }) => reason === 'BreakGlass')).toEqual([
    {
      reason: 'BreakGlass',
      message:
        'oncall published it with closed gates, as a policy lets them (break-glass): Tested; reason: the site is down',
    },
  ]);
  expect((await cli.run('rpkg', 'history', name)).stdout).toContain('approve with closed gates: Tested (break-glass)');
});

test('a delivery target on a branch of packages gets nothing', async () => {
  const name = await draft({ a: 'b' });
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, name);
  await register(
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: home}\nspec: {selector: {}, git: {repo: ${join(cli.folder, 'packages.git')}}}\n`,
  );
  const output = JSON.parse((await cli.run('why', name, '-o', 'json')).stdout) as WhyOutput;
  expect(output.delivery).toEqual([
    { target: 'home', state: 'NotDelivered', message: expect.stringContaining('belongs to the packages of') },
  ]);
});

test('a suspended target keeps what it delivered, and a pin is named', async () => {
  const target = (more: string) =>
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: site}\nspec: {selector: {}, git: {repo: ${join(cli.folder, 'site.git')}}${more}}\n`;
  cli.bare('site.git');
  await register(target(''));
  const name = await draft({ a: 'b' });
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, name);
  await up();
  const deliveryOf = async (of: string) => {
    const output = JSON.parse((await cli.run('why', of, '-o', 'json')).stdout) as WhyOutput;
    return output.delivery;
  };
  await register(target(', suspend: true'));
  expect(await deliveryOf(name)).toMatchObject([
    { state: 'Delivered', message: expect.stringContaining('; nothing is changed while spec.suspend is set') },
  ]);
  await cli.run('rpkg', 'copy', name, '--workspace', 'w2');
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, 'packages.web.w2');
  expect(await deliveryOf('packages.web.w2')).toMatchObject([
    { state: 'NotDelivered', message: 'the target is suspended (spec.suspend); v1 is delivered there' },
  ]);
  await register(target(', pins: [{repository: packages, package: web, revision: 1}]'));
  expect(await deliveryOf('packages.web.w2')).toMatchObject([
    { state: 'OtherRevision', message: 'v1 is delivered there, which spec.pins names' },
  ]);
});

test('with gates: warn, approve prints the closed gates and why keeps reporting them', async () => {
  await cli.run('repo', 'reg', cli.bare('lax.git'), '--gates', 'warn');
  await register(
    'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: p}\nspec: {requiredGates: [{conditionType: Tested, approveOnly: true}], gateDeadlines: [{conditionType: Tested, after: 1h}]}\n',
  );
  await cli.run('rpkg', 'init', 'web', '--repository', 'lax', '--workspace', 'v1');
  expect(await cli.run('rpkg', 'propose', 'lax.web.v1')).toMatchObject({ code: 0, stderr: '' });
  expect(await cli.run('rpkg', 'approve', 'lax.web.v1')).toMatchObject({
    code: 0,
    stdout: 'lax.web.v1 approved\n',
    stderr: 'warning: lax.web.v1: closed gates: Tested (sluice.dev/gates: warn)\n',
  });
  const { stdout } = await cli.run('why', 'lax.web.v1');
  expect(stdout).toMatch(/anna approved it at \S+ while gates were closed: Tested/);
  expect(stdout).not.toContain('deadline');
});

test('a delivered revision whose tag was moved is held, and a draft without its record is reported', async () => {
  await register(
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: site}\nspec: {selector: {}, git: {repo: ${cli.bare('site.git')}}}\n`,
  );
  const name = await draft({ a: 'b' });
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, name);
  await up();
  cli.git(
    'packages.git',
    'update-ref',
    'refs/tags/web/v1',
    cli.git('packages.git', 'commit-tree', '-m', 'moved', 'main^{tree}').trim(),
  );
  await cli.run('rpkg', 'init', 'db', '--repository', 'packages', '--workspace', 'v1');
  cli.git('packages.git', 'update-ref', '-d', 'refs/sluice/records/db/v1');
  const lost = JSON.parse((await cli.run('why', 'packages.db.v1', '-o', 'json')).stdout) as WhyOutput;
  expect(lost.reasons).toContainEqual({
    reason: 'RecordDoesNotCount',
    message: expect.stringMatching(
      /^the record of this draft does not count: its record was removed; affirm the conditions/,
    ),
  });
  await cli.run('rpkg', 'copy', name, '--workspace', 'v2');
  const { stdout } = await cli.run('why', name);
  expect(stdout).toMatch(/site: Held commit [0-9a-f]+: v1 was delivered and does not count any more/);
});

test('why reports a branch that would have the name of another revision', async () => {
  const name = await draft({});
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, name);
  cli.git(
    'packages.git',
    'update-ref',
    'refs/heads/drafts/web/v1',
    cli.git('packages.git', 'rev-parse', 'main').trim(),
  );
  const { stdout } = await cli.run('why', name);
  expect(stdout).toContain('refs/heads/drafts/web/v1 would have the same name and is not shown');
});
