import { beforeEach, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
});
const NUL = '\0';
const entries = (spec: string) =>
  git(at.path, ['ls-tree', '-z', spec])
    .split(NUL)
    .filter((one) => one !== '');
const mktree = (lines: readonly string[]) =>
  git(at.path, ['mktree', '-z'], lines.map((one) => `${one}${NUL}`).join(''));
async function setHead(tree: string, parent: string): Promise<string> {
  const commit = writeCommit(at.path, { tree, parents: [parent], message: 'x\n' });
  writeRef(at.path, 'refs/heads/feature', commit);
  await at.world.store.repository('apps').refresh();
  at.forge.change(1, { head: { branch: 'feature', commit, isSameRepository: true } });
  await at.poll();
  return commit;
}

test('a package folder with a line break in its name: the check fails, and other packages and merges do not wait', async () => {
  const first = await at.pull({ 'ok/Kptfile': KPTFILE() });
  const blob = git(at.path, ['rev-parse', `${first}:ok/Kptfile`]);
  const folder = mktree([`100644 blob ${blob}\tKptfile`]);
  const head = await setHead(mktree([...entries(first), `040000 tree ${folder}\ta\nb`]), first);
  expect.soft(at.titles(head)['sluice/ready']).toMatch(/^failure/);
  await at.merge(1, 'bob');
  await at.poll();
  await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'other' });
  await at.poll();
  await at.merge(2, 'bob');
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
  expect.soft(at.world.store.find('apps.ok.merge-1')?.lifecycle).toBe('Published');
  expect.soft(at.world.store.find('apps.db.merge-2')?.lifecycle).toBe('Published');
});

test('a squash of a package with a file whose name has a line break is published, as its check says', async () => {
  const first = await at.pull({ 'ok/Kptfile': KPTFILE() });
  const blob = git(at.path, ['rev-parse', `${first}:ok/Kptfile`]);
  const folder = mktree([...entries(`${first}:ok`), `100644 blob ${blob}\ta\nb.yaml`]);
  const rest = entries(first).filter((one) => !one.endsWith('\tok'));
  const head = await setHead(mktree([...rest, `040000 tree ${folder}\tok`]), first);
  expect(at.titles(head)['sluice/ready']).toMatch(/^success/);
  await at.world.push(at.path, { 'ok/x.yaml': MAP });
  await at.merge(1, 'bob', 'squash');
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
  expect(at.world.store.find('apps.ok.merge-1')?.lifecycle).toBe('Published');
});
