import { expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { rebasedCommit } from '../../../test/support/git/rebased-commit.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP } from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
const WEB = { 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP };

test.each(['merge', 'squash', 'rebase'] as const)(
  'a package that a branch and a hotfix have changed alike is published once: %s',
  async (style) => {
    const at = open();
    await at.policy({ publishOn: 'merge' });
    const head = await at.pull({ ...WEB, 'app/Kptfile': KPTFILE() });
    await at.pull(WEB, { branch: 'hotfix' });
    await at.poll();
    await at.merge(2, 'bob');
    await at.poll();
    await at.poll();
    expect(at.titles(head)['sluice/ready']).toBe('success: 1 package checked: no errors, no closed gates');
    await at.merge(1, 'bob', style);
    await at.poll();
    expect(at.world.store.find('apps.app.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(at.world.store.find('apps.web.merge-2')?.lifecycle).toBe('Published');
    expect(at.world.store.find('apps.web.merge-1')).toBeUndefined();
  },
);

test.each(['before', 'at'] as const)(
  'what a rebased branch takes back of the one below it is published; the host names the base %s that merge',
  async (named) => {
    const at = open();
    await at.policy({ publishOn: 'merge' });
    await at.pull(WEB, { branch: 'first' });
    await at.poll();
    const main = await at.merge(1, 'bob');
    await at.poll();
    const lower = await at.pull({ 'web/map.yaml': null }, { branch: 'lower' });
    writeRef(at.path, 'refs/heads/upper', lower);
    const upper = await at.pull({ 'web/map.yaml': MAP }, { branch: 'upper', onTop: true });
    await at.poll();
    const mergeRebased = async (number: number, head: string, onto: string, base: string) => {
      const commit = rebasedCommit(at.path, onto, head) ?? '';
      writeRef(at.path, 'refs/heads/main', commit);
      at.forge.change(number, { state: 'merged', merged: { commit, by: 'bob', base } });
      await at.world.store.repository('apps').refresh();
      return commit;
    };
    const below = await mergeRebased(2, lower, main, main);
    await mergeRebased(3, upper, below, named === 'before' ? main : below);
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    const published = at.world.store
      .list()
      .filter(({ name, revision }) => revision > 0 && name.startsWith('apps.web.'));
    expect(published.map(({ name, revision }) => [name, revision])).toEqual([
      ['apps.web.merge-1', 1],
      ['apps.web.merge-2', 2],
      ['apps.web.merge-3', 3],
    ]);
  },
);

test.each([
  ['changes', { 'app/Kptfile': KPTFILE() }, 'app'],
  ['takes back what the main branch has', { 'web/map.yaml': null }, 'web'],
])('a branch that was merged into the main branch, and that into it, at once, publishes what it %s', async (...row) => {
  const [, files, changed] = row;
  const at = open();
  await at.policy({ publishOn: 'merge' });
  await at.world.push(at.path, { 'web/Kptfile': KPTFILE() });
  const begun = await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'develop' });
  await at.pull({ 'web/map.yaml': MAP }, { branch: 'other' });
  await at.poll();
  const main = await at.merge(2, 'bob');
  const tree = git(at.path, ['merge-tree', '--write-tree', begun, main]);
  await at.merge(1, 'bob');
  await at.poll();
  // Its user has merged the main branch from before the merge of the branch.
  writeRef(at.path, 'refs/heads/develop', writeCommit(at.path, { tree, parents: [begun, main], message: 'merge\n' }));
  const head = await at.pull(files, { branch: 'develop', onTop: true });
  await at.poll();
  expect(git(at.path, ['merge-base', '--all', 'main', head]).split('\n')).toHaveLength(2);
  expect(at.titles(head)['sluice/ready']).toBe('success: 1 package checked: no errors, no closed gates');
  await at.merge(3, 'bob');
  await at.poll();
  const made = at.world.store.list().filter(({ name }) => name.endsWith('.merge-3'));
  expect(made.map(({ name }) => name)).toEqual([`apps.${changed}.merge-3`]);
});
