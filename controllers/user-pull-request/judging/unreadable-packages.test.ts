import { beforeEach, expect, test } from 'vitest';
import type { FileMode, Oid } from '../../../src/git/git-repository.ts';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { storedEntry, writeCommit, writeObject, writeRef, writeTree } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(() => {
  at = open();
});

const blob = (content: string | Buffer) => writeObject(at.path, 'blob', content);
const tree = (...entries: readonly Buffer[]) => writeObject(at.path, 'tree', Buffer.concat(entries));
const kptfile = () => storedEntry('100644', 'Kptfile', blob(KPTFILE()));
const numbered = (count: number, entry: (name: string) => Buffer) =>
  Array.from({ length: count }, (_, number) => entry(`f${String(number).padStart(6, '0')}`));

/** Adds the package `odd`, which git itself would not make. Returns the commit. */
function withPackage(oid: Oid): Oid {
  const main = readRef(at.path, 'refs/heads/main') ?? '';
  const entries = new Map<string, { readonly mode: FileMode; readonly oid: Oid }>([['odd', { mode: '040000', oid }]]);
  for (const line of git(at.path, ['ls-tree', main]).split('\n')) {
    const [, mode, of = '', name = ''] = /^(\d+) \w+ (\w+)\t(.+)$/.exec(line) ?? [];
    if (mode !== undefined) entries.set(name, { mode: mode as FileMode, oid: of });
  }
  const root = writeTree(at.path, entries);
  return writeCommit(at.path, { tree: root, parents: [main], message: 'odd\n' });
}

const TOO_LARGE = /not checked in a pull request|cannot be read/;

test.each<[string, () => Oid, RegExp]>([
  [
    'more files than are read',
    () => tree(kptfile(), ...numbered(10_001, (name) => storedEntry('100644', name, blob('x')))),
    TOO_LARGE,
  ],
  [
    'more bytes than are read',
    () =>
      tree(
        kptfile(),
        ...numbered(17, (name) => storedEntry('100644', name, blob(Buffer.alloc(4 * 1024 * 1024, name)))),
      ),
    TOO_LARGE,
  ],
  [
    'folders without end',
    () => {
      let below = tree(storedEntry('100644', 'x', blob('x')));
      for (let depth = 0; depth < 300; depth++) below = tree(storedEntry('40000', 'd', below));
      return tree(kptfile(), storedEntry('40000', 'd', below));
    },
    TOO_LARGE,
  ],
  [
    'folders that multiply',
    () => {
      let below = tree(storedEntry('100644', 'x', blob('x')));
      for (let depth = 0; depth < 12; depth++) {
        const folder = below;
        below = tree(...numbered(16, (name) => storedEntry('40000', name, folder)));
      }
      return tree(kptfile(), storedEntry('40000', 'd', below));
    },
    TOO_LARGE,
  ],
  ['entries in the wrong order', () => tree(storedEntry('100644', 'z', blob('x')), kptfile()), /malformed ones/],
  [
    'a folder in the wrong order',
    () =>
      tree(
        kptfile(),
        storedEntry('40000', 'd', tree(storedEntry('100644', 'b', blob('x')), storedEntry('100644', 'a', blob('x')))),
      ),
    /is not in order/,
  ],
])(
  'a merged package with %s fails the check, and holds up no later merge',
  async (_, make, problem) => {
    await at.policy({ publishOn: 'merge' });
    const head = withPackage(make());
    writeRef(at.path, 'refs/heads/one', head);
    await at.world.store.repository('apps').refresh();
    await at.forge.open({ head: 'one', base: 'main', title: 'odd', body: '' });
    at.forge.change(1, { head: { branch: 'one', commit: head, isSameRepository: true } });
    await at.poll();
    expect(at.titles(head)['sluice/ready']).toMatch(/^failure: /);
    expect(JSON.stringify([at.titles(head), at.comment(1)])).toMatch(problem);
    const main = readRef(at.path, 'refs/heads/main') ?? '';
    const root = git(at.path, ['rev-parse', `${head}^{tree}`]).trim();
    const merged = writeCommit(at.path, { tree: root, parents: [main, head], message: 'Merge\n' });
    writeRef(at.path, 'refs/heads/main', merged);
    const { updatedAt } = at.forge.change(1, { state: 'merged', merged: { commit: merged, by: 'bob', base: main } });
    at.forge.change(1, { closedAt: updatedAt });
    await at.world.store.repository('apps').refresh();
    await at.poll();
    expect(await at.world.events('apps')).toEqual([expect.stringMatching(/^MergeNotPublished: /)]);
    await at.pull({ 'web/Kptfile': KPTFILE(), 'web/a.yaml': MAP }, { branch: 'two' });
    await at.poll();
    await at.merge(2, 'bob');
    await at.poll();
    expect(at.world.store.find('apps.web.merge-2')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  },
  60_000,
);

test.each(['100600', '100640'])('a file of mode %s is checked and published as git reads it', async (mode) => {
  await at.policy({ publishOn: 'merge' });
  const head = withPackage(tree(kptfile(), storedEntry(mode, 'a.yaml', blob(MAP))));
  writeRef(at.path, 'refs/heads/one', head);
  await at.world.store.repository('apps').refresh();
  await at.forge.open({ head: 'one', base: 'main', title: 'odd', body: '' });
  at.forge.change(1, { head: { branch: 'one', commit: head, isSameRepository: true } });
  await at.poll();
  expect(at.titles(head)['sluice/ready']).toMatch(/^success: /);
  await at.merge(1, 'bob');
  await at.poll();
  expect(at.world.store.find('apps.odd.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});
