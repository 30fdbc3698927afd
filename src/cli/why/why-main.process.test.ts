import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli, register, up, useRepository } from './testing.ts';

useRepository();

/** Publishes a package with a gate, which anna sets. */
async function publish(path: string): Promise<string> {
  const name = `packages.${path}.v1`;
  await cli.run('rpkg', 'init', path, '--repository', 'packages', '--workspace', 'v1');
  const folder = join(cli.folder, name);
  await cli.run('rpkg', 'pull', name, folder);
  const kptfile = join(folder, 'Kptfile');
  const text = await readFile(kptfile, 'utf8');
  await writeFile(
    kptfile,
    text.replace('info:\n', 'info:\n  readinessGates:\n    - conditionType: example.com/Tested\n'),
  );
  for (const words of [
    ['push', name, folder],
    ['condition', 'set', name, 'example.com/Tested', 'True'],
    ['propose', name],
    ['approve', name],
  ])
    expect(await cli.run('rpkg', ...words)).toMatchObject({ code: 0 });
  return name;
}

const explain = async (name: string) =>
  JSON.parse((await cli.run('why', name, '-o', 'json')).stdout) as {
    gates: { state: string; since?: string; givenBy?: string; givenAt?: string; explanation: string }[];
    reasons: { reason: string; message: string }[];
    next: string[];
    alternatives: string[];
  };

const words = (commands: readonly string[]) => commands.map((command) => command.replace(/^(?:npx )?sluice /, ''));

test('the gates of the package on the main branch have the issuer and the time of the publication with its files', async () => {
  const name = await publish('web');
  const { gates } = await explain(name);
  expect(gates).toMatchObject([{ state: 'Open', givenBy: 'anna', since: expect.any(String) }]);
  expect((await explain('packages.web.main')).gates).toEqual(gates);
  // The head of the branch moves on.
  await publish('other');
  expect((await explain('packages.web.main')).gates).toEqual(gates);
});

test('files of the main branch that no publication has prove no condition, whenever the branch moves', async () => {
  await publish('web');
  await mkdir(join(cli.folder, 'pushed'));
  const clone = join(cli.folder, 'pushed');
  cli.git('packages.git', 'worktree', 'add', '--quiet', '--force', clone, 'main');
  await writeFile(join(clone, 'web', 'pushed.yaml'), 'a: 1\n');
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', clone, '-c', 'user.name=bob', '-c', 'user.email=bob@example.com', ...args]);
  git('add', '.');
  git('commit', '--quiet', '-m', 'past the gates');
  const [gate] = (await explain('packages.web.main')).gates;
  expect(gate).toMatchObject({ state: 'Unproven', explanation: expect.stringContaining('no published revision has') });
  expect(gate).not.toHaveProperty('since');
  expect(gate).not.toHaveProperty('givenBy');
});

test('after the deletion of the last numbered revision every command names how to delete what stays on the main branch', async () => {
  const name = await publish('web');
  const main = 'packages.web.main';
  expect((await explain(main)).next).toEqual([]);
  await cli.run('rpkg', 'propose-delete', name);
  const deleted = await cli.run('rpkg', 'del', name);
  expect(deleted).toMatchObject({ code: 0, stdout: `${name} deleted\n` });
  const [note, ...next] = deleted.stderr.trimEnd().split('\n');
  expect(note).toMatch(/^packages\.web\.main remains: as in Porch, /);
  expect(next).toEqual([`Next: sluice rpkg propose-delete ${main}`, `Next: sluice rpkg del ${main}`]);
  const left = await explain(main);
  expect(left.reasons).toContainEqual({
    reason: 'MainBranch',
    message: expect.stringContaining('no revision of it is published any more'),
  });
  expect(words(left.next)).toEqual([`rpkg propose-delete ${main}`, `rpkg del ${main}`]);
  expect(await cli.run('rpkg', 'propose-delete', main)).toMatchObject({ code: 0 });
  const proposed = await explain(main);
  expect(words(proposed.next)).toEqual([`rpkg del ${main}`]);
  expect(words(proposed.alternatives)).toEqual([`rpkg reject ${main}`]);
  // Nothing of the package is left, so that there is nothing to note.
  expect(await cli.run('rpkg', 'del', main)).toMatchObject({ code: 0, stderr: '' });
  expect((await cli.run('rpkg', 'get', '--name', 'web', '-o', 'name')).stdout).toBe('');
});

