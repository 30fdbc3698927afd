import { beforeEach, describe, expect, test } from 'vitest';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { PERSON, storedEntry, writeCommit, writeObject, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

type Entry = readonly [mode: string, name: string, oid: string];

const open = eachUserPulls();
let at: UserPullBench;
/** The main branch with the package `web`, which is well-formed. */
let good: string;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  await at.world.push(at.path, { 'README.md': 'start', 'teams/web/Kptfile': KPTFILE(), 'teams/web/map.yaml': MAP });
  await refresh();
  await at.poll();
  good = readRef(at.path, 'refs/heads/main') ?? '';
});

const refresh = () => at.world.store.repository('apps').refresh();
const blob = (name: string) => writeObject(at.path, 'blob', MAP.replace('web', name));
const tree = (entries: readonly Entry[]) =>
  writeObject(at.path, 'tree', Buffer.concat(entries.map(([mode, name, oid]) => storedEntry(mode, name, oid))));

function list(of: string): Entry[] {
  const lines = git(at.path, ['ls-tree', of]).trim().split('\n');
  return lines.map((line) => {
    const [, mode = '', oid = '', name = ''] = /^0?(\d+) \w+ (\w+)\t(.+)$/.exec(line) ?? [];
    return [mode, name, oid];
  });
}

/** A commit with other entries of the folder `path` than `good`, in exactly this order. */
function commitWith(path: string, entries: readonly Entry[], parent: string): string {
  let oid = tree(entries);
  for (const parts = path.split('/'); parts.length > 0; ) {
    const name = parts.pop();
    const above = list(parts.length === 0 ? good : `${good}:${parts.join('/')}`);
    oid = tree(above.map((one): Entry => (one[1] === name ? [one[0], name, oid] : one)));
  }
  return writeCommit(at.path, { tree: oid, parents: [parent], message: 'files\n' });
}

const malformed = (path: string, parent: string) =>
  commitWith(path, [['100644', 'zz.yaml', blob('other')], ...list(`${good}:${path}`)], parent);
const wellFormed = (path: string, parent: string, name: string) =>
  commitWith(path, [...list(`${good}:${path}`), ['100644', name, blob('other')]], parent);

async function pull(head: string): Promise<void> {
  writeRef(at.path, 'refs/heads/feature', head);
  await refresh();
  await at.forge.open({ head: 'feature', base: 'main', title: 'repair', body: '' });
  at.forge.change(1, { head: { branch: 'feature', commit: head, isSameRepository: true } });
  at.clock.advance(2000);
  await at.poll();
  await at.poll();
}

async function toMain(commit: string): Promise<string> {
  writeRef(at.path, 'refs/heads/main', commit);
  await refresh();
  await at.poll();
  return commit;
}

test.each(['teams/web', 'teams'])(
  'a pull request that repairs the malformed folder %s of the main branch is checked and published',
  async (path) => {
    const main = await toMain(malformed(path, good));
    const repair = commitWith('teams/web', [...list(`${good}:teams/web`), ['100644', 'zzz.yaml', blob('other')]], main);
    await pull(repair);
    expect(at.forge.checksOf(repair)).toEqual({ 'sluice/ready': 'success' });
    writeRef(at.path, 'refs/heads/main', repair);
    const closedAt = new Date(at.clock.now()).toISOString();
    at.forge.change(1, { state: 'merged', closedAt, merged: { commit: repair, by: 'bob' } });
    await refresh();
    for (let poll = 0; poll < 5; poll++) await at.poll(60_000);
    expect(await at.world.events('apps')).toEqual([]);
    const published = at.world.store.list().filter(({ name }) => name.endsWith('.merge-1'));
    expect(published).toMatchObject([{ lifecycle: 'Published' }]);
  },
);

test.each(['teams/web', 'teams'])(
  'a malformed folder %s that the main branch has changed since is not passed over',
  async (path) => {
    const head = wellFormed('teams/web', good, 'zzz.yaml');
    await toMain(malformed(path, good));
    await pull(head);
    expect(at.forge.checksOf(head)).toEqual({ 'sluice/ready': 'failure' });
  },
);

