import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BranchFiles } from '../../../src/delivery/tree/branch-files.ts';
import type { GitRepository, Oid, TreeEdit } from '../../../src/git/git-repository.ts';
import { initRepository } from '../../../src/git/open/open-repository.ts';
import { runs } from '../../../test/support/runs.ts';
import { followBranch, readBranch } from './read-branch.ts';

let folder: string;
let git: GitRepository;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-branch-'));
  git = await initRepository(join(folder, 'site.git'));
});

afterAll(async () => {
  await git.close();
  await rm(folder, { recursive: true, force: true });
});

const AUTHOR = { name: 'anna', email: 'anna@example.com', time: 0 };

async function commit(base: Oid | undefined, edits: ReadonlyMap<string, TreeEdit>): Promise<Oid> {
  const tree = await git.editTree(base, edits);
  return git.writeCommit({
    tree,
    parents: base === undefined ? [] : [base],
    author: AUTHOR,
    committer: AUTHOR,
    message: 'x',
  });
}

function mark(path: string): Buffer {
  const fields = JSON.stringify(['edge', 'packages', path, 1]);
  return Buffer.from(`# Written by Sluice; changes here are overwritten. ${fields}\nresources: []\n`);
}

function contentOf(files: BranchFiles): unknown {
  const { directory } = files;
  const paths = [...files.below(directory)];
  const owners = [...files.owners].sort(([a], [b]) => (a < b ? -1 : 1));
  return { size: files.size, files: paths.map((path) => [path, files.get(path)]), owners };
}

const edit = fc.record({
  path: fc.constantFrom('a', 'a/b', 'c', 'd-e'),
  name: fc.constantFrom('app.yaml', 'kustomization.yaml', 'Kustomization', 'sub/more.yaml'),
  content: fc.constantFrom('one', 'two', 'mark', 'link', 'executable', 'none'),
  isOutside: fc.boolean(),
});

test('property: a branch that is followed over any commits equals one that is read', async () => {
  const directory = fc.constantFrom('', 'k8s', 'clusters/edge');
  const commits = fc.array(fc.array(edit, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(directory, commits, fc.nat(3), async (top, all, jump) => {
      const heads: Oid[] = [];
      const files = new BranchFiles(top);
      let at: Oid | undefined;
      for (const edits of all) {
        const changes = new Map<string, TreeEdit>();
        for (const { path, name, content, isOutside } of edits) {
          const full = [isOutside ? 'elsewhere' : top, path, name].filter((part) => part !== '').join('/');
          if (content === 'none') changes.set(full, null);
          else if (content === 'link') changes.set(full, { oid: await git.writeBlob(mark(path)), mode: '120000' });
          else if (content === 'executable') changes.set(full, { data: mark(path), mode: '100755' });
          else changes.set(full, { data: content === 'mark' ? mark(path) : Buffer.from(content) });
        }
        const head = await commit(heads.at(-1), changes);
        heads.push(head);
        const fresh = await readBranch(git, head, top);
        // Also back to an earlier commit, as a rewritten branch does.
        const past = heads.at(-1 - jump);
        for (const to of past === undefined ? [head] : [past, head]) {
          if (at !== undefined && (await followBranch(git, files, at, to))) at = to;
          else {
            for (const path of [...files.below('')]) files.delete(path);
            const read = await readBranch(git, to, top);
            for (const path of read.below('')) files.set(path, read.get(path) ?? { oid: '' });
            at = to;
          }
        }
        expect(contentOf(files)).toEqual(contentOf(fresh));
      }
    }),
    { numRuns: runs(100) },
  );
});

test('a commit that no longer exists cannot be followed', async () => {
  const files = new BranchFiles('');
  files.set('a/app.yaml', { oid: 'a'.repeat(40) });
  const head = await commit(undefined, new Map([['b/app.yaml', { data: Buffer.from('x') }]]));
  expect(await followBranch(git, files, 'e'.repeat(40), head)).toBe(false);
});
