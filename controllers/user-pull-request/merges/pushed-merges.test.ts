import { beforeEach, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const MAIN = 'refs/heads/main';
const DETECTED = 'the repository has the option autodetect_manual_merge';
const WEB = { 'web/Kptfile': KPTFILE() };
const DB = { 'db/Kptfile': KPTFILE(), 'db/map.yaml': MAP };

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
});

const refresh = () => at.world.store.repository('apps').refresh();
const mainHead = () => git(at.path, ['rev-parse', MAIN]);
const published = () =>
  at.world.store
    .list()
    .filter(({ revision, outOfBand }) => revision > 0 && outOfBand === undefined)
    .map(({ name }) => name)
    .sort();
/** The events about merges, up to the reason. */
const reported = async () =>
  (await at.world.events('apps'))
    .filter((text) => text.startsWith('MergeNotPublished'))
    .map((text) => text.replace(/ by https:\/\/\S+\/(\d+)/, ' by #$1').replace(/: the commits .*/, ''))
    .sort();

/** A push to the main branch that nothing has judged. */
async function pushToMain(files: Readonly<Record<string, string>>): Promise<string> {
  await at.world.push(at.path, files);
  await refresh();
  await at.poll();
  return mainHead();
}

function mergeOf(...parents: readonly string[]): string {
  const tree = parents.slice(1).reduce(
    (merged, one) => {
      const side = writeCommit(at.path, { tree: merged, parents: parents.slice(0, 1), message: 'side\n' });
      return git(at.path, ['merge-tree', '--write-tree', side, one]);
    },
    git(at.path, ['rev-parse', `${parents[0]}^{tree}`]),
  );
  return writeCommit(at.path, { tree, parents, message: 'Merge\n' });
}

async function setHead(number: number, branch: string, commit: string): Promise<void> {
  writeRef(at.path, `refs/heads/${branch}`, commit);
  await refresh();
  at.forge.change(number, { head: { branch, commit, isSameRepository: true } });
  await at.poll();
}

/** A push has moved the main branch to a commit that the host names as the merge of some pull requests. */
async function pushed(
  commit: string,
  by: string,
  { numbers = [1], ...more }: { base?: string; isMergeBase?: boolean; numbers?: readonly number[] } = {},
): Promise<void> {
  writeRef(at.path, MAIN, commit);
  for (const number of numbers) {
    const { updatedAt: closedAt } = at.forge.change(number, { state: 'merged', merged: { commit, by, ...more } });
    at.forge.change(number, { closedAt });
  }
  await refresh();
  for (let turn = 0; turn < 3; turn += 1) await at.poll();
}

/** A pull request with `web`, and a main branch with `db` since. */
async function branchAndPush() {
  const before = mainHead();
  const head = await at.pull(WEB);
  await at.poll();
  return { before, head, main: await pushToMain(DB) };
}

test.each(['', 'after a restart'])(
  'a merge into the branch, pushed to the main branch, publishes its package alone %s',
  async (restart) => {
    const { before, head, main } = await branchAndPush();
    writeRef(at.path, MAIN, mergeOf(head, main));
    if (restart !== '') {
      await refresh();
      at.restart();
    }
    await pushed(mainHead(), 'bob', { base: before });
    expect(published()).toEqual(['apps.web.merge-1']);
    expect(await reported()).toEqual([]);
  },
);

test('such a merge that the host detects is published with an approving review', async () => {
  at.forge.unsureMerger = DETECTED;
  const before = mainHead();
  const head = await at.pull(WEB);
  await at.poll();
  at.forge.review(1, 'bob', 'approved', head);
  const main = await pushToMain({ 'README.md': 'text' });
  await pushed(mergeOf(head, main), 'eve', { base: before, isMergeBase: true });
  expect(published()).toEqual(['apps.web.merge-1']);
});