test('a branch that began at a malformed folder, which the main branch has repaired otherwise, is not passed over', async () => {
  const start = await toMain(malformed('teams/web', good));
  const head = wellFormed('teams/web', start, 'zzz.yaml');
  await toMain(wellFormed('teams/web', start, 'yyy.yaml'));
  await pull(head);
  expect(at.forge.checksOf(head)).toEqual({ 'sluice/ready': 'failure' });
});

/** What a rebase of the host makes of a commit, with this tree. */
function copyOf(
  original: string,
  parent: string,
  tree = git(at.path, ['rev-parse', `${original}^{tree}`]).trim(),
): string {
  const shown = git(at.path, ['log', '-1', '--format=%an%n%ae%n%at', original]);
  const [name = '', email = '', seconds] = shown.split('\n');
  const author = { name, email, time: Number(seconds) * 1000 };
  const committer = { ...PERSON, time: at.clock.now() };
  return writeCommit(at.path, { tree, parents: [parent], message: 'copied\n' }, author, committer);
}

/** Merges the only pull request by a rebase; returns what failed since then. */
async function rebase(merged: string, base: string): Promise<readonly string[]> {
  writeRef(at.path, 'refs/heads/main', merged);
  const closedAt = new Date(at.clock.now()).toISOString();
  at.forge.change(1, { state: 'merged', closedAt, merged: { commit: merged, by: 'bob', base } });
  await refresh();
  const failures: unknown[] = [];
  for (let poll = 0; poll < 5; poll += 1) await at.poll(60_000).catch((error: unknown) => failures.push(error));
  return failures.map(String);
}

const published = () => at.world.store.list().filter(({ name }) => name.endsWith('.merge-1'));

describe('a rebase of two commits', () => {
  const more = (...names: readonly string[]): Entry[] => [
    ...list(`${good}:teams/web`),
    ...names.map((name): Entry => ['100644', name, blob(name.replace('.yaml', ''))]),
  ];

  test.each(['teams/web', 'teams'])('that repairs the malformed folder %s is published', async (path) => {
    const main = await toMain(malformed(path, good));
    const first = commitWith('teams/web', more('zzz.yaml'), main);
    const second = commitWith('teams/web', more('zzz.yaml', 'zzzz.yaml'), first);
    await pull(second);
    expect(at.forge.checksOf(second)).toEqual({ 'sluice/ready': 'success' });
    expect(await rebase(copyOf(second, copyOf(first, main)), main)).toEqual([]);
    expect(await at.world.events('apps')).toEqual([]);
    expect(published()).toMatchObject([{ lifecycle: 'Published' }]);
  });

  test('of which the first leaves a folder malformed is published', async () => {
    const first = malformed('teams/web', good);
    const second = commitWith('teams/web', more('zzz.yaml'), first);
    await pull(second);
    expect(at.forge.checksOf(second)).toEqual({ 'sluice/ready': 'success' });
    // Without another time they would be the commits of the branch.
    at.clock.advance(1000);
    expect(await rebase(copyOf(second, copyOf(first, good)), good)).toEqual([]);
    expect(await at.world.events('apps')).toEqual([]);
    expect(published()).toMatchObject([{ lifecycle: 'Published' }]);
  });

  test('that repairs a malformed folder of a main branch with other changes is reported', async () => {
    const withFiles = (of: string, ...names: readonly string[]) =>
      tree([...list(of), ...names.map((name): Entry => ['100644', name, blob(name)])]);
    const start = await toMain(malformed('teams/web', good));
    const first = commitWith('teams/web', more('zzz.yaml'), start);
    const second = writeCommit(at.path, { tree: withFiles(first, 'y'), parents: [first], message: 'y\n' });
    await pull(second);
    const main = await toMain(writeCommit(at.path, { tree: withFiles(start, 'x'), parents: [start], message: 'x\n' }));
    const merged = copyOf(second, copyOf(first, main, withFiles(first, 'x')), withFiles(first, 'x', 'y'));
    expect(await rebase(merged, main)).toEqual([]);
    expect(await at.world.events('apps')).toMatchObject([expect.stringMatching(/^MergeNotPublished: .*teams\/web/)]);
    expect(published()).toEqual([]);
  });
});
