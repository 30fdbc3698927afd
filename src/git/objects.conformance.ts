import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commitOf, type Subject } from './git-repository.conformance.ts';
import { EMPTY_TREE } from './git-repository.ts';

export function registerObjects(subject: Subject): void {
  describe('objects', () => {
    test('a blob has the id and the bytes that git gives it', async () => {
      const { repository, git, path } = subject;
      for (const data of [Buffer.alloc(0), Buffer.from('text\n'), Buffer.from([0, 255, 10, 13, 0]), bytes(300_000)]) {
        const oid = await repository.writeBlob(data);
        expect(oid).toBe(git(path, ['hash-object', '-t', 'blob', '--stdin'], data));
        const [object] = await repository.readObjects([oid]);
        expect(object).toEqual({ oid, type: 'blob', size: data.length, data });
        await repository.transaction([]);
        expect((await repository.readObjects([oid]))[0]).toEqual(object);
        expect(git(path, ['cat-file', '-s', oid])).toBe(String(data.length));
      }
      subject.fsck(path);
    });

    test('what is loose is not written again, what is packed once more: its pack may be removed', async () => {
      const { repository, git, path } = subject;
      const oid = await repository.writeBlob(Buffer.from('once'));
      const commit = await repository.writeCommit(commitOf(await repository.editTree(undefined, new Map())));
      await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
      git(path, ['update-ref', 'refs/keep/blob', oid]);
      git(path, ['repack', '-a', '-d', '-q']);
      const before = looseObjects(path);
      // The objects are also visible to the writer of a moment ago, and to writers without a cache.
      for (const writer of [repository, await subject.reopen(), await subject.reopen()]) {
        expect(await writer.writeBlob(Buffer.from('once'))).toBe(oid);
        await writer.transaction([]);
        expect(looseObjects(path)).toEqual(writer === repository ? before : [...before, oid].sort());
        expect((await writer.readObjects([oid]))[0]?.data.toString()).toBe('once');
      }
    });

    test('many writers of the same object do not disturb each other', async () => {
      const { repository } = subject;
      const other = await subject.reopen();
      const writers = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? repository : other));
      const oids = await Promise.all(
        writers.map(async (writer) => {
          const oid = await writer.writeBlob(Buffer.from('shared'));
          await writer.transaction([]);
          return oid;
        }),
      );
      expect(new Set(oids).size).toBe(1);
      expect(looseObjects(subject.path)).toEqual([...new Set(oids)]);
      subject.fsck(subject.path);
    });

    test('specifications: ids, paths below commits, trees and tags, in the order of the request', async () => {
      const { repository, git, path } = subject;
      const tree = await repository.editTree(
        undefined,
        new Map([
          ['dir/file name.txt', { data: Buffer.from('a') }],
          ['dir/ünï.txt', { data: Buffer.from('b') }],
          ['top', { data: Buffer.from('c') }],
        ]),
      );
      const commit = await repository.writeCommit(commitOf(tree));
      await repository.transaction([]);
      const tag = git(
        path,
        ['hash-object', '-t', 'tag', '-w', '--stdin'],
        `object ${commit}\ntype commit\ntag v1\ntagger T <t@example.com> 1 +0000\n\nx\n`,
      );
      const objects = await repository.readObjects([
        `${commit}:dir/file name.txt`,
        `${commit}:nothing`,
        `${tag}:dir/ünï.txt`,
        `${tree}:top`,
        `${tree}:top/below`,
        `${commit}:`,
        `${tree}:dir`,
        commit,
        '1234567890123456789012345678901234567890',
        `1234567890123456789012345678901234567890:x`,
        EMPTY_TREE,
      ]);
      expect(
        objects.map((object) => object && (object.type === 'blob' ? object.data.toString() : object.type)),
      ).toEqual(['a', undefined, 'b', 'c', undefined, 'tree', 'tree', 'commit', undefined, undefined, 'tree']);
      expect(objects[5]?.oid).toBe(tree);
      expect((await repository.statObjects([`${commit}:top`, `${commit}:none`]))[0]).toEqual({
        oid: objects[3]?.oid,
        type: 'blob',
        size: 1,
      });
    });

    test('a tag is read through, before it is on disk and after, also one of a tag', async () => {
      const { repository } = subject;
      const tree = await repository.editTree(undefined, new Map([['dir/file', { data: Buffer.from('x') }]]));
      const object = await repository.writeCommit(commitOf(tree));
      const tagger = commitOf(tree).author;
      const inner = await repository.writeTag({ object, type: 'commit', name: 'v1', tagger, message: '' });
      const outer = await repository.writeTag({ object: inner, type: 'tag', name: 'v2', tagger, message: 'two\n' });
      for (const when of ['before', 'after']) {
        const found = await repository.readObjects([outer, `${inner}:dir/file`, `${outer}:dir`, `${outer}:no`]);
        expect(
          found.map((one) => one?.type),
          when,
        ).toEqual(['tag', 'blob', 'tree', undefined]);
        await repository.transaction([]);
      }
      const over = await subject.reopen();
      const outermost = await over.writeTag({ object: outer, type: 'tag', name: 'v3', tagger, message: '' });
      expect((await over.readObjects([`${outermost}:dir/file`]))[0]?.data.toString()).toBe('x');
      subject.fsck(subject.path);
    });

    test('a tag that Git cannot hold is refused', async () => {
      const tagger = commitOf(EMPTY_TREE).author;
      const good = { object: EMPTY_TREE, type: 'tree', name: 'v1', tagger, message: '' } as const;
      const names = ['', 'a\nb', '../v1', 'a..b', 'v1.lock'].map((name) => ({ ...good, name }));
      const others = [
        { ...good, object: 'HEAD' },
        { ...good, message: 'a\0b' },
      ];
      const badName = { ...good, tagger: { ...tagger, name: 'a <b>' } };
      for (const bad of [...names, ...others, badName])
        await expect(subject.repository.writeTag(bad)).rejects.toMatchObject({ code: 'InvalidInput' });
    });

    test('thousands of reads in one call are returned in order', async () => {
      const { repository } = subject;
      const edits = new Map(Array.from({ length: 90 }, (_, n) => [`f${n}`, { data: Buffer.from(`content ${n}`) }]));
      const tree = await repository.editTree(undefined, edits);
      const numbers = Array.from({ length: 1500 }, (_, n) => (n * 7) % 95);
      const objects = await repository.readObjects(numbers.map((n) => `${tree}:f${n}`));
      expect(objects.map((object) => object?.data.toString())).toEqual(
        numbers.map((n) => (n < 90 ? `content ${n}` : undefined)),
      );
    });

    test('refuses specifications that are not ids or could leave the line protocol', async () => {
      const { repository } = subject;
      const oid = await repository.writeBlob(Buffer.from('x'));
      for (const bad of ['HEAD', 'main', oid.slice(0, 10), oid.toUpperCase(), `${oid}^{tree}`, `${oid}\n${oid}`, ''])
        await expect(repository.readObjects([bad])).rejects.toMatchObject({ code: 'InvalidInput' });
      for (const bad of ['a\nb', '../a', './a', 'a/../b', 'a//b', '/a', 'a/', 'a\0b'])
        await expect(repository.readObjects([`${oid}:${bad}`])).rejects.toMatchObject({ code: 'InvalidInput' });
      expect((await repository.readObjects([`${oid}:a\rb`, oid]))[1]?.oid).toBe(oid);
    });

    test('an object above the limit has a size and is not read; other reads continue', async () => {
      const { repository, git, path } = subject;
      const size = 64 * 1024 * 1024 + 1;
      const large = git(path, ['hash-object', '-w', '--stdin'], Buffer.alloc(size));
      const small = await repository.writeBlob(Buffer.from('small'));
      const [first, second, third] = await Promise.allSettled([
        repository.readObjects([small]),
        repository.readObjects([small, large, small]),
        repository.readObjects([small]),
      ]);
      expect(first).toMatchObject({ status: 'fulfilled' });
      expect(second).toMatchObject({ reason: { code: 'LimitExceeded', details: { size } } });
      expect(third).toMatchObject({ status: 'fulfilled' });
      if (repository.engine === 'native') expect((await repository.statObjects([large]))[0]?.size).toBe(size);
    });
  });

  describe('commits', () => {
    test('are written byte for byte as git writes them', async () => {
      const { repository, git, path } = subject;
      const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
      await repository.transaction([]);
      const environmentIsFixed = git(path, ['commit-tree', tree, '-m', 'Ünïcode\n\nbody']);
      expect(await repository.writeCommit(commitOf(tree, [], 'Ünïcode\n\nbody\n'))).toBe(environmentIsFixed);
      const child = commitOf(tree, [environmentIsFixed], '');
      const oid = await repository.writeCommit(child);
      expect(await repository.readCommit(oid)).toEqual({ ...child, oid, signature: undefined });
      await repository.transaction([]);
      expect(git(path, ['cat-file', '-t', oid])).toBe('commit');
      subject.fsck(path);
    });

    test('are signed by the signer, and the signature is read back', async () => {
      const signature = '-----BEGIN PGP SIGNATURE-----\n\nabc\n def\n-----END PGP SIGNATURE-----';
      let payload = '';
      const repository = await subject.reopen({
        signer: async (bytes) => {
          payload = bytes.toString('utf8');
          return `${signature}\n`;
        },
      });
      const oid = await repository.writeCommit(commitOf(EMPTY_TREE, [], 'signed\n\ntext\n'));
      const commit = await repository.readCommit(oid);
      expect(commit).toMatchObject({ signature, message: 'signed\n\ntext\n' });
      await repository.transaction([]);
      const stored = subject.git(subject.path, ['cat-file', 'commit', oid]);
      const header = `gpgsig ${signature.replaceAll('\n', '\n ')}\n`;
      expect(stored).toContain(header);
      expect(`${stored.replace(header, '')}\n`).toBe(payload);
      await repository.editTree(undefined, new Map());
      await repository.transaction([]);
      subject.fsck(subject.path);
    });

    test('and so are tags, with the signature behind the message', async () => {
      const signature = '-----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----';
      const payloads: string[] = [];
      const repository = await subject.reopen({
        signer: async (bytes) => {
          payloads.push(bytes.toString('utf8'));
          return signature;
        },
      });
      expect([repository.signs, subject.repository.signs]).toEqual([true, false]);
      const object = await repository.writeCommit(commitOf(EMPTY_TREE));
      const tagger = commitOf(EMPTY_TREE).author;
      const tag = await repository.writeTag({ object, type: 'commit', name: 'a/v1', tagger, message: 'a v1' });
      const header = `object ${object}\ntype commit\ntag a/v1\ntagger Test <test@example.com> 1700000000 +0000\n`;
      expect(payloads[1]).toBe(`${header}\na v1\n`);
      await repository.editTree(undefined, new Map());
      await repository.transaction([{ type: 'create', ref: 'refs/tags/a/v1', new: tag }]);
      expect(subject.git(subject.path, ['cat-file', 'tag', 'a/v1'])).toBe(`${payloads[1]}${signature}`);
      subject.fsck(subject.path);
    });

    test('a signer that fails or returns nothing writes nothing', async () => {
      const silent = await subject.reopen({ signer: async () => '\n' });
      await expect(silent.writeCommit(commitOf(EMPTY_TREE))).rejects.toMatchObject({ code: 'InvalidInput' });
      const failing = await subject.reopen({ signer: () => Promise.reject(new Error('no key')) });
      await expect(failing.writeCommit(commitOf(EMPTY_TREE))).rejects.toThrow('no key');
    });

    test('of others are read: unknown headers, other encodings, odd people', async () => {
      const { repository, git, path } = subject;
      const head = `tree ${EMPTY_TREE}\n`;
      const write = (text: string | Buffer) =>
        git(path, ['hash-object', '-t', 'commit', '-w', '--literally', '--stdin'], text);
      const latin1 = write(
        Buffer.from(
          `${head}author J\xfcrgen <j@x> 5 +0200\ncommitter C <c@x> 6 -0100\nencoding ISO-8859-1\nmergetag object 1\n type x\nHG:extra y\n\ngr\xfc\xdfe\n`,
          'latin1',
        ),
      );
      expect(await repository.readCommit(latin1)).toMatchObject({
        author: { name: 'Jürgen', email: 'j@x', time: 5000 },
        message: 'grüße\n',
      });
      const odd = write(`${head}author nobody\ncommitter a <b> c <d> 99999999999999999999 +0000\n\n`);
      expect(await repository.readCommit(odd)).toMatchObject({ author: { name: 'nobody', email: '', time: 0 } });
      const unknown = write(`${head}author A <a> 1 +0000\ncommitter A <a> 1 +0000\nencoding made-up\n\nx`);
      expect((await repository.readCommit(unknown)).message).toBe('x');
      const noTree = write('author A <a> 1 +0000\ncommitter A <a> 1 +0000\n\nx');
      await expect(repository.readCommit(noTree)).rejects.toMatchObject({ code: 'Corrupt' });
      await expect(repository.readCommit(EMPTY_TREE)).rejects.toMatchObject({ code: 'NotFound' });
    });

    test('that git could not hold are refused', async () => {
      const { repository } = subject;
      const good = commitOf(EMPTY_TREE);
      const person = good.author;
      for (const bad of [
        { ...good, tree: 'abc' },
        { ...good, parents: ['HEAD'] },
        { ...good, author: { ...person, name: '' } },
        { ...good, author: { ...person, name: 'a\nparent x' } },
        { ...good, author: { ...person, name: 'a <b>' } },
        { ...good, committer: { ...person, email: 'a> b' } },
        { ...good, committer: { ...person, time: Number.NaN } },
        { ...good, committer: { ...person, time: -1 } },
        { ...good, message: 'a\0b' },
      ])
        await expect(repository.writeCommit(bad)).rejects.toMatchObject({ code: 'InvalidInput' });
    });
  });
}

function bytes(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, index) => (index * index) % 251));
}

function looseObjects(path: string): string[] {
  const folders = readdirSync(join(path, 'objects')).filter((name) => name.length === 2);
  const files = folders.flatMap((folder) => readdirSync(join(path, 'objects', folder)).map((name) => folder + name));
  for (const file of files) readFileSync(join(path, 'objects', file.slice(0, 2), file.slice(2)));
  return files;
}
