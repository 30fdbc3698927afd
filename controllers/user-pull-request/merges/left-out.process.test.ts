import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { rebasedCommit } from '../../../test/support/git/rebased-commit.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';
import { type HostMerge, hostMerges } from '../../pull-request/merged/host-merges.ts';

describe('what a user changes in a merge of the main branch, which a rebase leaves out', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  let counted: HostMerge[];
  let stop: () => void;
  beforeEach(async () => {
    at = open();
    counted = [];
    stop = hostMerges.subscribe((one) => void counted.push(one));
    await at.world.push(at.path, { 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP });
    await at.policy({ publishOn: 'merge' });
  });
  afterEach(() => stop());

  /** A commit with these files is what a merge of the main branch makes of the branch. */
  async function pull(files: Readonly<Record<string, string | null>>): Promise<string> {
    const begun = await at.pull({ 'app/Kptfile': KPTFILE() });
    const main = await at.world.push(at.path, { 'other.txt': 'x\n' });
    const changed = await at.pull(files, { onTop: true });
    const tree = git(at.path, ['merge-tree', '--write-tree', changed, main]);
    const commit = writeCommit(at.path, { tree, parents: [begun, main], message: 'Merge main\n' });
    writeRef(at.path, 'refs/heads/feature', commit);
    at.forge.change(1, { head: { branch: 'feature', commit, isSameRepository: true } });
    await at.world.store.repository('apps').refresh();
    await at.poll();
    return commit;
  }
  /** As the button of GitHub does, without merge commits. */
  async function rebase(head: string): Promise<void> {
    const base = git(at.path, ['rev-parse', 'main']);
    const commit = rebasedCommit(at.path, base, head) ?? '';
    writeRef(at.path, 'refs/heads/main', commit);
    const merged = { commit, by: 'bob', base };
    const { updatedAt: closedAt } = at.forge.change(1, { state: 'merged', merged });
    at.forge.change(1, { closedAt });
    await at.world.store.repository('apps').refresh();
  }
  const events = async () => (await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'));

  test.each([
    [
      'another package',
      { 'db/Kptfile': KPTFILE(), 'db/map.yaml': MAP },
      'db',
      'changes of 2 files (Kptfile, map.yaml)',
    ],
    ['a file of another package', { 'web/map.yaml': `${MAP}data: {a: b}\n` }, 'web', 'changes of 1 file (map.yaml)'],
    ['the removal of a file', { 'web/map.yaml': null }, 'web', 'changes of 1 file (map.yaml)'],
    ['a file of the package that it changes', { 'app/map.yaml': MAP }, 'app', 'changes of 1 file (map.yaml)'],
  ])('is reported once: %s', async (_, files, path, what) => {
    await rebase(await pull(files));
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(at.world.store.find('apps.app.merge-1')?.lifecycle).toBe('Published');
    const text = `the host has left out ${what} of its branch`;
    expect(await events()).toEqual([
      expect.stringMatching(new RegExp(`the merge of ${path} by \\S+/1 is not complete`)),
    ]);
    expect((await events())[0]).toContain(text);
    expect(at.comment(1, 'merged')).toContain(`\`${path}\` is **not complete**: \`${text}`);
    expect(counted.filter(({ result }) => result === 'not_published')).toHaveLength(1);
    at.restart();
    for (let turn = 0; turn < 2; turn += 1) await at.poll();
    expect(await events()).toHaveLength(1);
    expect(counted.filter(({ result }) => result === 'not_published')).toHaveLength(1);
  });

  test.each(['merge', 'squash'] as const)('is published by a %s', async (style) => {
    await pull({ 'db/Kptfile': KPTFILE(), 'web/map.yaml': null });
    await at.merge(1, 'bob', style);
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    const made = at.world.store.list().flatMap(({ name, revision }) => (revision > 0 ? name : []));
    expect(made.sort()).toEqual(['apps.app.merge-1', 'apps.db.merge-1', 'apps.web.merge-1']);
    expect(await events()).toEqual([]);
  });
});
