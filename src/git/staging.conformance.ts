import { readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { commitOf, type Subject } from './git-repository.conformance.ts';
import { EMPTY_TREE, type Oid, type RefUpdate, type TreeEdit } from './git-repository.ts';

const text = (content: string): TreeEdit => ({ data: Buffer.from(content) });

export function registerStaging(subject: Subject): void {
  describe('objects that wait for a transaction', () => {
    test('are read by id and by path, through trees in memory and on disk', async () => {
      const { repository } = subject;
      const earlier = await subject.reopen();
      const before = await earlier.editTree(undefined, new Map([['old/deep/file', text('old')]]));
      await earlier.transaction([]);
      const onDisk = looseFiles(subject.path);

      const blob = await repository.writeBlob(Buffer.from('given'));
      const given = await repository.editTree(undefined, new Map([['x', text('x')]]));
      const after = await repository.editTree(
        before,
        new Map<string, TreeEdit>([
          ['new/dir/ünï', text('new')],
          ['blob', { oid: blob, mode: '100755' }],
          ['tree', { oid: given, mode: '040000' }],
          ['module', { oid: '1234567890123456789012345678901234567890', mode: '160000' }],
        ]),
      );
      const commit = await repository.writeCommit(commitOf(after));
      const older = await repository.writeCommit(commitOf(before));
      const specifications = [
        `${commit}:new/dir/ünï`,
        `${after}:old/deep/file`,
        `${commit}:old`,
        `${commit}:`,
        `${older}:old/deep/file`,
        `${older}:`,
        `${commit}:blob`,
        `${commit}:tree/x`,
        `${commit}:none`,
        `${commit}:new/none`,
        `${commit}:old/none/x`,
        `${commit}:blob/x`,
        `${commit}:module`,
        `${commit}:module/x`,
        `${blob}:`,
        `${blob}:x`,
        commit,
        before,
      ];
      const objects = await repository.readObjects(specifications);
      expect(objects.map((object) => object && (object.type === 'blob' ? `${object.data}` : object.type))).toEqual([
        ...['new', 'old', 'tree', 'tree', 'old', 'tree', 'given', 'x'],
        ...Array.from({ length: 8 }, () => undefined),
        ...['commit', 'tree'],
      ]);
      const stats = await repository.statObjects(specifications);
      expect(stats).toEqual(
        objects.map((object) => object && { oid: object.oid, type: object.type, size: object.data.length }),
      );
      const paths = ['blob', 'module', 'new/dir/ünï', 'old/deep/file', 'tree/x'];
      expect((await repository.listFiles(`${commit}:`)).map(({ path }) => path)).toEqual(paths);
      expect((await repository.diffTrees(before, after)).map(({ path }) => path)).toEqual(
        paths.filter((path) => path !== 'old/deep/file'),
      );
      expect(await repository.readTree(`${commit}:new/dir`)).toMatchObject([{ name: 'ünï' }]);
      expect(await repository.readCommit(commit)).toMatchObject({ tree: after });
      const again = await repository.editTree(commit, new Map([['old/deep/more', text('more')]]));
      expect((await repository.readObjects([`${again}:old/deep/more`]))[0]?.data.toString()).toBe('more');

      // No other process sees them, until a transaction writes them to the disk.
      const other = await subject.reopen();
      expect(await other.statObjects([commit, after, blob])).toEqual([undefined, undefined, undefined]);
      expect(looseFiles(subject.path)).toEqual(onDisk);
      await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
      expect(await other.readObjects(specifications)).toEqual(objects);
      expect(await repository.readObjects(specifications)).toEqual(objects);
      subject.fsck(subject.path);
    });

    test('are not changed by what writers and readers do with their buffers', async () => {
      const { repository } = subject;
      const data = Buffer.from('content');
      const oid = await repository.writeBlob(data);
      data.fill(0);
      for (const moment of ['waiting', 'on disk']) {
        const [object] = await repository.readObjects([oid]);
        expect(object?.data.toString(), moment).toBe('content');
        object?.data.fill(0);
        await repository.transaction([]);
      }
      expect((await repository.readObjects([oid]))[0]?.data.toString()).toBe('content');
      subject.fsck(subject.path);
    });

    test('leave nothing on disk if nothing needs them', async () => {
      const { path } = subject;
      const repository = await subject.reopen();
      await repository.writeCommit(commitOf(await repository.editTree(undefined, new Map([['a', text('a')]]))));
      await repository.close();
      expect(looseFiles(path)).toEqual([]);
      await expect(repository.writeBlob(Buffer.from('late'))).rejects.toMatchObject({ code: 'Internal' });
      await expect(repository.transaction([])).rejects.toMatchObject({ code: 'Internal' });
    });

    test('outlive a transaction that is refused', async () => {
      const { repository } = subject;
      const commit = await repository.writeCommit(commitOf(await repository.editTree(undefined, new Map())));
      const refused: RefUpdate[] = [
        { type: 'create', ref: 'refs/heads/main', new: commit },
        { type: 'verify', ref: 'refs/heads/other', old: commit },
      ];
      await expect(repository.transaction(refused)).rejects.toMatchObject({ code: 'Conflict' });
      expect((await repository.readCommit(commit)).tree).toBe(EMPTY_TREE);
      await repository.transaction(refused.slice(0, 1));
      subject.fsck(subject.path);
    });

    test('stay where they are if the disk refuses them, and no ref changes', async () => {
      const { repository, path } = subject;
      const edits = Array.from({ length: 30 }, (_, n) => [`f${n}`, text(`${n}`)] as const);
      const tree = await repository.editTree(undefined, new Map(edits));
      const commit = await repository.writeCommit(commitOf(tree));
      const create: RefUpdate = { type: 'create', ref: 'refs/heads/main', new: commit };
      const obstacle = join(path, 'objects', commit.slice(0, 2));
      symlinkSync(join(path, 'nowhere'), obstacle);
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const both = await Promise.allSettled([repository.transaction([create]), repository.transaction([])]);
        expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      }
      expect(subject.refsOf(path).size).toBe(0);
      expect(looseFiles(path)).toEqual([]);
      expect((await repository.readObjects([`${commit}:f7`]))[0]?.data.toString()).toBe('7');
      rmSync(obstacle);
      await repository.transaction([create]);
      expect(looseFiles(path)).toHaveLength(32);
      subject.fsck(path);
    });

    test('are written early when they are too many', async () => {
      const { repository, path } = subject;
      const oids: Oid[] = [];
      for (let number = 0; number < 20; number += 1)
        oids.push(await repository.writeBlob(Buffer.alloc(1024 * 1024, number)));
      expect(looseFiles(path).length).toBeGreaterThan(10);
      expect(looseFiles(path).length).toBeLessThan(20);
      const stats = await repository.statObjects(oids);
      expect(stats.every((stat) => stat?.size === 1024 * 1024)).toBe(true);
      await repository.transaction([]);
      expect(looseFiles(path)).toHaveLength(20);
      subject.fsck(path);
    });

    test('any mixture of writes, reads and transactions behaves as maps', async () => {
      const content = fc.constantFrom('1', '2', '3', '4');
      const path = fc.constantFrom('a', 'b/c', 'b/d', 'e/f/g');
      const ref = fc.constantFrom('refs/heads/x', 'refs/heads/y', 'refs/tags/z');
      const step = fc.oneof(
        fc.record({ kind: fc.constant('blob' as const), content }),
        fc.record({ kind: fc.constant('commit' as const), ref, path, content: fc.option(content) }),
        fc.record({ kind: fc.constant('move' as const), ref }),
        fc.record({ kind: fc.constant('flush' as const) }),
        fc.record({ kind: fc.constant('read' as const), ref, path }),
      );
      // The steps of one round run at the same time, each on a line of work of its own.
      const rounds = fc.array(fc.uniqueArray(step, { selector: lineOf, maxLength: 4 }), { maxLength: 8 });
      let run = 0;
      await fc.assert(
        fc.asyncProperty(rounds, async (sequence) => {
          run += 1;
          const mark = run;
          const repository = await subject.reopen();
          const files = new Map<string, Map<string, string>>();
          const tips = new Map<string, Oid>();
          const moved = new Map<string, Oid>();
          const perform = async (one: (typeof sequence)[number][number]) => {
            switch (one.kind) {
              case 'blob': {
                const oid = await repository.writeBlob(Buffer.from(`${mark} ${one.content}`));
                expect((await repository.readObjects([oid]))[0]?.data.toString()).toBe(`${mark} ${one.content}`);
                return;
              }
              case 'commit': {
                const now = files.get(one.ref) ?? new Map([['run', `${mark}`]]);
                const edit = one.content === null ? null : text(one.content);
                const base = tips.get(one.ref);
                const edits = new Map([
                  [one.path, edit],
                  ...(base === undefined ? [['run', text(`${mark}`)] as const] : []),
                ]);
                const tree = await repository.editTree(base, edits);
                if (one.content === null) now.delete(one.path);
                else now.set(one.path, one.content);
                files.set(one.ref, now);
                const parents = base === undefined ? [] : [base];
                tips.set(one.ref, await repository.writeCommit(commitOf(tree, parents, `${mark} ${one.ref}`)));
                return;
              }
              case 'move': {
                const [old, next] = [moved.get(one.ref), tips.get(one.ref)];
                if (next === undefined || next === old) return;
                await repository.transaction([
                  old === undefined
                    ? { type: 'create', ref: one.ref, new: next }
                    : { type: 'update', ref: one.ref, old, new: next },
                ]);
                moved.set(one.ref, next);
                return;
              }
              case 'flush':
                return repository.transaction([]);
              case 'read': {
                const tip = tips.get(one.ref);
                if (tip === undefined) return;
                const [object] = await repository.readObjects([`${tip}:${one.path}`]);
                expect(object?.data.toString()).toBe(files.get(one.ref)?.get(one.path));
              }
            }
          };
          for (const round of sequence) await Promise.all(round.map(perform));
          const observer = await subject.reopen();
          for (const [name, tip] of tips) {
            const listed = await repository.listFiles(`${tip}:`);
            expect(listed.map((file) => file.path).sort()).toEqual([...(files.get(name)?.keys() ?? [])].sort());
          }
          expect(new Map((await observer.listRefs()).map(({ name, oid }) => [name, oid]))).toEqual(moved);
          for (const tip of moved.values()) {
            const listed = await observer.listFiles(`${tip}:`);
            const contents = await observer.readObjects(listed.map(({ oid }) => oid));
            expect(contents.every((object) => object !== undefined)).toBe(true);
          }
          await repository.transaction([...moved].map(([name, old]) => ({ type: 'delete', ref: name, old })));
          await Promise.all([repository.close(), observer.close()]);
        }),
        { numRuns: runs(15, 3) },
      );
      subject.fsck(subject.path);
    });
  });
}

/** Steps on the same line cannot run at the same time. */
function lineOf(step: { readonly kind: string; readonly ref?: string }): string {
  return step.ref ?? step.kind;
}

/** Everything in the folders of loose objects, also what has no name of an object. */
function looseFiles(path: string): string[] {
  const objects = join(path, 'objects');
  const folders = readdirSync(objects, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && entry.name.length === 2,
  );
  return folders.flatMap(({ name }) => readdirSync(join(objects, name)).map((file) => name + file)).sort();
}
