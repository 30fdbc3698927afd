import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { git } from '../../../../test/support/git/git-cli.ts';
import { initRepository } from '../../open/open-repository.ts';

test('many objects of one transaction are written as a pack, which every git reads', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-many-'));
  const path = join(folder, 'r.git');
  const repository = await initRepository(path);
  try {
    const edits = new Map(
      Array.from({ length: 300 }, (_, number) => [
        `folder-${number % 7}/file-${number}`,
        { data: Buffer.from(`${number}\n`) },
      ]),
    );
    const person = { name: 'a', email: 'a@example.com', time: 0 };
    const tree = await repository.editTree(undefined, edits);
    const commit = await repository.writeCommit({
      tree,
      parents: [],
      author: person,
      committer: person,
      message: 'm\n',
    });
    await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
    const packs = await readdir(join(path, 'objects', 'pack'));
    expect(packs.filter((name) => name.endsWith('.pack'))).toHaveLength(1);
    // Git would have made the same index.
    const [name = ''] = packs.filter((file) => file.endsWith('.pack'));
    git(path, ['index-pack', '--no-rev-index', '-o', join(folder, 'gits.idx'), join(path, 'objects/pack', name)]);
    const ours = await readFile(join(path, 'objects/pack', name.replace('.pack', '.idx')));
    expect(ours.equals(await readFile(join(folder, 'gits.idx')))).toBe(true);
    expect(git(path, ['fsck', '--strict'])).toBe('');
    expect(git(path, ['ls-tree', '-r', 'main']).split('\n')).toHaveLength(300);
    const [blob] = await repository.readObjects([`${commit}:folder-0/file-7`]);
    expect(blob?.data.toString()).toBe('7\n');
  } finally {
    await repository.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test('a pack that cannot be written fails the transaction with the reason, and is written once this is possible', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-many-'));
  const path = join(folder, 'r.git');
  const repository = await initRepository(path);
  try {
    const packs = join(path, 'objects/pack');
    await rm(packs, { recursive: true });
    await writeFile(packs, 'no folder');
    const edits = new Map(
      Array.from({ length: 60 }, (_, number) => [`file-${number}`, { data: Buffer.from(`${number}\n`) }]),
    );
    const person = { name: 'a', email: 'a@example.com', time: 0 };
    const tree = await repository.editTree(undefined, edits);
    const commit = await repository.writeCommit({
      tree,
      parents: [],
      author: person,
      committer: person,
      message: 'm\n',
    });
    const update = { type: 'create', ref: 'refs/heads/main', new: commit } as const;
    await expect(repository.transaction([update])).rejects.toThrow(/EEXIST|ENOTDIR/);
    expect(await repository.listRefs()).toEqual([]);
    await rm(packs);
    await repository.transaction([update]);
    expect((await readdir(packs)).filter((name) => name.endsWith('.pack'))).toHaveLength(1);
    expect(git(path, ['fsck', '--strict'])).toBe('');
  } finally {
    await repository.close();
    await rm(folder, { recursive: true, force: true });
  }
});
