import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { RefConflictError } from './errors.ts';
import { commitOf, type Subject } from './git-repository.conformance.ts';
import { EMPTY_TREE, type Oid, type RefUpdate, ZERO_OID } from './git-repository.ts';

export function registerRefs(subject: Subject): void {
  describe('refs', () => {
    let commits: Oid[] = [];

    beforeEach(async () => {
      const { repository } = subject;
      await repository.editTree(undefined, new Map());
      commits = [];
      for (const message of ['a', 'b', 'c'])
        commits.push(await repository.writeCommit(commitOf(EMPTY_TREE, [], message)));
    });

    const [A, B, C] = [0, 1, 2].map((index) => () => commits[index] ?? '') as [() => Oid, () => Oid, () => Oid];
    const create = (ref: string, oid = A()): RefUpdate => ({ type: 'create', ref, new: oid });
    const update = (ref: string, old: Oid, oid: Oid): RefUpdate => ({ type: 'update', ref, old, new: oid });
    const remove = (ref: string, old = A()): RefUpdate => ({ type: 'delete', ref, old });
    const verify = (ref: string, old: Oid | null): RefUpdate => ({ type: 'verify', ref, old });

    async function refused(updates: RefUpdate[], kind: string, ref?: string): Promise<RefConflictError> {
      const before = subject.refsOf(subject.path);
      const error = await subject.repository.transaction(updates).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RefConflictError);
      expect(error).toMatchObject({ code: 'Conflict', details: { kind, ...(ref === undefined ? {} : { ref }) } });
      expect(subject.refsOf(subject.path)).toEqual(before);
      return error as RefConflictError;
    }

    test('are created, moved, deleted and verified together', async () => {
      const { repository, path } = subject;
      await repository.transaction([]);
      await repository.transaction([create('refs/heads/main'), create('refs/tags/pkg/v1'), create('refs/x/y/z', B())]);
      expect(await repository.listRefs()).toEqual([
        { name: 'refs/heads/main', oid: A() },
        { name: 'refs/tags/pkg/v1', oid: A() },
        { name: 'refs/x/y/z', oid: B() },
      ]);
      await repository.transaction(
        [
          update('refs/heads/main', A(), B()),
          remove('refs/tags/pkg/v1'),
          verify('refs/x/y/z', B()),
          verify('refs/heads/absent', null),
          create('refs/tags/pkg', C()),
        ].slice(0, 4),
      );
      expect(await repository.resolveRef('refs/heads/main')).toBe(B());
      expect(await repository.resolveRef('refs/tags/pkg/v1')).toBeUndefined();
      expect([...subject.refsOf(path)]).toEqual([
        ['refs/heads/main', B()],
        ['refs/x/y/z', B()],
      ]);
      // The name of a folder that is empty now is free.
      await repository.transaction([create('refs/tags/pkg', C()), verify('refs/heads/main', B())]);
      await repository.transaction([verify('refs/heads/main', B()), verify('refs/heads/none', null)]);
      subject.fsck(path);
    });

    test('an expectation that does not hold changes nothing and names the ref', async () => {
      const { repository } = subject;
      await repository.transaction([create('refs/heads/main'), create('refs/heads/other')]);
      const fine = create('refs/heads/fine');
      await refused([fine, create('refs/heads/main', B())], 'moved', 'refs/heads/main');
      await refused([fine, update('refs/heads/main', B(), C())], 'moved', 'refs/heads/main');
      await refused([remove('refs/heads/main', B()), fine], 'moved', 'refs/heads/main');
      await refused([update('refs/heads/none', A(), B()), fine], 'moved', 'refs/heads/none');
      await refused([fine, remove('refs/heads/none')], 'moved', 'refs/heads/none');
      await refused([fine, verify('refs/heads/main', null)], 'moved', 'refs/heads/main');
      await refused([verify('refs/heads/main', B())], 'moved', 'refs/heads/main');
      await refused([verify('refs/heads/none', A())], 'moved', 'refs/heads/none');
      const error = await refused([remove('refs/heads/other'), verify('refs/heads/main', C())], 'moved');
      expect(error.message).toContain(A());
      await repository.transaction([fine]);
    });

    test('names collide with folders, loose, packed and within one transaction', async () => {
      const { repository, git, path } = subject;
      await repository.transaction([create('refs/heads/drafts/a/b'), create('refs/heads/packed/a/b')]);
      git(path, ['pack-refs', '--all']);
      await repository.transaction([create('refs/heads/loose/a/b')]);
      for (const kind of ['drafts', 'packed', 'loose']) {
        const error = await refused([create(`refs/heads/${kind}/a/b/c`)], 'collision', `refs/heads/${kind}/a/b/c`);
        expect(error.message).toContain(`refs/heads/${kind}/a/b `);
        const above = await refused([create('refs/heads/fine'), create(`refs/heads/${kind}/a`)], 'collision');
        expect(above.message).toContain(`refs/heads/${kind}/a/b`);
        await refused([remove(`refs/heads/${kind}/a/b`), create(`refs/heads/${kind}/a/b/c`)], 'collision');
      }
      await refused([create('refs/heads/new/x/y'), create('refs/heads/new')], 'collision');
      await repository.transaction([remove('refs/heads/drafts/a/b')]);
      await repository.transaction([create('refs/heads/drafts/a/b/c')]);
      await repository.transaction([remove('refs/heads/drafts/a/b/c')]);
      await repository.transaction([create('refs/heads/drafts/a')]);
    });

    test('bad names, ids and doubles are refused before anything is touched', async () => {
      const { repository } = subject;
      const bad = ['main', 'HEAD', 'refs/', 'refs/heads/', 'refs/heads/a..b', 'refs/heads/a b', 'refs/heads/a.lock'];
      bad.push('refs/heads/.a', 'refs/heads/a.', 'refs/heads//a', 'refs/heads/a~1', 'refs/heads/a^', 'refs/heads/a:b');
      bad.push(
        'refs/heads/a?',
        'refs/heads/*',
        'refs/heads/[a',
        'refs/heads/a\\b',
        'refs/heads/@{a',
        'refs/heads/a\nb',
      );
      bad.push(
        'refs/heads/a\0b',
        'refs/heads/\x7f',
        'refs/../x',
        `refs/heads/${'x'.repeat(251)}`,
        'refs/heads/a.lock/b',
      );
      for (const name of bad) {
        await expect(repository.transaction([create(name)]), name).rejects.toMatchObject({ code: 'InvalidInput' });
        await expect(repository.resolveRef(name), name).rejects.toMatchObject({ code: 'InvalidInput' });
      }
      for (const oid of ['', 'abc', ZERO_OID, 'HEAD', A().toUpperCase()])
        await expect(repository.transaction([create('refs/heads/x', oid)])).rejects.toMatchObject({
          code: 'InvalidInput',
        });
      const double = [create('refs/heads/x'), remove('refs/heads/x')];
      await expect(repository.transaction(double)).rejects.toMatchObject({ code: 'InvalidInput' });
      const missing = create('refs/heads/x', '1234567890123456789012345678901234567890');
      await expect(repository.transaction([missing])).rejects.toMatchObject({ code: 'NotFound' });
      const blob = await repository.writeBlob(Buffer.from('x'));
      await expect(repository.transaction([create('refs/heads/x', blob)])).rejects.toMatchObject({
        code: 'InvalidInput',
      });
      await repository.transaction([create('refs/notes/blob', blob), create('refs/heads/ünï@x', A())]);
      expect(subject.refsOf(subject.path).size).toBe(2);
    });

    test('are read where git keeps them: loose, packed, or both', async () => {
      const { repository, git, path } = subject;
      await repository.transaction([]);
      const tag = git(
        path,
        ['hash-object', '-t', 'tag', '-w', '--stdin'],
        `object ${A()}\ntype commit\ntag v1\ntagger T <t@example.com> 1 +0000\n\nx\n`,
      );
      git(
        path,
        ['update-ref', '--stdin'],
        `create refs/tags/a/v1 ${tag}\ncreate refs/tags/b ${A()}\ncreate refs/heads/m ${A()}\n`,
      );
      git(path, ['pack-refs', '--all']);
      git(path, ['update-ref', 'refs/heads/m', B()]);
      git(path, ['update-ref', 'refs/tags/c', C()]);
      git(path, ['symbolic-ref', 'refs/heads/symbolic', 'refs/heads/m']);
      const expected = [...subject.refsOf(path)].map(([name, oid]) => ({ name, oid }));
      expect(await repository.listRefs()).toEqual(expected.filter(({ name }) => name !== 'refs/heads/symbolic'));
      expect(await repository.listRefs(['refs/tags/'])).toEqual(
        expected.filter(({ name }) => name.startsWith('refs/tags/')),
      );
      expect(await repository.listRefs(['refs/heads/m', 'refs/tags/a', 'refs/tags/a/v', 'refs/none/'])).toEqual([
        { name: 'refs/heads/m', oid: B() },
        { name: 'refs/tags/a/v1', oid: tag },
      ]);
      expect(await repository.resolveRef('refs/tags/b')).toBe(A());
      expect(await repository.resolveRef('refs/heads/symbolic')).toBeUndefined();
      expect(await repository.resolveRef('refs/tags/a')).toBeUndefined();
      await expect(repository.listRefs(['heads/'])).rejects.toMatchObject({ code: 'InvalidInput' });
      await expect(repository.listRefs(['refs/../'])).rejects.toMatchObject({ code: 'InvalidInput' });
      // A packed ref is deleted permanently, and the peeled values of the others stay.
      await repository.transaction([remove('refs/tags/b'), remove('refs/heads/m', B())]);
      expect(git(path, ['show-ref', '--tags', '-d'])).toContain(`${A()} refs/tags/a/v1^{}`);
      expect([...subject.refsOf(path).keys()]).not.toContain('refs/heads/m');
      git(path, ['pack-refs', '--all']);
    });

    test('a damaged ref is reported by its name', async () => {
      const { repository, path } = subject;
      writeFileSync(join(path, 'refs/heads/broken'), '');
      await expect(repository.resolveRef('refs/heads/broken')).rejects.toMatchObject({ code: 'Corrupt' });
      await expect(repository.listRefs()).rejects.toThrow('refs/heads/broken');
      await expect(repository.transaction([update('refs/heads/broken', A(), B())])).rejects.toMatchObject({
        code: 'Corrupt',
      });
      mkdirSync(join(path, 'refs/tags/folder'));
      writeFileSync(join(path, 'refs/tags/folder/.junk'), 'x');
      rmSync(join(path, 'refs/heads/broken'));
      expect(await repository.listRefs()).toEqual([]);
    });

    test('the lock of another writer is respected, and removed once it is stale', async () => {
      const { path } = subject;
      await subject.repository.transaction([create('refs/heads/main')]);
      const lock = join(path, 'refs/heads/main.lock');
      writeFileSync(lock, '');
      await refused([update('refs/heads/main', A(), B())], 'locked', 'refs/heads/main');
      const patient = await subject.reopen({ timeouts: { staleLock: 0 } });
      // The first one was observed, which holds for all repositories of a process.
      rmSync(lock);
      writeFileSync(lock, 'a later one');
      const deletion = [remove('refs/heads/main')];
      const stillLocked = () =>
        expect(patient.transaction(deletion)).rejects.toMatchObject({ details: { kind: 'locked' } });
      // Files that a writer leaves if it is killed while it deletes a ref.
      for (const name of ['packed-refs.lock', 'packed-refs.new']) writeFileSync(join(path, name), '');
      await stillLocked();
      rmSync(lock);
      writeFileSync(lock, 'another one');
      await stillLocked();
      await patient.transaction(deletion);
      expect(subject.refsOf(path).size).toBe(0);
    });

    test('a listing contains a transaction completely or not at all', async () => {
      const { repository } = subject;
      await repository.transaction([create('refs/heads/drafts/p'), create('refs/tags/keep')]);
      let running = true;
      const writer = (async () => {
        for (let round = 0; round < 40; round += 1) {
          const [from, to] = round % 2 === 0 ? ['drafts', 'proposed'] : ['proposed', 'drafts'];
          await repository.transaction([remove(`refs/heads/${from}/p`), create(`refs/heads/${to}/p`)]);
          if (round % 10 === 5 && repository.capabilities.maintain) await repository.maintain();
        }
      })().finally(() => {
        running = false;
      });
      let listings = 0;
      while (running) {
        const names = (await repository.listRefs()).map(({ name }) => name);
        expect(names.filter((name) => name.endsWith('/p'))).toHaveLength(1);
        expect(names).toContain('refs/tags/keep');
        listings += 1;
        // A listing of unchanged refs never yields, so the writer would not run.
        await setImmediate();
      }
      await writer;
      expect(listings).toBeGreaterThan(0);
    });

    test('of two tasks that race, each step is won by one', async () => {
      const { repository } = subject;
      const other = repository.capabilities.sharedRefs ? await subject.reopen() : repository;
      await repository.transaction([create('refs/heads/main')]);
      const task = async (mine: typeof repository, name: string) => {
        for (let done = 0; done < 15; ) {
          const old = (await mine.resolveRef('refs/heads/main')) ?? '';
          const next = await mine.writeCommit(commitOf(EMPTY_TREE, [old], `${name} ${done}`));
          const won = await mine.transaction([update('refs/heads/main', old, next)]).then(
            () => true,
            (error: unknown) => {
              expect(error).toBeInstanceOf(RefConflictError);
              return false;
            },
          );
          if (won) done += 1;
        }
      };
      await Promise.all([task(repository, 'one'), task(other, 'two')]);
      expect(subject.git(subject.path, ['rev-list', '--count', 'refs/heads/main'])).toBe('31');
      subject.fsck(subject.path);
    });

    test('any sequence of transactions behaves as a map of names', async () => {
      const names = ['refs/heads/a', 'refs/heads/a/b', 'refs/heads/a/b/c', 'refs/heads/d', 'refs/tags/e'];
      const ref = fc.constantFrom(...names);
      const value = fc.constantFrom(0, 1, 2);
      const change = fc.record({
        type: fc.constantFrom('create', 'update', 'delete', 'verify', 'absent'),
        ref,
        old: value,
        new: value,
        right: fc.boolean(),
      });
      const pack = fc.boolean();
      const steps = fc.array(
        fc.record({ changes: fc.uniqueArray(change, { selector: (one) => one.ref, maxLength: 3 }), pack }),
        { maxLength: 8 },
      );
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const { repository, git, path } = subject;
          const model = new Map<string, Oid>();
          for (const step of sequence) {
            const updates = step.changes.map((one): RefUpdate => {
              // Half of the time the expectation is what the ref really is.
              const old = (one.right ? model.get(one.ref) : undefined) ?? commits[one.old] ?? '';
              const next = commits[one.new] ?? '';
              if (one.type === 'create') return create(one.ref, next);
              if (one.type === 'update') return update(one.ref, old, next);
              if (one.type === 'delete') return remove(one.ref, old);
              return verify(one.ref, one.type === 'absent' ? null : old);
            });
            const holds = updates.every(
              (one) => (model.get(one.ref) ?? null) === (one.type === 'create' ? null : one.old),
            );
            const taken = [...model.keys(), ...updates.map((one) => one.ref)];
            const clashes = updates.some((one) => {
              const others = one.type === 'update' || one.type === 'delete' ? updates.map(({ ref }) => ref) : taken;
              return others.some((name) => name.startsWith(`${one.ref}/`) || one.ref.startsWith(`${name}/`));
            });
            if (holds && !clashes) {
              await repository.transaction(updates);
              for (const one of updates) {
                if (one.type === 'delete') model.delete(one.ref);
                else if (one.type !== 'verify') model.set(one.ref, one.new);
              }
            } else {
              await expect(repository.transaction(updates)).rejects.toBeInstanceOf(RefConflictError);
            }
            if (step.pack) git(path, ['pack-refs', '--all']);
            expect(new Map((await repository.listRefs()).map(({ name, oid }) => [name, oid]))).toEqual(model);
          }
          expect(subject.refsOf(path)).toEqual(model);
          await repository.transaction([...model].map(([name, oid]) => remove(name, oid)));
        }),
        { numRuns: runs(20, 4) },
      );
    });
  });
}
