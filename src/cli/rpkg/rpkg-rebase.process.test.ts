import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

const NAME = 'packages.shop.v2';
let cli: CliFixture;

/** The package is published, then copied into a draft. */
beforeEach(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('rpkg', 'init', 'shop', '--repository', 'packages', '--workspace', 'v1');
  const folder = join(cli.folder, 'v1');
  await cli.run('rpkg', 'pull', 'packages.shop.v1', folder);
  await writeFile(join(folder, 'app.yaml'), 'a: 1\n');
  await writeFile(join(folder, 'old.sh'), 'echo old\n');
  await cli.run('rpkg', 'push', 'packages.shop.v1', folder);
  for (const step of ['propose', 'approve']) expect((await cli.run('rpkg', step, 'packages.shop.v1')).code).toBe(0);
  expect((await cli.run('rpkg', 'copy', 'packages.shop.v1', '--workspace', 'v2')).code).toBe(0);
});
afterEach(() => cli[Symbol.asyncDispose]());

/** A commit on main that writes files of the package: path, mode and text. */
function editMain(...files: readonly (readonly [string, '100644' | '100755', string])[]): void {
  const lines = cli.git('packages.git', 'ls-tree', 'main:shop').split('\n');
  const kept = lines.filter((line) => !files.some(([path]) => line.endsWith(`\t${path}`)));
  const made = files.map(([path, mode, text]) => `${mode} blob ${cli.blob('packages.git', text)}\t${path}`);
  const shop = cli.tree('packages.git', `${[...kept, ...made].join('\n')}\n`);
  const root = cli.tree('packages.git', `040000 tree ${shop}\tshop\n`);
  const commit = cli.git('packages.git', 'commit-tree', root, '-p', 'main', '-m', 'Edit of the main branch');
  cli.git('packages.git', 'update-ref', 'refs/heads/main', commit);
}

async function draftFile(path: string, text: string): Promise<void> {
  const folder = join(cli.folder, 'draft');
  await cli.run('rpkg', 'pull', NAME, folder);
  await writeFile(join(folder, path), text);
  expect((await cli.run('rpkg', 'push', NAME, folder)).code).toBe(0);
}

test('the edit of the main branch gets into the draft, which can be approved then, with a warning about what both changed', async () => {
  await draftFile('app.yaml', 'a: 2\n');
  editMain(['app.yaml', '100644', 'a: 3\n'], ['notes.txt', '100644', 'from main\n']);
  await cli.run('rpkg', 'propose', NAME);
  expect((await cli.run('rpkg', 'approve', NAME)).stderr).toContain(`sluice rpkg rebase ${NAME}`);
  const proposed = await cli.run('rpkg', 'rebase', NAME);
  expect(proposed).toMatchObject({ code: 1, stderr: expect.stringContaining(`sluice rpkg reject ${NAME}`) });
  await cli.run('rpkg', 'reject', NAME, '--reason', 'main has changed');
  const made = await cli.run('rpkg', 'rebase', NAME, '--reason', 'the edit is good');
  expect(made).toMatchObject({ code: 0, stdout: `${NAME} rebased\n` });
  expect(made.stderr).toContain('changed on both sides');
  expect(made.stderr).toContain('app.yaml');
  const folder = join(cli.folder, 'rebased');
  await cli.run('rpkg', 'pull', NAME, folder);
  expect(await readFile(join(folder, 'notes.txt'), 'utf8')).toBe('from main\n');
  const { stdout: history } = await cli.run('rpkg', 'history', NAME);
  for (const what of [
    / Merge the main branch \(changed on both sides, and kept as in \S+: app\.yaml\): the edit is good$/m,
    / Edit package$/m,
    / copying previous revision$/m,
  ])
    expect(history).toMatch(what);
  expect(await cli.run('rpkg', 'rebase', NAME)).toMatchObject({
    ...{ code: 0, stdout: `${NAME} has the package of the main branch already\n` },
  });
  expect((await cli.run('rpkg', 'propose', NAME)).code).toBe(0);
  expect(await cli.run('rpkg', 'approve', NAME, '--as', 'ben')).toMatchObject({ code: 0 });
  const ofPublished = await cli.run('rpkg', 'history', NAME);
  expect(ofPublished.stdout).toMatch(/ Merge the main branch .*: the edit is good$/m);
  expect(ofPublished.stdout).toMatch(/ copying previous revision$/m);
  expect(ofPublished.stdout).not.toContain('Edit of the main branch');
});

test('a warning has the value of each field of the draft that the main branch has overwritten', async () => {
  const config = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  key: ${value}\n`;
  await draftFile('c.yaml', config('mine'));
  editMain(['c.yaml', '100644', config('theirs')]);
  expect((await cli.run('rpkg', 'rebase', NAME)).stderr).toContain(
    'warning: overwritten by the main branch: ConfigMap/c data.key (was mine) in c.yaml\n',
  );
});

test('with --keep the files of the draft stay, and a revision that is none or is published is refused', async () => {
  await draftFile('app.yaml', 'a: 2\n');
  editMain(['app.yaml', '100644', 'a: 3\n']);
  expect(await cli.run('rpkg', 'rebase', NAME, '--keep')).toEqual({
    ...{ code: 0, stdout: `${NAME} rebased\n`, stderr: '' },
  });
  const folder = join(cli.folder, 'kept');
  await cli.run('rpkg', 'pull', NAME, folder);
  expect(await readFile(join(folder, 'app.yaml'), 'utf8')).toBe('a: 2\n');
  const published = await cli.run('rpkg', 'rebase', 'packages.shop.v1', NAME);
  expect(published.code).toBe(1);
  expect(published.stdout + published.stderr).toContain('copy it to a new workspace');
  expect((await cli.run('rpkg', 'rebase', 'packages.shop.v3')).stderr).toContain('did you mean');
});

test('executable files of the main branch stay executable, and so do those of the draft', async () => {
  await draftFile('app.yaml', 'a: 2\n');
  editMain(['new.sh', '100755', 'echo new\n'], ['old.sh', '100755', 'echo old\n']);
  expect((await cli.run('rpkg', 'rebase', NAME)).code).toBe(0);
  const modes = (ref: string) => {
    const lines = cli.git('packages.git', 'ls-tree', `${ref}:shop`).split('\n');
    return Object.fromEntries(lines.map((line) => [line.split('\t')[1], line.slice(0, 6)]));
  };
  expect(modes('drafts/shop/v2')).toMatchObject({ 'new.sh': '100755', 'old.sh': '100755', 'app.yaml': '100644' });
  editMain(['old.sh', '100644', 'echo old\n']);
  expect((await cli.run('rpkg', 'rebase', NAME)).code).toBe(0);
  expect(modes('drafts/shop/v2')).toMatchObject({ 'new.sh': '100755', 'old.sh': '100644' });
});