test('such a merge with commits that the pull request does not have reports their packages', async () => {
  const { before, head, main } = await branchAndPush();
  const local = await at.pull({ 'app/Kptfile': KPTFILE() }, { onTop: true });
  at.forge.change(1, { head: { branch: 'feature', commit: head, isSameRepository: true } });
  await at.poll();
  await pushed(mergeOf(local, main), 'bob', { base: before });
  expect(published()).toEqual(['apps.web.merge-1']);
  expect(await reported()).toEqual(['MergeNotPublished: the merge of app by #1 is not published']);
});

test('a merge into another branch, pushed to the main branch that the head contains, publishes its package alone', async () => {
  const { before, head, main } = await branchAndPush();
  const update = mergeOf(head, main);
  await setHead(1, 'feature', update);
  const tree = git(at.path, ['rev-parse', `${before}^{tree}`]);
  const side = writeCommit(at.path, { tree, parents: [before], message: 'side\n' });
  await pushed(mergeOf(side, update), 'bob', { base: before });
  expect(published()).toEqual(['apps.web.merge-1']);
});

test.each([
  ['from before', false],
  ['from before, that another process has checked,', true],
  ['that is not known', false],
])('a head with a merge of the main branch that becomes the main branch, base %s', async (base, isRestarted) => {
  const { before, head, main } = await branchAndPush();
  const update = mergeOf(head, main);
  await setHead(1, 'feature', update);
  expect(at.comment(1)).not.toContain('#### `db`');
  at.forge.review(1, 'bob', 'approved', update);
  await at.poll();
  at.forge.unsureMerger = 'the commits came to the branch by a push';
  if (isRestarted) at.restart();
  await pushed(update, 'eve', base === 'that is not known' ? {} : { base: before });
  expect(published()).toEqual(['apps.web.merge-1']);
  expect(await reported()).toEqual([]);
});

test('a head with a published change of the main branch that becomes the main branch does not publish that once more', async () => {
  const before = mainHead();
  const head = await at.pull(WEB);
  await at.pull(DB, { branch: 'other' });
  await at.poll();
  await at.merge(2, 'bob');
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
  const update = mergeOf(head, mainHead());
  await setHead(1, 'feature', update);
  await pushed(update, 'bob', { base: before });
  expect(published()).toEqual(['apps.db.merge-2', 'apps.web.merge-1']);
});

test.each(['', ' that another process has checked'])(
  'a fast-forward of two commits%s without a known base',
  async (other) => {
    await at.pull(WEB);
    const head = await at.pull(DB, { onTop: true });
    await at.poll();
    if (other !== '') at.restart();
    await pushed(head, 'bob');
    expect(published()).toEqual(other === '' ? ['apps.db.merge-1', 'apps.web.merge-1'] : ['apps.db.merge-1']);
    const more = expect.stringMatching(/ may have changed more packages, .* where the main branch was before /);
    expect(await reported()).toEqual(other === '' ? [] : [more]);
  },
);

test('a rebased fast-forward that only another process has checked reports what another user can have pushed', async () => {
  const before = mainHead();
  await at.pull(WEB);
  const main = await pushToMain(DB);
  const files = { ...WEB, 'app/Kptfile': KPTFILE() };
  git(at.path, ['branch', '-f', 'feature', main]);
  const head = await at.pull(files, { onTop: true });
  await at.poll();
  at.restart();
  await pushed(head, 'bob', { base: before });
  expect(published()).toEqual(['apps.app.merge-1', 'apps.web.merge-1']);
  expect(await reported()).toEqual(['MergeNotPublished: the merge of db by #1 is not published']);
});

/** One pull request on top of the other, of which the upper one is approved. */
async function stacked() {
  at.forge.unsureMerger = DETECTED;
  const lower = await at.pull(WEB, { branch: 'one' });
  writeRef(at.path, 'refs/heads/two', lower);
  await refresh();
  const upper = await at.pull({ 'web/map.yaml': MAP }, { branch: 'two', onTop: true });
  await at.poll();
  at.forge.review(2, 'bob', 'approved', upper);
  await at.poll();
  return { base: mainHead(), upper };
}