test('the next step of a proposal with a closed gate sets the gate, by a user whom a policy permits; a rejection is the alternative', async () => {
  await register(`apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: review}
spec:
  requiredGates: [{conditionType: example.com/Reviewed, approveOnly: true}]
  givers: [{conditionType: example.com/Reviewed, actors: [berta]}]
`);
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
  const name = 'packages.web.v1';
  await cli.run('rpkg', 'propose', name);
  const { reasons, next, alternatives } = await explain(name);
  const set = `rpkg condition set ${name} example.com/Reviewed True --as berta`;
  expect(words(next)).toEqual([set]);
  expect(words(alternatives)).toEqual([`rpkg reject ${name} --reason 'what is wrong'`]);
  expect(reasons).toContainEqual({
    reason: 'GatesClosed',
    message: 'closed gates, so that it cannot be approved yet: example.com/Reviewed (settled by berta (policy review))',
  });
  const { stdout } = await cli.run('why', name);
  expect(stdout).toMatch(
    /\nNext:\n {2}\S*.*sluice rpkg condition set .*\n\nAlternatives:\n {2}.*sluice rpkg reject .*\n$/,
  );
  expect(await cli.run(...set.split(' '))).toMatchObject({ code: 0 });
  expect(words((await explain(name)).next)).toEqual([`rpkg approve ${name}`]);
});

test('the next step of a draft with a closed gate of the Kptfile sets it, and then proposes', async () => {
  const name = 'packages.web.v1';
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
  const folder = join(cli.folder, name);
  await cli.run('rpkg', 'pull', name, folder);
  const kptfile = join(folder, 'Kptfile');
  const text = await readFile(kptfile, 'utf8');
  await writeFile(
    kptfile,
    text.replace('info:\n', 'info:\n  readinessGates:\n    - conditionType: example.com/Tested\n'),
  );
  await cli.run('rpkg', 'push', name, folder);
  expect(words((await explain(name)).next)).toEqual([`rpkg condition set ${name} example.com/Tested True`]);
  await cli.run('rpkg', 'condition', 'set', name, 'example.com/Tested', 'True');
  expect(words((await explain(name)).next)).toEqual([`rpkg propose ${name}`]);
});

test('before a gate is set or the revision is published, files are repaired that no target can deliver; up names the same step', async () => {
  await register(`apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: review}
spec:
  requiredGates: [{conditionType: example.com/Reviewed, approveOnly: true}]
---
apiVersion: sluice.dev/v1alpha1
kind: DeliveryTarget
metadata: {name: site}
spec: {selector: {}, git: {repo: ${cli.bare('site.git')}}}
`);
  const name = 'packages.web.v1';
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
  const folder = join(cli.folder, name);
  await cli.run('rpkg', 'pull', name, folder);
  await writeFile(join(folder, 'deployment.yaml'), 'a: [\n');
  await cli.run('rpkg', 'push', name, folder);
  await cli.run('rpkg', 'propose', name);
  await up();
  const { reasons, next } = await explain(name);
  expect(reasons).toContainEqual(expect.objectContaining({ reason: 'Undeliverable' }));
  const repair = [`rpkg pull ${name} web-v1`, 'edit the files in web-v1', `rpkg push ${name} web-v1`];
  expect(words(next).slice(0, 4)).toEqual([
    `rpkg reject ${name} --reason 'sluice.dev/Deliverable is False'`,
    ...repair,
  ]);
  const next0 = next[0] ?? '';
  expect((await up()).stdout).toContain(`    next: ${next0}\n`);
});
