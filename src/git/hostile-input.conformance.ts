import { readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ALL_RUNS } from '../../test/support/runs.ts';
import { commitOf, type Subject } from './git-repository.conformance.ts';
import type { Oid, TreeEdit } from './git-repository.ts';

/** Paths that must not be written, because of what they mean to Git or to a file system. */
const REFUSED_PATHS = [
  '',
  '/a',
  'a/',
  'a//b',
  '.',
  'a/./b',
  '..',
  'a/../../b',
  '.git',
  'a/.git/config',
  '.GIT/hooks/x',
  '.Git ',
  '.git.',
  '.git...  ',
  '.git::$INDEX_ALLOCATION/x',
  'git~1/config',
  'GIT~1',
  '.g\u200cit/config',
  '.git\u206f',
  '\ufeff.git',
  'a\\b',
  'a\nb',
  'a\rb',
  'a\0b',
  'x'.repeat(256),
  `${'abcdefgh/'.repeat(500)}x`,
  'lone\ud800surrogate',
];

export function registerHostileInput(subject: Subject): void {
  function rawTree(entries: readonly (readonly [mode: string, name: string | Buffer, oid: Oid])[]): Oid {
    const parts = entries.flatMap(([mode, name, oid]) => [
      Buffer.from(`${mode} `),
      typeof name === 'string' ? Buffer.from(name) : name,
      Buffer.from([0]),
      Buffer.from(oid, 'hex'),
    ]);
    return subject.git(
      subject.path,
      ['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'],
      Buffer.concat(parts),
    );
  }

  describe('hostile input', () => {
    test('paths that could leave a folder or reach .git are refused', async () => {
      const { repository } = subject;
      for (const path of REFUSED_PATHS)
        for (const edit of [{ data: Buffer.from('x') }, null] satisfies TreeEdit[])
          await expect(repository.editTree(undefined, new Map([[path, edit]])), path).rejects.toMatchObject({
            code: 'InvalidInput',
          });
      const fine = ['.gitignore', '.github/x', 'git', 'a.git/b', '...', 'ünï/日本', '-rf', 'a b', '.git-x'];
      const tree = await repository.editTree(
        undefined,
        new Map(fine.map((path) => [path, { data: Buffer.from(path) }])),
      );
      expect((await repository.listFiles(tree)).map(({ path }) => path).sort()).toEqual([...fine].sort());
    });

    test('any names in a tree are data', async () => {
      const { repository } = subject;
      const blob = await repository.writeBlob(Buffer.from('x'));
      const link = await repository.writeBlob(Buffer.from('/etc/passwd'));
      await repository.transaction([]);
      const inner = rawTree([['100644', 'config', blob]]);
      const tree = rawTree([
        ['100644', '\x1b[2J', blob],
        ['100644', '..', blob],
        ['40000', '.git', inner],
        ['100644', 'a\nb', blob],
        ['120000', 'evil', link],
        ['100644', Buffer.from('latin1-\xff', 'latin1'), blob],
        ['160000', 'module', '1234567890123456789012345678901234567890'],
      ]);
      const entries = await repository.readTree(tree);
      expect(entries?.map(({ mode, name }) => `${mode} ${name}`)).toEqual([
        '100644 \x1b[2J',
        '100644 ..',
        '040000 .git',
        '100644 a\nb',
        '120000 evil',
        '100644 latin1-\ufffd',
        '160000 module',
      ]);
      const files = await repository.listFiles(tree);
      expect(files.map(({ path }) => path)).toContain('.git/config');
      expect((await repository.readObjects([`${tree}:evil`]))[0]?.data.toString()).toBe('/etc/passwd');
      expect(await repository.readObjects([`${tree}:evil/passwd`, `${tree}:module`, `${tree}:module/x`])).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
      // Entries that are not edited stay unchanged byte for byte, even with a name that is not UTF-8.
      const edited = await repository.editTree(tree, new Map([['new', { data: Buffer.from('y') }]]));
      await repository.transaction([]);
      const raw = subject.git(subject.path, ['ls-tree', '-z', '--name-only', edited]);
      expect(raw.split('\0')).toContain('new');
      expect(await repository.editTree(edited, new Map([['new', null]]))).toBe(tree);
    });

    test('malformed trees are an error, not half read', async () => {
      const { repository } = subject;
      const blob = await repository.writeBlob(Buffer.from('x'));
      const malformed = [
        rawTree([
          ['100644', 'a', blob],
          ['100755', 'a', blob],
        ]),
        rawTree([
          ['100644', 'a', blob],
          ['100644', 'a.b', blob],
          ['40000', 'a', blob],
        ]),
        rawTree([
          ['100644', 'b', blob],
          ['100644', 'a', blob],
        ]),
        rawTree([['1006x4', 'a', blob]]),
        rawTree([['', 'a', blob]]),
        rawTree([['100644', '', blob]]),
        rawTree([['100644', 'a/b', blob]]),
        rawTree([['100644', 'a', blob.slice(0, 20)]]),
        subject.git(subject.path, ['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'], 'garbage'),
      ];
      for (const oid of malformed) {
        await expect(repository.readTree(oid), oid).rejects.toMatchObject({ code: 'Corrupt', name: 'SluiceError' });
        await expect(repository.listFiles(oid), oid).rejects.toMatchObject({ code: 'Corrupt' });
        await expect(repository.editTree(oid, new Map([['x', null]])), oid).rejects.toMatchObject({ code: 'Corrupt' });
      }
      // They were not damaged on this disk.
      expect(repository.damage).toBe(undefined);
    });

    test('modes that git does not write are read as git reads them, and stay as they are', async () => {
      const { repository, path, git } = subject;
      const blob = await repository.writeBlob(Buffer.from('x'));
      const folder = rawTree([['100600', 'x', blob]]);
      const tree = rawTree([
        ['100664', 'a', blob],
        ['100640', 'b', blob],
        ['100711', 'c', blob],
        ['0100644', 'd', blob],
        ['120777', 'e', blob],
        ['040000', 'f', folder],
        // Neither file nor folder: Git takes it for a submodule, and accepts it without the object.
        ['644', 'g', '1234567890123456789012345678901234567890'],
      ]);
      await repository.transaction([]);
      const lines = git(path, ['ls-tree', '-r', tree]).split('\n');
      const asGit = lines.map((line) => `${line.slice(0, 6)} ${line.slice(line.indexOf('\t') + 1)}`);
      expect((await repository.listFiles(tree)).map((file) => `${file.mode} ${file.path}`)).toEqual(asGit);
      expect(asGit).toEqual(['100644 a', '100644 b', '100755 c', '100644 d', '120000 e', '100644 f/x', '160000 g']);
      const edited = await repository.editTree(tree, new Map([['new', { data: Buffer.from('y') }]]));
      await repository.transaction([]);
      expect(await repository.editTree(edited, new Map([['new', null]]))).toBe(tree);
      expect(await repository.editTree(tree, new Map([['b', { oid: blob, mode: '100644' }]]))).toBe(tree);
      const commit = await repository.writeCommit(commitOf(tree));
      await repository.transaction([]);
      const specifications = [`${commit}:none`, `${commit}:g`, `${commit}:g/below`];
      expect(await repository.readObjects(specifications)).toEqual([undefined, undefined, undefined]);
    });

    test('what any user can push at the end of a path is no damage', async () => {
      const { repository } = subject;
      const blob = await repository.writeBlob(Buffer.from('x'));
      const tagOf = (object: Oid, type: 'blob' | 'tag' | 'tree') =>
        repository.writeTag({ object, type, name: 'x', tagger: commitOf(blob).author, message: 'x' });
      const tag = await tagOf(blob, 'blob');
      const unsorted = rawTree([
        ['100644', 'z', blob],
        ['40000', 'evil', rawTree([['100644', 'x', blob]])],
      ]);
      const commit = await repository.writeCommit(commitOf(unsorted));
      const specifications = [tag, await tagOf(tag, 'tag'), blob, commit, await tagOf(unsorted, 'tree')].flatMap(
        (oid) => [`${oid}:evil`, `${oid}:evil/none`],
      );
      await repository.transaction([]);
      expect(await repository.statObjects(specifications)).toEqual(specifications.map(() => undefined));
      expect(repository.damage).toBe(undefined);
    });

    test('a commit or tag that leads to a missing object is damage', async () => {
      const { repository, path } = subject;
      const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('lost') }]]));
      const commit = await repository.writeCommit(commitOf(tree));
      const tagger = commitOf(tree).author;
      const tag = await repository.writeTag({ object: commit, type: 'commit', name: 'x', tagger, message: 'x' });
      await repository.transaction([]);
      rmSync(looseFile(path, tree));
      for (const lost of [tree, commit]) {
        const reader = await subject.reopen();
        await expect(reader.statObjects([`${tag}:a`]), lost).rejects.toMatchObject({ name: 'DamageError' });
        expect(reader.damage?.code).toBe('Corrupt');
        rmSync(looseFile(path, commit), { force: true });
      }
    });

    test('trees that multiply, or never end, meet a limit', async () => {
      const { repository } = subject;
      const blob = await repository.writeBlob(Buffer.from('x'));
      const names = Array.from({ length: 10 }, (_, n) => `${n}`);
      let bomb = rawTree([['100644', 'f', blob]]);
      let hollow = rawTree([]);
      for (let depth = 0; depth < 8; depth += 1) {
        const [full, empty] = [bomb, hollow];
        bomb = rawTree(names.map((name) => ['40000', name, full]));
        hollow = rawTree(names.map((name) => ['40000', name, empty]));
      }
      const small = await repository.editTree(undefined, new Map([['f', { data: Buffer.from('x') }]]));
      for (const tree of [bomb, hollow]) {
        await expect(repository.listFiles(tree, 1000)).rejects.toMatchObject({ code: 'LimitExceeded' });
        await expect(repository.diffTrees(undefined, tree)).rejects.toMatchObject({ code: 'LimitExceeded' });
      }
      let deep = small;
      for (let depth = 0; depth < 60; depth += 1) deep = rawTree([['40000', 'n'.repeat(100), deep]]);
      await expect(repository.listFiles(deep)).rejects.toMatchObject({ code: 'LimitExceeded' });
      await expect(repository.diffTrees(small, deep)).rejects.toMatchObject({ code: 'LimitExceeded' });
      let narrow = small;
      for (let depth = 0; depth < 256; depth += 1) narrow = rawTree([['40000', 'n', narrow]]);
      expect(await repository.listFiles(narrow)).toHaveLength(1);
      const below = rawTree([['40000', 'n', narrow]]);
      await expect(repository.listFiles(below)).rejects.toMatchObject({ code: 'LimitExceeded' });
      await expect(repository.diffTrees(small, below)).rejects.toMatchObject({ code: 'LimitExceeded' });
    });

    // With all runs at the limit that there is, else at a smaller one.
    const limit = ALL_RUNS ? undefined : 5_000;
    test(`${limit ?? 100_000} entries are listed, one more is not`, async () => {
      const { repository } = subject;
      const blob = await repository.writeBlob(Buffer.from('x'));
      const entries = Array.from(
        { length: limit ?? 100_000 },
        (_, n) => ['100644', `f${String(n).padStart(6, '0')}`, blob] as const,
      );
      const tree = rawTree(entries);
      expect(await repository.listFiles(tree, limit)).toHaveLength(entries.length);
      const above = rawTree([...entries, ['100644', 'g', blob]]);
      await expect(repository.listFiles(above, limit)).rejects.toMatchObject({ code: 'LimitExceeded' });
      expect(await repository.diffTrees(tree, above)).toHaveLength(1);
    });

    test('a missing or damaged object is an error where it is referred to, and absent where it is not', async () => {
      const { repository, path } = subject;
      const tree = await repository.editTree(
        undefined,
        new Map([
          ['good/file', { data: Buffer.from('good') }],
          ['lost/file', { data: Buffer.from('lost') }],
          ['broken/file', { data: Buffer.from('broken') }],
        ]),
      );
      const commit = await repository.writeCommit(commitOf(tree));
      await repository.transaction([]);
      const [lost, broken] = await repository.statObjects([`${tree}:lost`, `${tree}:broken/file`]);
      rmSync(looseFile(path, lost?.oid ?? ''));
      rmSync(looseFile(path, broken?.oid ?? ''));
      writeFileSync(looseFile(path, broken?.oid ?? ''), 'garbage');
      const reader = await subject.reopen();
      for (const specification of [`${commit}:lost/file`, `${commit}:lost`, `${commit}:broken/file`, broken?.oid ?? ''])
        await expect(reader.readObjects([specification]), specification).rejects.toMatchObject({ code: 'Corrupt' });
      await expect(reader.listFiles(tree)).rejects.toMatchObject({ code: 'Corrupt' });
      expect((await reader.readObjects([`${commit}:good/none`, `${commit}:good/file`]))[1]?.data.toString()).toBe(
        'good',
      );
      expect(await reader.readObjects([`${commit}:none/file`, lost?.oid ?? ''])).toEqual([undefined, undefined]);
    });

    test('a damaged pack is an error, and what can be read is still read', async () => {
      const { repository, git, path } = subject;
      const data = Buffer.from(Array.from({ length: 20_000 }, (_, n) => (n * 7919) % 256));
      const tree = await repository.editTree(undefined, new Map([['big', { data }]]));
      const commit = await repository.writeCommit(commitOf(tree));
      await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
      git(path, ['repack', '-a', '-d', '-q']);
      const other = await repository.writeBlob(Buffer.from('loose'));
      await repository.transaction([]);
      const folder = join(path, 'objects/pack');
      const pack = readdirSync(folder).find((name) => name.endsWith('.pack')) ?? '';
      rmSync(join(folder, pack.replace('.pack', '.rev')), { force: true });
      truncateSync(join(folder, pack), 200);
      const reader = await subject.reopen();
      await expect(reader.readObjects([`${commit}:big`])).rejects.toMatchObject({ code: 'Corrupt' });
      expect((await reader.readObjects([other]))[0]?.data.toString()).toBe('loose');
    });
  });
}

function looseFile(path: string, oid: Oid): string {
  return join(path, 'objects', oid.slice(0, 2), oid.slice(2));
}
