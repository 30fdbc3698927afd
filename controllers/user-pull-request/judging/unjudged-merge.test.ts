import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { writeCommit } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const ONE = 'success: 1 package checked: no errors, no closed gates';
const NONE = 'success: It changes no package';
const LINES = Array.from({ length: 30 }, (_, at) => `  key${at}: value number ${at}\n`).join('');
const LONG = `${MAP}data:\n${LINES}`;
const EDITED = LONG.replace('value number 7', 'another value');

describe('a pull request of a user that a merge of Git would not merge file by file', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(async () => {
    at = open();
    await at.policy({ publishOn: 'merge' });
  });
  async function push(files: Readonly<Record<string, string | null>>): Promise<void> {
    await at.world.push(at.path, files);
    await at.world.store.repository('apps').refresh();
  }
  async function ready(commit: string): Promise<string | undefined> {
    await at.poll();
    return at.titles(commit)['sluice/ready'];
  }
  /** Pushes a commit that merges the main branch into the branch, as Git does. Returns it. */
  async function mergeMain(head: string, branch = 'feature'): Promise<string> {
    const parents = [head, git(at.path, ['rev-parse', 'main']).trim()];
    const tree = git(at.path, ['merge-tree', '--write-tree', ...parents]);
    const commit = writeCommit(at.path, { tree, parents, message: 'Merge\n' });
    git(at.path, ['update-ref', `refs/heads/${branch}`, commit]);
    await at.world.store.repository('apps').refresh();
    const { number = 0 } = at.forge.pulls.find((one) => one.head.branch === branch) ?? {};
    at.forge.change(number, { head: { branch, commit, isSameRepository: true } });
    return commit;
  }

  test('fails once the main branch changes a file that the branch moves into a package', async () => {
    await push({ 'lib/x.yaml': LONG });
    const commit = await at.pull({ 'lib/x.yaml': null, 'web/x.yaml': LONG, 'web/Kptfile': KPTFILE() });
    expect(await ready(commit)).toBe(ONE);
    await push({ 'lib/x.yaml': EDITED });
    expect(await ready(commit)).toMatch(
      /^failure: The main branch has changed lib\/x.yaml, which this branch removes or moves; merge the main branch/,
    );
    expect(await ready(await mergeMain(commit))).toBe(ONE);
    const merged = await at.merge(1, 'bob');
    expect(git(at.path, ['show', `${merged}:web/x.yaml`])).toContain('another value');
    await at.poll();
    expect(at.world.store.get('apps.web.merge-1').outOfBand).toBeUndefined();
  });

  test('fails once the main branch moves a file that the branch changes into a package', async () => {
    await push({ 'lib/x.yaml': LONG, 'web/Kptfile': KPTFILE() });
    const commit = await at.pull({ 'lib/x.yaml': EDITED });
    expect(await ready(commit)).toBe(NONE);
    // As long as it changes no package there is none that the file can have become part of.
    await push({ 'lib/x.yaml': null, 'lib/y.yaml': LONG });
    expect(await ready(commit)).toBe(NONE);
    await push({ 'lib/y.yaml': null, 'web/x.yaml': LONG });
    expect(await ready(commit)).toMatch(
      /^failure: The main branch has removed or moved lib\/x.yaml, which this branch/,
    );
    expect(await ready(await mergeMain(commit))).toBe(ONE);
  });

  test('fails once the main branch changes a package that the branch moves', async () => {
    await push({ 'web/x.yaml': LONG, 'web/Kptfile': KPTFILE() });
    const files = { 'web/x.yaml': null, 'web/Kptfile': null, 'shop/x.yaml': LONG, 'shop/Kptfile': KPTFILE() };
    const commit = await at.pull(files);
    expect(await ready(commit)).toBe('success: 2 packages checked: no errors, no closed gates');
    await push({ 'web/x.yaml': EDITED });
    expect(await ready(commit)).toMatch(/^failure: The main branch has changed web\/x.yaml, which this branch removes/);
  });

  test('is checked again only for what its own files meet, and fails for no other files', async () => {
    await push({ 'docs/a.md': 'one', 'lib/x.yaml': LONG, 'web/Kptfile': KPTFILE() });
    const moves = await at.pull({ 'docs/a.md': null, 'docs/b.md': 'one' });
    const edits = await at.pull({ 'lib/x.yaml': EDITED, 'web/map.yaml': MAP }, { branch: 'edits' });
    expect([await ready(moves), await ready(edits)]).toEqual([NONE, ONE]);
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    at.forge.calls.length = 0;
    await push({ 'lib/other.yaml': LONG, 'api/Kptfile': KPTFILE() });
    await at.poll();
    expect(at.forge.calls).not.toContain('get');
    // It changes no package, so that it has moved nothing into one.
    await push({ 'docs/a.md': 'two' });
    expect(await ready(moves)).toBe(NONE);
    // Both have changed it, and neither has removed it.
    await push({ 'lib/x.yaml': LONG.replace('number 20', 'second 20') });
    expect(await ready(edits)).toBe(ONE);
  });

  test('that changes many files is checked again for each of them', async () => {
    const many = (text: string | null) =>
      Object.fromEntries(Array.from({ length: 150 }, (_, one) => [`lib/${one}.yaml`, text]));
    await push(many(LONG));
    const commit = await at.pull({ ...many(null), 'web/x.yaml': LONG, 'web/Kptfile': KPTFILE() });
    expect(await ready(commit)).toBe(ONE);
    await push({ 'lib/77.yaml': EDITED });
    expect(await ready(commit)).toMatch(/^failure: The main branch has changed lib\/77.yaml, /);
  });

  test('fails once the main branch makes a package above its own, or above files of no package', async () => {
    const commit = await at.pull({ 'team/shop/Kptfile': KPTFILE(), 'team/shop/map.yaml': MAP });
    const plain = await at.pull({ 'base/files/map.yaml': MAP }, { branch: 'plain' });
    expect([await ready(commit), await ready(plain)]).toEqual([ONE, NONE]);
    await push({ 'team/Kptfile': KPTFILE(), 'base/Kptfile': KPTFILE() });
    expect(await ready(commit)).toMatch(
      /^failure: The main branch has the package team now, in which this branch changes files; merge the main branch/,
    );
    expect(await ready(plain)).toMatch(/^failure: The main branch has the package base now/);
    expect(await ready(await mergeMain(commit))).toBe(ONE);
    await at.merge(1, 'bob');
    await at.poll();
    expect(at.world.store.get('apps.team.merge-1').outOfBand).toBeUndefined();
  });

  test('fails while a draft of the folder above leaves no place for its package', async () => {
    const commit = await at.pull({ 'team/shop/Kptfile': KPTFILE(), 'team/shop/map.yaml': MAP });
    expect(await ready(commit)).toBe(ONE);
    const source = { type: 'init', files: new Map([['map.yaml', Buffer.from(MAP)]]) } as const;
    const { name } = await at.world.store.create('apps', { package: 'team', workspace: 'w9', source }, ANNA);
    expect(await ready(commit)).toMatch(/^failure: The merge will not publish the package team\/shop: packages cannot/);
    await at.world.store.update(name, { action: 'delete' }, ANNA);
    expect(await ready(commit)).toBe(ONE);
  });
});
