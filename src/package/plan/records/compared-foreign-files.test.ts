import { beforeEach, expect, test } from 'vitest';
import { type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import type { PackageRepository } from '../../store/package-repository.ts';
import { ComparedForeignFiles } from './compared-foreign-files.ts';

const PATHS = ['app'];
let scratch: Scratch;
let repository: PackageRepository;
let reader: ComparedForeignFiles;
/** Trees that were compared. */
let compared = 0;
let read = 0;
let root: Oid;

beforeEach(async () => {
  scratch = await scratchRepository();
  ({ repository } = await scratch.open());
  const { git, index } = repository;
  compared = 0;
  read = 0;
  const counting = new Proxy(git, {
    get(target, name: keyof GitRepository) {
      if (name === 'diffTrees') compared += 1;
      if (name === 'readCommit') read += 1;
      const value = target[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  reader = new ComparedForeignFiles(counting, index);
  root = await commit({ 'web/a': '1', 'web/b': '1' }, index.mainHead ?? '');
  return () => scratch[Symbol.asyncDispose]();
});

/** The tree of the first parent with these files. */
async function commit(files: Readonly<Record<string, string | null>>, ...parents: readonly Oid[]): Promise<Oid> {
  const { git, clock } = repository;
  scratch.clock.advance(1000);
  const edits = Object.entries(files).map(
    ([path, text]) => [path, text === null ? null : { data: Buffer.from(text) }] as const,
  );
  const tree = await git.editTree(parents[0], new Map(edits));
  const person = { name: 'a', email: 'a@example.com', time: clock.now() };
  return git.writeCommit({ tree, parents, author: person, committer: person, message: 'x\n' });
}

test('the package alone is no other file; what is known of a head is kept as the main branch moves forward', async () => {
  const head = { commit: await commit({ 'app/a': '2' }, await commit({ 'app/a': '1' }, root)), paths: PATHS };
  let main = await commit({ 'web/a': '2' }, root);
  expect(await reader.ofHead(head, main)).toBeUndefined();
  for (let count = 0; count < 20; count += 1) main = await commit({ 'web/a': `${count}` }, main);
  compared = 0;
  read = 0;
  expect(await reader.ofHead(head, main)).toBeUndefined();
  expect([compared, read]).toEqual([0, 0]);
  // One more commit of the branch is compared by itself.
  const next = await commit({ 'app/a': '3' }, head.commit);
  expect(await reader.ofHead({ commit: next, paths: PATHS, base: root }, main)).toBeUndefined();
  expect(compared).toBe(1);
});

test('a base that is known is enough, without a walk through the main branch', async () => {
  const head = await commit({ 'app/a': '1' }, root);
  let main = root;
  for (let count = 0; count < 50; count += 1) main = await commit({ 'web/a': `${count}` }, main);
  read = 0;
  expect(await reader.ofHead({ commit: head, paths: PATHS, base: root }, main)).toBeUndefined();
  expect(read).toBeLessThan(5);
});

test('of changes that are too large to be compared it is not known what they are', async () => {
  const { git } = repository;
  const path = Array.from({ length: 9 }, () => 'f'.repeat(240)).join('/');
  const oid = await git.editTree(undefined, new Map([[path, { data: Buffer.from('x') }]]));
  const above = await git.readCommit(await commit({ 'app/a': '1' }, root));
  const tree = await git.editTree(above.tree, new Map([[path, { mode: '040000', oid }]]));
  const { author, committer } = above;
  const head = await git.writeCommit({ tree, parents: [root], author, committer, message: 'x\n' });
  const unknown = { files: [], count: 0, isUnknown: true };
  expect(await reader.ofHead({ commit: head, paths: PATHS, base: root }, root)).toEqual(unknown);
  const merge = await git.writeCommit({ tree, parents: [root, head], author, committer, message: 'x\n' });
  expect(await reader.ofMerge({ commit: head, paths: PATHS, base: root }, merge, root)).toEqual(unknown);
});

test('other files are named, in order and in bounds', async () => {
  const files = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`web/${String(n).padStart(2, '0')}`, 'x']));
  const head = await commit({ ...files, 'app/a': '1', 'web/a': null }, root);
  const main = await commit({ 'web/b': '2' }, root);
  const found = await reader.ofHead({ commit: head, paths: PATHS, base: root }, main);
  expect(found).toMatchObject({ count: 31 });
  expect(found?.files).toHaveLength(20);
  expect(found?.files[0]).toBe('web/00');
  expect(await reader.ofHead({ commit: head, paths: ['app', 'web'], base: root }, main)).toBeUndefined();
});

test('where each side had merged the other one, a file of either of them is no other file, and what takes one back is', async () => {
  const ofBranch = await commit({ 'web/b': '2', 'app/a': '1' }, root);
  const ofMain = await commit({ 'web/a': '2' }, root);
  const main = await commit({ 'web/b': '2', 'app/a': '1' }, ofMain, ofBranch);
  const both = await commit({ 'web/a': '2', 'app/a': '2' }, ofBranch, ofMain);
  expect(await reader.ofHead({ commit: both, paths: PATHS }, main)).toBeUndefined();
  for (const [file, before] of [
    ['web/a', '1'],
    ['web/b', '1'],
    ['web/a', '3'],
  ] as const) {
    const head = await commit({ 'web/a': '2', [file]: before }, ofBranch, ofMain);
    expect(await reader.ofHead({ commit: head, paths: PATHS }, main)).toMatchObject({ files: [file] });
  }
});

test('a file that the branch took back is none until the main branch has what it took back', async () => {
  const changed = await commit({ 'web/a': '2', 'app/a': '1' }, root);
  const head = await commit({ 'web/a': '1' }, changed);
  const main = await commit({ 'web/b': '2' }, root);
  expect(await reader.ofHead({ commit: head, paths: PATHS }, main)).toBeUndefined();
  const merged = await commit({ 'web/a': '2', 'app/a': '1' }, main, changed);
  expect(await reader.ofHead({ commit: head, paths: PATHS }, merged)).toMatchObject({ files: ['web/a'] });
});

test('of a main branch that was moved to a head, what is after its base, also where a user had merged the main branch', async () => {
  const own = await commit({ 'app/a': '1' }, root);
  const main = await commit({ 'web/a': '2' }, root);
  const head = await commit({ 'web/a': '2', 'app/a': '2' }, own, main);
  const foreign = await commit({ 'web/b': '2' }, head);
  for (const base of [root, main]) {
    expect(await reader.ofMerge({ commit: head, paths: PATHS, base }, head, main)).toBeUndefined();
    expect(await reader.ofMerge({ commit: foreign, paths: PATHS, base }, foreign, main)).toMatchObject({
      files: ['web/b'],
    });
  }
  expect(await reader.ofMerge({ commit: head, paths: PATHS, base: main }, head, undefined)).toBeUndefined();
  // Without a base that is reported, by what was found before.
  const last = await commit({ 'app/a': '3' }, foreign);
  expect(await reader.ofHead({ commit: head, paths: PATHS, base: root }, main)).toBeUndefined();
  expect(await reader.ofMerge({ commit: head, paths: PATHS, base: root }, head, undefined)).toBeUndefined();
  expect(await reader.ofMerge({ commit: last, paths: PATHS, base: root }, last, undefined)).toMatchObject({
    files: ['web/a', 'web/b'],
  });
});

test('of a main branch that was moved to a head, by what was found before, also if the head is compared after that', async () => {
  const main = await commit({ 'web/a': '2' }, root);
  const rebased = await commit({ 'app/a': '1' }, main);
  const merged = await commit({ 'web/a': '2', 'app/a': '2' }, await commit({ 'app/a': '1' }, root), main);
  for (const oid of [rebased, merged]) {
    const head = { commit: oid, paths: PATHS, base: root };
    const foreign = { ...head, commit: await commit({ 'web/b': '2' }, oid) };
    expect(await reader.ofHead(head, main)).toBeUndefined();
    expect(await reader.ofHead(foreign, main)).toMatchObject({ files: ['web/b'] });
    // The main branch is read before the host reports the merge.
    for (const now of [foreign.commit, await commit({ 'web/a': '3' }, foreign.commit)]) {
      for (const one of [head, foreign]) expect(await reader.ofHead(one, now)).toBeUndefined();
      expect(await reader.ofMerge(head, head.commit, undefined)).toBeUndefined();
      expect(await reader.ofMerge(foreign, foreign.commit, undefined)).toMatchObject({ files: ['web/b'] });
    }
  }
});

test('what a squash or a rebase has brought is not known without the head; what a merge commit has brought is', async () => {
  const other = await commit({ 'policies/p': '1' }, root);
  const last = await commit({ 'app/a': '1' }, other);
  const head = { commit: 'f'.repeat(40), paths: PATHS, base: root };
  expect(await reader.ofMerge(head, last, root)).toMatchObject({ isUnknown: true });
  const merged = await commit({ 'app/a': '1' }, root, last);
  expect(await reader.ofMerge(head, merged, root)).toBeUndefined();
});

test('what a head with other files has in common with the main branch is not looked for again as that moves forward', async () => {
  const own = await commit({ 'web/a': '9', 'app/a': '1' }, root);
  const head = { commit: await commit({ 'app/a': '2' }, own), paths: PATHS, base: root };
  let main = root;
  for (let count = 0; count < 100; count += 1) main = await commit({ 'web/b': `${count}` }, main);
  expect(await reader.ofHead(head, main)).toMatchObject({ files: ['web/a'] });
  read = 0;
  main = await commit({ 'web/b': 'x' }, main);
  expect(await reader.ofHead(head, main)).toMatchObject({ files: ['web/a'] });
  expect(read).toBeLessThan(20);
  // Now it has the file too, and then the commit itself.
  const same = await commit({ 'web/a': '9' }, main);
  expect(await reader.ofHead(head, same)).toBeUndefined();
  const merged = await commit({ 'web/a': '9', 'app/a': '1' }, main, own);
  expect(await reader.ofHead(head, merged)).toBeUndefined();
  expect(await reader.ofHead(head, await commit({ 'web/a': '1' }, merged))).toBeUndefined();
});

test('without a common commit nothing is known', async () => {
  const head = await commit({ 'app/a': '1' });
  expect(await reader.ofHead({ commit: head, paths: PATHS }, root)).toMatchObject({ isUnknown: true });
});
