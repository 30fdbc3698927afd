import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { rebasedCommit } from '../../../test/support/git/rebased-commit.ts';
import { PERSON, writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const MAIN = 'refs/heads/main';
const WEB = { 'web/Kptfile': KPTFILE() };
const DB = { 'db/Kptfile': KPTFILE() };
const LINES = Array.from({ length: 9 }, (_, key) => `  key-${key}: value`);
const dataWith = (key: number, value: string) =>
  `${MAP}data:\n${LINES.with(key, `  key-${key}: ${value}`).join('\n')}\n`;
const DATA = dataWith(0, 'value');

const open = eachUserPulls();
let at: UserPullBench;
/** Where the branch begins, which hosts report as its base. */
let begun: string;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  begun = git(at.path, ['rev-parse', MAIN]);
});

const treeOf = (commit: string) => git(at.path, ['rev-parse', `${commit}^{tree}`]);

/** Gives the last commits of a branch these times of their authors, the first one first. */
function setTimes(head: string, times: readonly number[], committer = PERSON): string {
  const commits = git(at.path, ['rev-list', '--reverse', `-${times.length}`, head]).split('\n');
  let parent = git(at.path, ['rev-parse', `${commits[0]}^`]);
  for (const [place, one] of commits.entries()) {
    const author = { ...PERSON, time: times[place] ?? 0 };
    parent = writeCommit(
      at.path,
      { tree: treeOf(one), parents: [parent], message: `${place + 1} of ${times.length}\n` },
      author,
      committer,
    );
  }
  return parent;
}

/** Moves the branch of a pull request to a commit, with which it is checked. */
async function setHead(commit: string, number = 1): Promise<string> {
  const { branch } = at.forge.pulls[number - 1]?.head ?? { branch: '' };
  writeRef(at.path, `refs/heads/${branch}`, commit);
  await at.world.store.repository('apps').refresh();
  at.forge.change(number, { head: { branch, commit, isSameRepository: true } });
  await at.poll();
  return commit;
}

/** A push to the main branch without a pull request. */
async function pushToMain(
  files: Readonly<Record<string, string | null>>,
  time?: number,
  committer = PERSON,
): Promise<void> {
  await at.world.push(at.path, files);
  if (time !== undefined) writeRef(at.path, MAIN, setTimes(git(at.path, ['rev-parse', MAIN]), [time], committer));
  await at.world.store.repository('apps').refresh();
}

async function mergeAs(commit: string, { number = 1, isMergeBase = false } = {}): Promise<void> {
  writeRef(at.path, MAIN, commit);
  at.forge.change(number, { state: 'merged', merged: { commit, by: 'bob', base: begun, isMergeBase } });
  await at.world.store.repository('apps').refresh();
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
}

const squashed = (head: string, time = PERSON.time) => {
  const onto = git(at.path, ['rev-parse', MAIN]);
  const tree = git(at.path, ['merge-tree', '--write-tree', onto, head]);
  const author = { ...PERSON, time };
  return writeCommit(at.path, { tree, parents: [onto], message: 'Squash\n' }, author, PERSON);
};
const rebased = (head: string) => rebasedCommit(at.path, git(at.path, ['rev-parse', MAIN]), head) ?? '';

const published = () =>
  at.world.store
    .list()
    .filter(({ name, revision, outOfBand }) => revision > 0 && name.includes('.merge-') && outOfBand === undefined)
    .map(({ name }) => name)
    .sort();
