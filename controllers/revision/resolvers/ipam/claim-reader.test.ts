import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GitRepository, Oid, TreeEdit } from '../../../../src/git/git-repository.ts';
import { initRepository, openRepository } from '../../../../src/git/open/open-repository.ts';
import { temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { ClaimReader } from './claim-reader.ts';

const claim = (name: string, annotations = '{}') =>
  `apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPClaim\nmetadata: {name: ${name}, annotations: ${annotations}}\n`;

describe('ClaimReader', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let git: GitRepository;
  /** Object ids whose contents were requested. */
  let loaded: string[];
  let counting: GitRepository;

  beforeEach(async () => {
    folder = temporaryFolder();
    git = await initRepository(folder.path);
    loaded = [];
    counting = new Proxy(git, {
      get: (target, key) => {
        const value = Reflect.get(target, key);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (key === 'readObjects') loaded.push(...(args[0] as string[]));
          return Reflect.apply(value, target, args);
        };
      },
    });
  });
  afterEach(async () => {
    await git.close();
    folder.remove();
  });

  const tree = (files: Record<string, string | Buffer>, base?: Oid, links: Record<string, string> = {}) => {
    const edits = new Map<string, TreeEdit>(
      Object.entries(files).map(([path, data]) => [path, { data: Buffer.from(data) }]),
    );
    for (const [path, oid] of Object.entries(links)) edits.set(path, { oid, mode: '120000' });
    return git.editTree(base, edits);
  };
  const names = async (reader: ClaimReader, oid: Oid) => (await reader.read(counting, oid)).map(({ name }) => name);

  test('finds claims in every YAML file, and leaves out abandoned claims and other objects', async () => {
    const link = await git.writeBlob(Buffer.from('a.yaml'));
    const oid = await tree(
      {
        'a.yaml': `# x\n${claim('a')}---\n${claim('b')}---\n${claim('gone', '{specializer.nephio.org/delete: "true"}')}`,
        'deep/down/c.yml': claim('c'),
        'text.txt': claim('text'),
        'broken.yaml': `${claim('broken')}x: [\n`,
        'other.yaml': 'apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\nmetadata: {name: p}\n',
        'huge.yaml': `${claim('huge')}# ${'x'.repeat(4 * 1024 * 1024)}\n`,
        'binary.yaml': Buffer.from([0xff, 0xfe, 0x00]),
      },
      undefined,
      { 'link.yaml': link },
    );
    expect(await names(new ClaimReader(), oid)).toEqual(['a', 'b', 'c']);
    expect(loaded).not.toContain(link);
    expect(loaded).toHaveLength(5);
  });

  test('another revision costs its changed files, a known one nothing', async () => {
    const many = Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`f${index}.yaml`, `a: ${index}\n`]));
    const first = await tree({ ...many, 'c.yaml': claim('c') });
    const reader = new ClaimReader();
    expect(await names(reader, first)).toEqual(['c']);
    expect(loaded).toHaveLength(251);
    loaded = [];
    const second = await tree({ 'd.yaml': claim('d') }, first);
    expect(await names(reader, second)).toEqual(['c', 'd']);
    expect(loaded).toHaveLength(1);
    await Promise.all([names(reader, first), names(reader, second)]);
    expect(loaded).toHaveLength(1);
  });

  test('a failed read is retried', async () => {
    const reader = new ClaimReader();
    await expect(reader.read(git, 'f'.repeat(40))).rejects.toThrow();
    const oid = await tree({ 'a.yaml': claim('a') });
    expect(await names(reader, oid)).toEqual(['a']);
  });

  test('evicted entries are read again, also within one read', async () => {
    const many = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`c${index}.yaml`, claim(`c${index}`)]));
    const small = new ClaimReader(2);
    const first = await tree(many);
    expect(await names(small, first)).toEqual(Object.keys(many).map((path) => path.slice(0, 2)));
    // Blobs that were cached when the read began are evicted while it loads others.
    const second = await tree({ 'd0.yaml': claim('d0'), 'd1.yaml': claim('d1'), 'd2.yaml': claim('d2') }, first);
    expect(await names(small, second)).toHaveLength(9);
  });

  test('a missing file is damage, and not a file without claims', async () => {
    const oid = await tree({ 'a.yaml': claim('a'), 'b.yaml': claim('b') });
    await git.transaction([]);
    const [file] = await git.listFiles(oid);
    const lost = file?.oid ?? '';
    await git.close();
    rmSync(join(folder.path, 'objects', lost.slice(0, 2), lost.slice(2)));
    git = await openRepository(folder.path);
    await expect(new ClaimReader().read(git, oid)).rejects.toMatchObject({ code: 'Corrupt' });
  });
});
