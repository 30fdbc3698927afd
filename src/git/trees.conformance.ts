import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { commitOf, type Subject } from './git-repository.conformance.ts';
import { EMPTY_TREE, type GitRepository, type Oid, type TreeEdit } from './git-repository.ts';

const text = (content: string): TreeEdit => ({ data: Buffer.from(content) });

export function registerTrees(subject: Subject): void {
  describe('trees', () => {
    test('edits give the tree that git would build', async () => {
      const { repository, git, path } = subject;
      const first = await repository.editTree(
        undefined,
        new Map<string, TreeEdit>([
          ['a.b', text('1')],
          ['a/x', text('2')],
          ['a0', { data: Buffer.from('3'), mode: '100755' }],
          ['deep/er/file', text('4')],
        ]),
      );
      expect(await listing(subject, first)).toEqual(['100644 a.b', '100644 a/x', '100755 a0', '100644 deep/er/file']);
      const link = await repository.writeBlob(Buffer.from('a0'));
      const second = await repository.editTree(
        first,
        new Map<string, TreeEdit>([
          ['a0', text('3 changed')],
          ['link', { oid: link, mode: '120000' }],
          ['module', { oid: '1234567890123456789012345678901234567890', mode: '160000' }],
          ['deep/er/file', null],
          ['not/there', null],
          ['a.b/below/a/file', null],
        ]),
      );
      expect(await listing(subject, second)).toEqual([
        '100644 a.b',
        '100644 a/x',
        '100755 a0',
        '120000 link',
        '160000 module',
      ]);
      git(path, ['read-tree', `--index-output=${path}/index`, second]);
      expect(git(path, ['write-tree', '--missing-ok'])).toBe(second);
      expect(await repository.editTree(second, new Map([['a0', text('3 changed')]]))).toBe(second);
      subject.fsck(path);
    });

    test('start from a commit, and end with the empty tree', async () => {
      const { repository } = subject;
      const tree = await repository.editTree(undefined, new Map([['a/b', text('x')]]));
      const commit = await repository.writeCommit(commitOf(tree));
      expect(await repository.editTree(commit, new Map())).toBe(tree);
      expect(await repository.editTree(commit, new Map([['a', null]]))).toBe(EMPTY_TREE);
      expect(await repository.editTree(EMPTY_TREE, new Map([['a/b', text('x')]]))).toBe(tree);
      expect(await repository.readTree(EMPTY_TREE)).toEqual([]);
      await repository.writeCommit(commitOf(EMPTY_TREE, [commit]));
      await repository.transaction([]);
      subject.fsck(subject.path);
    });

    test('a folder can be put in place by its id and edited in the same call', async () => {
      const { repository } = subject;
      const source = await repository.editTree(
        undefined,
        new Map([
          ['pkg/Kptfile', text('v1')],
          ['pkg/sub/a.yaml', text('a')],
          ['pkg/sub/b.yaml', text('b')],
        ]),
      );
      const [stat] = await repository.statObjects([`${source}:pkg`]);
      const oid = stat?.oid ?? '';
      const target = await repository.editTree(
        source,
        new Map<string, TreeEdit>([
          ['copy', { oid, mode: '040000' }],
          ['copy/Kptfile', text('v2')],
          ['copy/sub/b.yaml', null],
          ['pkg', null],
          ['pkg/only', text('new')],
          ['empty', { oid: EMPTY_TREE, mode: '040000' }],
        ]),
      );
      expect((await repository.listFiles(target)).map(({ path }) => path)).toEqual([
        'copy/Kptfile',
        'copy/sub/a.yaml',
        'pkg/only',
      ]);
      expect((await repository.readObjects([`${target}:copy/Kptfile`]))[0]?.data.toString()).toBe('v2');
    });

    test('files and folders never replace each other silently', async () => {
      const { repository } = subject;
      const base = await repository.editTree(
        undefined,
        new Map([
          ['file', text('x')],
          ['folder/a', text('x')],
        ]),
      );
      const refused: [string, TreeEdit][][] = [
        [['file/below', text('y')]],
        [['folder', text('y')]],
        [
          ['new', text('y')],
          ['new/below', text('y')],
        ],
      ];
      for (const edits of refused)
        await expect(repository.editTree(base, new Map(edits))).rejects.toMatchObject({ code: 'InvalidInput' });
      const swapped = await repository.editTree(
        base,
        new Map<string, TreeEdit>([
          ['file', null],
          ['file/below', text('y')],
          ['folder/a', null],
          ['folder', text('y')],
        ]),
      );
      expect(await listing(subject, swapped)).toEqual(['100644 file/below', '100644 folder']);
    });

    test('objects given by id must exist and fit their mode', async () => {
      const { repository } = subject;
      const blob = await repository.writeBlob(Buffer.from('x'));
      const missing = '1234567890123456789012345678901234567890';
      const edit = (oid: Oid, mode: '040000' | '100644') => new Map<string, TreeEdit>([['a', { oid, mode }]]);
      await expect(repository.editTree(undefined, edit(missing, '100644'))).rejects.toMatchObject({ code: 'NotFound' });
      await expect(repository.editTree(undefined, edit(blob, '040000'))).rejects.toMatchObject({
        code: 'InvalidInput',
      });
      await expect(repository.editTree(missing, new Map())).rejects.toMatchObject({ code: 'NotFound' });
      await expect(repository.editTree(blob, new Map())).rejects.toMatchObject({ code: 'NotFound' });
    });

    test('readTree and listFiles name what they cannot read', async () => {
      const { repository } = subject;
      const tree = await repository.editTree(undefined, new Map([['a/b', text('x')]]));
      const commit = await repository.writeCommit(commitOf(tree));
      expect(await repository.readTree(`${commit}:a`)).toMatchObject([{ mode: '100644', name: 'b' }]);
      expect(await repository.readTree(`${commit}:a/b`)).toBeUndefined();
      expect(await repository.readTree(`${commit}:none`)).toBeUndefined();
      expect(await repository.listFiles(`${commit}:a`)).toMatchObject([{ path: 'b' }]);
      await expect(repository.listFiles(`${commit}:none`)).rejects.toMatchObject({ code: 'NotFound' });
      await expect(repository.listFiles(tree, 0)).rejects.toMatchObject({ code: 'LimitExceeded' });
    });

    test('differences are those that git finds', async () => {
      const { repository, git, path } = subject;
      const before = await repository.editTree(
        undefined,
        new Map([
          ['same/a', text('1')],
          ['dir/changed', text('1')],
          ['dir/removed', text('1')],
          ['swap', text('1')],
        ]),
      );
      const after = await repository.editTree(
        before,
        new Map<string, TreeEdit>([
          ['dir/changed', { data: Buffer.from('1'), mode: '100755' }],
          ['dir/removed', null],
          ['swap', null],
          ['swap/in', text('2')],
          ['added/b', text('2')],
        ]),
      );
      const changes = await repository.diffTrees(before, after);
      await repository.transaction([]);
      expect(await repository.diffTrees(before, after)).toEqual(changes);
      const raw = git(path, ['diff-tree', '-r', '--no-renames', before, after]).split('\n');
      const expected = raw.map((line) => line.split('\t')[1]).sort();
      expect(changes.map((change) => change.path)).toEqual(expected);
      expect(changes[1]).toMatchObject({ path: 'dir/changed', before: { mode: '100644' }, after: { mode: '100755' } });
      expect(await repository.diffTrees(after, after)).toEqual([]);
      const all = await repository.diffTrees(undefined, after);
      expect(all.map((change) => change.path)).toEqual((await repository.listFiles(after)).map((file) => file.path));
    });

    test('any sequence of edits equals edits of a map of paths', async () => {
      const segment = fc.constantFrom('a', 'b', 'a.b', 'a-b', 'A', 'é');
      const filePath = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
      const change = fc.tuple(filePath, fc.option(fc.constantFrom('1', '2', '3'), { freq: 3, nil: null }));
      const steps = fc.array(fc.array(change, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 });
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const { repository } = subject;
          let tree: Oid = EMPTY_TREE;
          let model = new Map<string, string>();
          for (const step of sequence) {
            const changes = new Map(step);
            const edits = new Map(
              [...changes].map(([path, content]) => [path, content === null ? null : text(content)]),
            );
            const next = applyToModel(model, changes);
            if (next === undefined) {
              await expect(repository.editTree(tree, edits)).rejects.toMatchObject({ code: 'InvalidInput' });
            } else {
              tree = await repository.editTree(tree, edits);
              model = next;
              expect(await contents(repository, tree)).toEqual(model);
            }
          }
          const fresh = new Map([...model].map(([path, content]) => [path, text(content)]));
          expect(await repository.editTree(undefined, fresh)).toBe(tree);
        }),
        { numRuns: runs(40, 4) },
      );
      await subject.repository.transaction([]);
      subject.fsck(subject.path);
    });
  });
}

/** Removals first, then new files; undefined where a file and a folder would have the same name. */
function applyToModel(
  model: ReadonlyMap<string, string>,
  changes: ReadonlyMap<string, string | null>,
): Map<string, string> | undefined {
  const next = new Map(model);
  for (const [path, content] of changes)
    if (content === null)
      for (const name of model.keys()) if (name === path || name.startsWith(`${path}/`)) next.delete(name);
  for (const [path, content] of changes) if (content !== null) next.set(path, content);
  for (const path of next.keys()) for (const other of next.keys()) if (other.startsWith(`${path}/`)) return undefined;
  return next;
}

async function contents(repository: GitRepository, tree: Oid): Promise<Map<string, string>> {
  const files = await repository.listFiles(tree);
  const objects = await repository.readObjects(files.map(({ oid }) => oid));
  return new Map(files.map(({ path }, index) => [path, objects[index]?.data.toString() ?? '']));
}

async function listing({ git, path, repository }: Subject, tree: Oid): Promise<string[]> {
  await repository.transaction([]);
  const lines = git(path, ['ls-tree', '-r', '-z', tree]).split('\0');
  return lines.filter((line) => line !== '').map((line) => `${line.slice(0, 6)} ${line.split('\t')[1]}`);
}
