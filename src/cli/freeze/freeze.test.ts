import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { completeNames } from '../completion/complete-names.ts';
import { cliFixture } from '../testing.ts';

test('a freeze stops approvals, is shown by every command about it, and ends', async () => {
  await using cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('one.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'one', '--workspace', 'v1');
  await cli.run('rpkg', 'propose', 'one.web.v1');
  const started = await cli.run('freeze', '--reason', 'core \u001b[31mrepair', '--name', 'bad');
  expect(started).toMatchObject({ code: 2, stdout: '' });
  expect(await cli.run('freeze', '--reason', 'core repair', '--name', 'core')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^namespace default is frozen until the freeze is ended: core repair\nNext: .*freeze end core/,
    ),
  });
  expect(await completeNames('freezes', 'c', [], { SLUICE_DATA: cli.data })).toEqual(['core']);
  await cli.run('freeze', '--reason', 'year end', '--until', '2h', '--name', 'year', '-A', '--as', 'ben');
  const banner =
    /FROZEN: namespace default is frozen by Freeze default\/core since .* by anna until it is ended \(core repair\)\nFROZEN: all namespaces are frozen by Freeze sluice-system\/year/;
  expect((await cli.run('rpkg', 'get')).stderr).toMatch(banner);
  const targets = await cli.run('target', 'get', '-o', 'json');
  expect(targets.stderr).toMatch(banner);
  expect(JSON.parse(targets.stdout)).toMatchObject({ items: [] });
  expect((await cli.run('rpkg', 'get', '-n', 'team')).stderr).toMatch(/^FROZEN: all namespaces/);
  for (const words of [
    ['rpkg', 'tree'],
    ['rpkg', 'history', 'one.web.v1'],
    ['rpkg', 'diff', 'one.web.v1'],
    ['rpkg', 'pull', 'one.web.v1'],
    ['rpkg', 'reject', 'one.web.v1'],
    ['rpkg', 'propose', 'one.web.v1'],
    ['repo', 'get'],
    ['wave', 'get', '-o', 'json'],
    ['why', 'freeze/core'],
  ])
    expect((await cli.run(...words)).stderr, words.join(' ')).toMatch(banner);
  // The explanation of a revision begins with it.
  const why = await cli.run('why', 'one.web.v1');
  expect(why.stderr).toBe('');
  expect(why.stdout).toMatch(/FROZEN: namespace default/);
  expect(why.stdout).toMatch(/resolved by users who may delete Freeze default\/core/);
  const { reasons } = JSON.parse((await cli.run('why', 'one.web.v1', '-o', 'json')).stdout);
  expect(reasons[0]).toMatchObject({ reason: 'Frozen', since: expect.any(String), resolvedBy: expect.any(String) });
  expect(await cli.run('rpkg', 'approve', 'one.web.v1')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^one.web.v1 failed \(cannot approve one.web.v1: all namespaces are frozen/m),
  });
  const list = await cli.run('freeze', 'get');
  expect(list.stdout).toMatch(/^year +all namespaces +in force .*\ncore +default +in force /m);
  expect(await cli.run('freeze', 'end', 'year')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--all-namespaces'),
  });
  expect(await cli.run('freeze', 'end', 'year', '-A')).toMatchObject({ code: 0, stdout: 'year ended\n' });
  expect(await cli.run('freeze', 'end', 'core')).toMatchObject({ code: 0, stdout: 'core ended\n' });
  expect(await cli.run('rpkg', 'approve', 'one.web.v1')).toMatchObject({ code: 0, stderr: '' });
});

test('marks that reorder text are visible wherever the reason of a freeze is shown, and a name that exists has a next step', async () => {
  await using cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('one.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'one', '--workspace', 'v1');
  await cli.run('rpkg', 'propose', 'one.web.v1');
  expect((await cli.run('freeze', '--reason', 'a \u202eb', '--name', 'core')).code).toBe(0);
  const again = await cli.run('freeze', '--reason', 'c', '--name', 'core');
  expect(again).toMatchObject({ code: 1, stdout: '' });
  expect(again.stderr).toMatch(
    /there is a Freeze "core" in namespace default already; ".*freeze get.*" shows it; .*or end that one first: .*freeze end core/,
  );
  const shown = [
    await cli.run('rpkg', 'approve', 'one.web.v1'),
    await cli.run('why', 'one.web.v1', '-o', 'json'),
    await cli.run('why', 'freeze/core'),
    await cli.run('up', '--until-idle'),
    await cli.run('freeze', 'get'),
  ].map(({ stdout, stderr }) => stdout + stderr);
  for (const text of shown) {
    expect(text).toMatch(/a \\+u202eb/);
    expect(text).not.toContain('\u202e');
  }
});

const RULES = `apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: two}
spec:
  selector: {packages: [web]}
  approval: {automatic: true, quorum: {required: 2, from: [ben, cleo]}}
---
apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: slow}
spec:
  selector: {packages: [app]}
  approval: {soak: {proposed: 1h}}
`;

test('the next step of a revision that a rule blocks is none that would be refused', async () => {
  await using cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('one.git'));
  await writeFile(join(cli.folder, 'rules.yaml'), RULES);
  expect((await cli.run('up', '--until-idle', '--config', join(cli.folder, 'rules.yaml'))).code).toBe(0);
  for (const name of ['web', 'app']) {
    await cli.run('rpkg', 'init', name, '--repository', 'one', '--workspace', 'v1');
    expect((await cli.run('rpkg', 'propose', `one.${name}.v1`)).code).toBe(0);
  }
  const why = async (name: string) => JSON.parse((await cli.run('why', name, '-o', 'json')).stdout);
  const soaking = await why('one.app.v1');
  const { until } = soaking.reasons.find(({ reason }: { reason: string }) => reason === 'BlockedSoak');
  expect(soaking.next).toEqual([`wait until ${until}, then: sluice rpkg approve one.app.v1`]);

  await cli.run('freeze', '--reason', 'core repair', '--name', 'core');
  expect((await cli.run('rpkg', 'approve', 'one.web.v1', '--as', 'ben')).code).toBe(0);
  expect((await why('one.web.v1')).next).toEqual(['sluice rpkg approve one.web.v1 --as other-user']);
  expect((await cli.run('rpkg', 'approve', 'one.web.v1', '--as', 'cleo')).code).toBe(0);
  const approved = await why('one.web.v1');
  expect(approved.approvals).toMatchObject({ needed: 2, given: [{ subject: 'ben' }, { subject: 'cleo' }] });
  expect(approved.reasons.at(-1).message).toMatch(
    /^it waits for the approval of controller:approval \(policy two\) since/,
  );
  expect(approved.next).toEqual(['wait until no rule blocks it; controller:approval approves it then']);
  expect(approved.alternatives[0]).toBe('sluice freeze end core');
  await cli.run('freeze', 'end', 'core');
  expect((await why('one.web.v1')).next).toEqual(['sluice up']);
});

test.each([
  [[], 'a freeze needs a reason'],
  [['--reason', ' '], 'a freeze needs a reason'],
  [['--reason', 'x', '--until', 'tomorrow'], 'is neither a duration such as 2h30m nor a time'],
  [['--reason', 'x', '--until', '2020-01-01T00:00:00Z'], 'has passed already'],
])('freeze %j is refused', async (words, message) => {
  await using cli = await cliFixture();
  expect(await cli.run('freeze', ...words)).toMatchObject({ stderr: expect.stringContaining(message) });
  expect((await cli.run('freeze', 'get', '-A')).stdout).toBe('');
});
