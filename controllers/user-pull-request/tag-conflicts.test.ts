import { beforeEach, expect, test } from 'vitest';
import { git, readRef } from '../../test/support/git/git-cli.ts';
import { writeCommit, writeObject, writeRef } from '../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(() => {
  at = open();
});

const main = () => readRef(at.path, 'refs/heads/main') ?? '';

test.each([
  ['its first version', 'odd/v1', main, 'odd/v2'],
  ['a name below that', 'odd/v1/x', main, 'odd/v2'],
  ['its first version, on a file', 'odd/v1', () => writeObject(at.path, 'blob', 'x'), 'odd/v2'],
  ['a version that is no number', 'odd/v9007199254740991', main, 'odd/v1'],
])('a merged package with a tag of %s gets the next one that is free', async (_, tag, target, published) => {
  await at.policy({ publishOn: 'merge' });
  writeRef(at.path, `refs/tags/${tag}`, target());
  await at.world.store.repository('apps').refresh();
  await at.pull({ 'odd/Kptfile': KPTFILE(), 'odd/a.yaml': MAP }, { branch: 'one' });
  await at.pull({ 'web/Kptfile': KPTFILE(), 'web/a.yaml': MAP }, { branch: 'two' });
  await at.poll();
  for (const number of [1, 2]) {
    await at.merge(number, 'bob');
    await at.poll();
  }
  await at.poll();
  expect(git(at.path, ['tag']).trim().split('\n').sort()).toEqual([tag, published, 'web/v1'].sort());
  expect(await at.world.events('apps')).toEqual([]);
});

test('a merged package without a number above its tags is reported, and later merges do not wait for it', async () => {
  await at.policy({ publishOn: 'merge' });
  await at.pull({ 'odd/Kptfile': KPTFILE(), 'odd/a.yaml': MAP }, { branch: 'one' });
  await at.poll();
  await at.merge(1, 'bob');
  await at.poll();
  writeRef(at.path, 'refs/tags/odd/v999999999', main());
  await at.world.store.repository('apps').refresh();
  await at.pull({ 'odd/b.yaml': MAP }, { branch: 'two' });
  await at.pull({ 'web/Kptfile': KPTFILE(), 'web/a.yaml': MAP }, { branch: 'three' });
  await at.poll();
  for (const number of [2, 3]) {
    at.clock.advance(2000);
    await at.merge(number, 'bob');
  }
  for (let turn = 0; turn < 3; turn += 1) await at.poll();
  expect(at.world.store.find('apps.web.merge-3')).toMatchObject({ lifecycle: 'Published' });
  expect(await at.world.events('apps')).toEqual([
    expect.stringMatching(/^MergeNotPublished: .*refs\/tags\/odd\/v999999999 leaves no number for /),
  ]);
});

test('a tag that claims the workspace of a merge does not pass for its publication', async () => {
  await at.policy({ publishOn: 'merge' });
  const first = await at.pull({ 'web/Kptfile': KPTFILE() });
  const head = writeCommit(at.path, {
    tree: git(at.path, ['rev-parse', `${first}^{tree}`]),
    parents: [main()],
    message: 'web\n\nkpt:{"package":"web","workspaceName":"merge-1","revision":"v1"}\n',
  });
  writeRef(at.path, 'refs/heads/feature', head);
  at.forge.change(1, { head: { branch: 'feature', commit: head, isSameRepository: true } });
  await at.world.push(at.path, { 'README.md': 'text' });
  const commit = await at.merge(1, 'bob', 'rebase');
  writeRef(at.path, 'refs/tags/web/v1', commit);
  await at.world.store.repository('apps').refresh();
  for (let turn = 0; turn < 3; turn += 1) await at.poll();
  expect(at.world.store.find('apps.web.merge-1')?.outOfBand?.reason).toBe('NotAnApproval');
  expect(await at.world.events('apps')).toEqual([
    expect.stringMatching(/^MergeNotPublished: .*apps\.web\.merge-1 was published at this or a later commit/),
  ]);
  expect(at.comment(1, 'merged')).toContain('`web` is **not published**');
});
