import { beforeEach, expect, test } from 'vitest';
import { git, readRef } from '../../test/support/git/git-cli.ts';
import { writeObject, writeRef } from '../../test/support/git/write-objects.ts';
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