const reported = async () => (await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'));

async function branchOfTwo(times: readonly number[]): Promise<string> {
  await at.pull({ ...WEB, 'web/map.yaml': MAP });
  return setHead(setTimes(await at.pull({ 'web/map.yaml': DATA }, { onTop: true }), times));
}

test.each([
  ['a commit of 1970', [0, PERSON.time]],
  ['the time of the squash', [PERSON.time - 1000, PERSON.time]],
])('a squash of a branch with %s does not publish what was pushed to the main branch before it', async (_, times) => {
  const head = await branchOfTwo(times);
  await pushToMain(DB, PERSON.time);
  expect(at.titles(head)['sluice/ready']).toBe('success: 1 package checked: no errors, no closed gates');
  await mergeAs(squashed(head));
  expect(published()).toEqual(['apps.web.merge-1']);
  expect(await reported()).toEqual([]);
});

test('a squash reports a package of its branch that was pushed to the main branch before it', async () => {
  await at.pull({ ...WEB, 'web/map.yaml': MAP, ...DB });
  const head = await setHead(setTimes(await at.pull({ 'web/map.yaml': DATA }, { onTop: true }), [0, PERSON.time]));
  await pushToMain(DB, PERSON.time);
  await mergeAs(squashed(head));
  expect(published()).toEqual(['apps.web.merge-1']);
  expect(await reported()).toEqual([expect.stringContaining('the merge of db by')]);
});

test('what was published on the main branch just before a merge is not reported', async () => {
  await at.pull({ 'notes.txt': 'notes' });
  const head = await setHead(setTimes(await at.pull(WEB, { onTop: true }), [PERSON.time - 5000, PERSON.time]));
  await pushToMain({ 'notes.txt': 'notes' });
  await pushToMain(DB, PERSON.time - 5000);
  const facts = { conditions: [], rendering: undefined, mayIssue: true, isOfHead: true };
  const merged = { commit: git(at.path, ['rev-parse', MAIN]), by: 'anna', recordBypass: true };
  await at.world.store.repository('apps').sync();
  const wanted = { package: 'db', workspace: 'w1', merged, facts };
  expect(await at.world.store.publishMerged('default/apps', wanted, '', ANNA)).toMatchObject({ revision: 1 });
  await mergeAs(rebased(head));
  expect(published()).toEqual(['apps.web.merge-1']);
  expect(await reported()).toEqual([]);
});

test('a push of what a branch changes and takes back is reported with its squash, which does not publish that', async () => {
  await pushToMain({ ...DB, 'db/map.yaml': DATA });
  begun = git(at.path, ['rev-parse', MAIN]);
  await at.pull({ 'db/map.yaml': dataWith(7, 'evil') });
  await at.pull({ 'db/map.yaml': DATA }, { onTop: true });
  const times = [0, PERSON.time - 5000, PERSON.time];
  const head = await setHead(setTimes(await at.pull(WEB, { onTop: true }), times));
  await pushToMain({ 'db/map.yaml': dataWith(7, 'evil') }, PERSON.time);
  await mergeAs(squashed(head));
  expect(published()).toEqual(['apps.web.merge-1']);
  expect(await reported()).toEqual([expect.stringContaining('the merge of db by')]);
});

test('a rebase that drops a commit does not publish a push with its time, which is reported', async () => {
  await at.pull({ 'notes.txt': 'notes' });
  const head = await setHead(setTimes(await at.pull(WEB, { onTop: true }), [PERSON.time - 5000, PERSON.time]));
  await pushToMain({ 'notes.txt': 'notes' });
  await pushToMain(DB, PERSON.time - 5000);
  await mergeAs(rebased(head));
  expect(published()).toEqual(['apps.web.merge-1']);
  expect(await reported()).toEqual([expect.stringContaining('the merge of db by')]);
  expect(at.comment(1, 'merged')).toContain('`db` is **not published**');
});

test('a commit of the branch that was pushed to the main branch by itself is none of the squash of the rest', async () => {
  const first = await at.pull(DB);
  const head = await setHead(setTimes(await at.pull(WEB, { onTop: true }), [PERSON.time]));
  writeRef(at.path, MAIN, first);
  await at.world.store.repository('apps').refresh();
  await mergeAs(squashed(head));
  expect(published()).toEqual(['apps.web.merge-1']);
});

test.each([
  ['the very change of a commit that it drops, by the committer of the rebase, as it would make it', true],
  ['that change by another committer', false],
  ['another change of the same file', false],
] as const)('a rebase counts a push with the time of one of its commits if that is %s', async (change, isCounted) => {
  await pushToMain({ ...DB, 'db/map.yaml': DATA });
  begun = git(at.path, ['rev-parse', MAIN]);
  await at.pull({ 'db/map.yaml': dataWith(7, 'good') });
  const head = await setHead(setTimes(await at.pull(WEB, { onTop: true }), [PERSON.time - 5000, PERSON.time]));
  if (change.startsWith('another')) await pushToMain({ 'db/map.yaml': dataWith(7, 'good') });
  const pushed = { 'db/map.yaml': dataWith(7, change.startsWith('another') ? 'evil' : 'good') };
  const committer = isCounted ? PERSON : { ...PERSON, email: 'eve@example.com' };
  await pushToMain(pushed, PERSON.time - 5000, committer);
  const onto = git(at.path, ['rev-parse', MAIN]);
  const entries = git(at.path, ['ls-tree', onto]);
  const web = git(at.path, ['rev-parse', `${head}:web`]);
  const tree = git(at.path, ['mktree'], `${entries}\n040000 tree ${web}\tweb\n`);
  await mergeAs(writeCommit(at.path, { tree, parents: [onto], message: 'web\n' }, PERSON, PERSON));
  expect(published()).toEqual(isCounted ? ['apps.db.merge-1', 'apps.web.merge-1'] : ['apps.web.merge-1']);
});

test('a rebase of several commits publishes what each of them changes, also where the main branch had changed the same file', async () => {
  await pushToMain({ ...DB, 'db/map.yaml': DATA });
  begun = git(at.path, ['rev-parse', MAIN]);
  await at.pull({ 'db/map.yaml': dataWith(7, 'branch') });
  await at.pull({ ...WEB, 'notes.txt': 'notes' }, { onTop: true });
  const head = await setHead(await at.pull({ 'app/Kptfile': KPTFILE() }, { onTop: true }));
  await pushToMain({ 'db/map.yaml': dataWith(1, 'main'), 'notes.txt': 'notes' });
  await mergeAs(rebased(head));
  expect(published()).toEqual(['apps.app.merge-1', 'apps.db.merge-1', 'apps.web.merge-1']);
  expect(await reported()).toEqual([]);
});

test('a rebase publishes a package of which the main branch had a part of the change', async () => {
  await pushToMain({ ...DB, 'db/map.yaml': DATA });
  begun = git(at.path, ['rev-parse', MAIN]);
  const both = DATA.replace('key-1: value', 'key-1: fixed').replace('key-7: value', 'key-7: branch');
  await at.pull({ 'db/map.yaml': both });
  const head = await setHead(await at.pull(WEB, { onTop: true }));
  await pushToMain({ 'db/map.yaml': dataWith(1, 'fixed').replace('key-4: value', 'key-4: main') });
  await mergeAs(rebased(head));
  expect(await reported()).toEqual([]);
  expect(published()).toEqual(['apps.db.merge-1', 'apps.web.merge-1']);
});

test('a rebase compares many files that the main branch had changed, in each of its commits', async () => {
  const files = (name: string, key: number, value: string) =>
    Object.fromEntries(Array.from({ length: 26 }, (_, file) => [`${name}/${file}.yaml`, dataWith(key, value)]));
  await pushToMain({ ...DB, ...files('db', 0, 'value'), 'app/Kptfile': KPTFILE(), ...files('app', 0, 'value') });
  begun = git(at.path, ['rev-parse', MAIN]);
  await at.pull(files('db', 7, 'branch'));
  await at.pull(files('app', 7, 'branch'), { onTop: true });
  const head = await setHead(await at.pull(WEB, { onTop: true }));
  await pushToMain({ ...files('db', 1, 'main'), ...files('app', 1, 'main') });
  await mergeAs(rebased(head));
  expect(await reported()).toEqual([]);
  expect(published()).toEqual(['apps.app.merge-1', 'apps.db.merge-1', 'apps.web.merge-1']);
});

describe('the first commit of a branch, which a rebase of Git leaves as it is,', () => {
  const withFolder = (commit: string, name: string) => {
    const entries = git(at.path, ['ls-tree', commit]);
    const added = `040000 tree ${git(at.path, ['rev-parse', `${first}:db`])}\t${name}`;
    return git(at.path, ['mktree'], `${[...(entries === '' ? [] : [entries]), added].join('\n')}\n`);
  };
  const make = (tree: string, parents: string[], sinceMs: number) =>
    writeCommit(
      at.path,
      { tree, parents, message: `${sinceMs}\n` },
      { ...PERSON, time: PERSON.time - sinceMs },
      PERSON,
    );
  /** Changes `db`. */
  let first: string;
  beforeEach(async () => {
    const file = git(at.path, ['rev-parse', `${await at.pull(DB)}^{tree}`]);
    first = make(file, [begun], 10_000);
  });

  test('is published with what follows it and a merge', async () => {
    const side = make(withFolder(begun, 'app'), [begun], 9000);
    const joined = make(withFolder(first, 'app'), [first, side], 8000);
    await setHead(make(withFolder(joined, 'web'), [joined], 7000));
    const copyOfSide = make(withFolder(first, 'app'), [first], 9000);
    await mergeAs(make(withFolder(copyOfSide, 'web'), [copyOfSide], 7000), { isMergeBase: true });
    expect(await reported()).toEqual([]);
    expect(published()).toEqual(['apps.app.merge-1', 'apps.db.merge-1', 'apps.web.merge-1']);
  });

  test('is published with a second one, where a branch of the first was merged', async () => {
    const second = make(withFolder(first, 'cache'), [first], 9500);
    const side = make(withFolder(first, 'app'), [first], 9000);
    const joined = make(withFolder(second, 'app'), [second, side], 8000);
    await setHead(joined);
    await mergeAs(make(treeOf(joined), [second], 9000), { isMergeBase: true });
    expect(await reported()).toEqual([]);
    expect(published()).toEqual(['apps.app.merge-1', 'apps.cache.merge-1', 'apps.db.merge-1']);
  });

  test.each([
    ['was pushed to the main branch before a squash', 3000, 0, true],
    ['was so before a squash with the time of a commit', 0, 0, true],
    ['can have been on the main branch before the rebase', 3000, 3000, false],
  ])('is none of the merge if it %s', async (_, sinceMs, mergedMs, isMergeBase) => {
    const joined = make(treeOf(first), [first, begun], 8000);
    const last = await setHead(make(withFolder(joined, 'web'), [joined], sinceMs));
    writeRef(at.path, MAIN, first);
    await at.world.store.repository('apps').refresh();
    await mergeAs(make(treeOf(last), [first], mergedMs), { isMergeBase });
    expect(published()).toEqual(['apps.web.merge-1']);
  });
});