test('of two stacked pull requests with one merge commit, the upper one publishes', async () => {
  const { base, upper } = await stacked();
  await pushed(mergeOf(base, upper), 'bob', { base, isMergeBase: true, numbers: [1, 2] });
  expect(published()).toEqual(['apps.web.merge-2']);
  expect(at.world.store.list().filter(({ revision }) => revision > 0)).toHaveLength(1);
  expect(await at.world.events('apps')).toEqual([]);
});

test('the lower one of them waits until the host has noticed the merge of the upper one', async () => {
  const { base, upper } = await stacked();
  const merged = { base, isMergeBase: true };
  const commit = mergeOf(base, upper);
  writeRef(at.path, MAIN, commit);
  const { updatedAt } = at.forge.change(1, { state: 'merged', merged: { commit, by: 'bob', ...merged } });
  at.forge.change(1, { closedAt: updatedAt });
  await refresh();
  await at.poll();
  await pushed(commit, 'bob', { ...merged, numbers: [2] });
  expect(published()).toEqual(['apps.web.merge-2']);
  expect(await at.world.events('apps')).toEqual([]);
});

test('an octopus merge publishes the package of each pull request as its own', async () => {
  const one = await at.pull(WEB, { branch: 'one' });
  const two = await at.pull(DB, { branch: 'two' });
  await at.poll();
  const base = mainHead();
  await pushed(mergeOf(base, one, two), 'bob', { base, numbers: [1, 2] });
  expect(published()).toEqual(['apps.db.merge-2', 'apps.web.merge-1']);
  expect(await at.world.events('apps')).toEqual([]);
});

test('a package that two pull requests with one merge commit change is published once, and both are reported so', async () => {
  const one = await at.pull(WEB, { branch: 'one' });
  const two = await at.pull({ ...WEB, 'web/map.yaml': MAP }, { branch: 'two' });
  await at.poll();
  const base = mainHead();
  await pushed(mergeOf(base, one, two), 'bob', { base, numbers: [1, 2] });
  expect(published()).toEqual(['apps.web.merge-1']);
  expect(await at.world.events('apps')).toEqual([]);
});

test('a merge of the heads of two pull requests publishes the package of each, and nothing that was pushed to the main branch', async () => {
  const two = await at.pull(DB, { branch: 'two' });
  const main = await pushToMain({ 'app/Kptfile': KPTFILE() });
  const one = await at.pull(WEB, { branch: 'one' });
  await at.poll();
  await pushed(mergeOf(one, two), 'bob', { base: main, numbers: [1, 2] });
  expect(published()).toEqual(['apps.db.merge-1', 'apps.web.merge-2']);
  expect(await at.world.events('apps')).toEqual([]);
});

test.each([
  ['a part of the branch', 1, ['apps.db.merge-1'], ['web']],
  ['all of the branch', 2, [], ['db', 'web']],
] as const)(
  'the main branch had %s by mistake, and was reset: what the button merges then is published or reported',
  async (_, commits, inBand, missing) => {
    const before = mainHead();
    const heads = [await at.pull(WEB), await at.pull(DB, { onTop: true })];
    await at.poll();
    writeRef(at.path, MAIN, heads[commits - 1] ?? '');
    await refresh();
    await at.poll();
    writeRef(at.path, MAIN, before);
    await refresh();
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    await at.merge(1, 'bob');
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(published()).toEqual(inBand);
    expect(await reported()).toEqual(
      missing.map((path) => expect.stringContaining(`the merge of ${path} by #1 is not published`)),
    );
  },
);

test('a pull request to another branch that has the same merge commit hides nothing that a push brings', async () => {
  const lower = await at.pull(WEB, { branch: 'one' });
  writeRef(at.path, 'refs/heads/two', lower);
  await refresh();
  const upper = await at.pull({ 'app/Kptfile': KPTFILE() }, { branch: 'two', onTop: true });
  at.forge.change(2, { base: { branch: 'foo' } });
  await at.poll();
  const base = mainHead();
  await pushed(mergeOf(base, upper), 'bob', { base, numbers: [1, 2] });
  expect(await reported()).toEqual([expect.stringContaining('the merge of app by #1 is not published')]);
});
