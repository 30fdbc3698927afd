import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FileMode, GitRepository, Oid } from '../../../src/git/git-repository.ts';
import { initRepository } from '../../../src/git/open/open-repository.ts';
import { git as gitCli, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { bareWithCommit, writeCommit, writeObject, writeTree } from '../../../test/support/git/write-objects.ts';
import { runs } from '../../../test/support/runs.ts';
import { changesOfBranch, startOfBranch } from './branch-changes.ts';
import { unjudgedMerge } from './unjudged-merge.ts';

const PATHS = [
  ...['lib/a.yaml', 'lib/b.yaml', 'web/Kptfile', 'web/a.yaml', 'web/more/b.yaml', 'api/a.yaml', 'api/Kptfile'],
  ...['team/Kptfile', 'team/a.yaml', 'team/shop/Kptfile', 'team/shop/a.yaml', 'team/shop/c.yaml'],
];
const LINES = Array.from({ length: 30 }, (_, at) => `key${at}: value number ${at}\n`);
/** Alike enough to pass for renamed, with changes that Git merges. */
const TEXTS = [LINES, LINES.with(3, 'early\n'), LINES.with(25, 'late\n'), LINES.slice(0, 12)].map((one) =>
  one.join(''),
);

type Files = Readonly<Record<string, string>>;

let folder: ReturnType<typeof temporaryFolder>;
let git: GitRepository;
beforeAll(async () => {
  folder = temporaryFolder();
  bareWithCommit(folder.path, {});
  git = await initRepository(folder.path);
});
afterAll(async () => {
  await git.close();
  folder.remove();
});

const text = fc.option(fc.constantFrom(...TEXTS), { nil: undefined });
const base = fc.array(text, { minLength: PATHS.length, maxLength: PATHS.length }).map(filesOf);
const edits = fc.array(fc.tuple(fc.constantFrom(...PATHS), text), { maxLength: 4 });
/** Moves, with a change or not, and other changes. */
const moves = fc.array(fc.tuple(fc.constantFrom(...PATHS), fc.constantFrom(...PATHS)), { maxLength: 2 });
const side = fc.tuple(moves, edits);

function filesOf(texts: readonly (string | undefined)[]): Files {
  return Object.fromEntries(texts.flatMap((one, at) => (one === undefined ? [] : [[PATHS[at] ?? '', one]])));
}

function changed(files: Files, [moved, edited]: [[string, string][], [string, string | undefined][]]): Files {
  const result = new Map(Object.entries(files));
  for (const [from, to] of moved) {
    const there = result.get(from);
    if (there === undefined || from === to) continue;
    result.delete(from);
    result.set(to, there);
  }
  for (const [path, one] of edited) {
    if (one === undefined) result.delete(path);
    else result.set(path, one);
  }
  return Object.fromEntries(result);
}

function commit(files: Files, parents: readonly Oid[]): Oid {
  return writeCommit(folder.path, { tree: treeOf(files), parents, message: 'change\n' });
}

function treeOf(files: Files): Oid {
  const byName = Map.groupBy(Object.entries(files), ([path]) => path.split('/', 1)[0] ?? '');
  const entries = new Map<string, { readonly mode: FileMode; readonly oid: Oid }>();
  for (const [name, all] of [...byName].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const [[path = '', content = ''] = []] = all;
    const below = Object.fromEntries(all.map(([one, data]) => [one.slice(name.length + 1), data]));
    if (path === name) entries.set(name, { mode: '100644', oid: writeObject(folder.path, 'blob', content) });
    else entries.set(name, { mode: '040000', oid: treeOf(below) });
  }
  return writeTree(folder.path, entries);
}

/** The tree of a merge by Git; undefined where it has conflicts. */
function mergeByGit(main: Oid, head: Oid): Oid | undefined {
  try {
    return gitCli(folder.path, ['merge-tree', '--write-tree', '--no-messages', main, head]).trim();
  } catch {
    return undefined;
  }
}

async function read(main: Oid, head: Oid) {
  const signal = new AbortController().signal;
  const start = await startOfBranch(git, { main, head }, signal);
  if (start === undefined) throw new Error('the sides have a common commit');
  const { packages } = await changesOfBranch(git, start, { after: head, directory: '' });
  const paths = new Set(packages.map(({ path }) => path));
  return { paths, ...(await unjudgedMerge(git, { start, main, head, directories: [''], packages: paths })) };
}

async function filesIn(tree: string): Promise<ReadonlyMap<string, string>> {
  return new Map((await git.listFiles(`${tree}:`)).map(({ path, oid }) => [path, oid]));
}

/** The outermost folder with a Kptfile that a path is in. */
function packageOf(path: string, files: ReadonlyMap<string, string>): string | undefined {
  const parts = path.split('/');
  return parts.map((_, at) => parts.slice(0, at).join('/')).find((one) => one !== '' && files.has(`${one}/Kptfile`));
}

test('without a reason, Git merges packages file by file, and changes those of the branch alone', async () => {
  await fc.assert(
    fc.asyncProperty(base, side, side, async (files, ofMain, ofHead) => {
      const began = commit(files, []);
      const [main, head] = [commit(changed(files, ofMain), [began]), commit(changed(files, ofHead), [began])];
      const merged = mergeByGit(main, head);
      const { reasons, paths } = await read(main, head);
      if (merged === undefined || reasons.length > 0) return;
      const [was, there, wanted, result] = [
        ...[await filesIn(began), await filesIn(main), await filesIn(head), await filesIn(merged)],
      ] as const;
      for (const path of PATHS) {
        const [old, one, other] = [was.get(path), there.get(path), wanted.get(path)];
        const name = packageOf(path, result);
        // A file that both have changed is a mistake that the check names.
        if (name === undefined || (old !== one && old !== other && one !== other)) continue;
        expect([path, result.get(path)]).toEqual([path, old === other ? one : other]);
        if (result.get(path) === one) continue;
        // The package that a branch has around another one has no Kptfile after the merge, which fails its check.
        const isInside = [...paths].some((around) => name.startsWith(`${around}/`) && wanted.has(`${around}/Kptfile`));
        if (!isInside) expect([...paths]).toContain(name);
      }
    }),
    { numRuns: runs(1000, 40) },
  );
});

test('the reasons stay the same as long as the watched paths and the packages of the main branch do', async () => {
  await fc.assert(
    fc.asyncProperty(base, side, side, edits, async (files, ofMain, ofHead, more) => {
      const began = commit(files, []);
      const before = changed(files, ofMain);
      const [main, head] = [commit(before, [began]), commit(changed(files, ofHead), [began])];
      const later = commit(changed(before, [[], more]), [main]);
      const first = await read(main, head);
      const all = [...first.watched, ...first.paths];
      const at = async (one: Oid) =>
        (await git.statObjects(all.map((path) => `${one}:${path}`))).map((stat) => stat?.oid);
      const [before1, after1] = [await at(main), await at(later)];
      if (before1.some((oid, index) => oid !== after1[index])) return;
      expect((await read(later, head)).reasons).toEqual(first.reasons);
    }),
    { numRuns: runs(1000, 40) },
  );
});
