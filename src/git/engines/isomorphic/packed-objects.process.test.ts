import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { git, initBare, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import type { GitRepository } from '../../git-repository.ts';
import { openRepository } from '../../open/open-repository.ts';

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let repository: GitRepository;
let main: string;

beforeEach(async () => {
  folder = temporaryFolder();
  path = initBare(join(folder.path, 'packed.git'));
  repository = await openRepository(path, { engine: 'isomorphic-git' });
  main = await change();
});

afterEach(async () => {
  await repository.close();
  folder.remove();
});

/** Some versions of a file that are deltas of each other when git packs them. */
async function change(from?: string): Promise<string> {
  let tip = from;
  for (let version = 0; version < 8; version += 1) {
    const text = `${'a line that stays\n'.repeat(200)}${tip}\n`;
    const tree = await repository.editTree(tip, new Map([['file', { data: Buffer.from(text) }]]));
    tip = await repository.writeCommit(commitOf(tree, tip === undefined ? [] : [tip]));
  }
  const next = tip ?? '';
  const ref = 'refs/heads/main';
  await repository.transaction([
    from === undefined ? { type: 'create', ref, new: next } : { type: 'update', ref, old: from, new: next },
  ]);
  return next;
}

/** Compares all objects with what git reads. */
async function expectAll(reader: GitRepository, tip: string): Promise<void> {
  const oids = git(path, ['rev-list', '--objects', '--no-object-names', tip]).split('\n');
  const objects = await reader.readObjects(oids);
  const lines = oids.map((oid, index) => `${oid} ${objects[index]?.type} ${objects[index]?.size}`);
  expect(lines).toEqual(git(path, ['cat-file', '--batch-check'], `${oids.join('\n')}\n`).split('\n'));
}

test('reads what git packs, repacks and removes while the repository is open', async () => {
  // Not the one that wrote them, which may have them in memory still.
  const reader = await openRepository(path, { engine: 'isomorphic-git' });
  await expectAll(reader, main);
  git(path, ['repack', '-adfq', '--depth=50']);
  git(path, ['prune-packed', '-q']);
  await expectAll(reader, main);
  main = await change(main);
  git(path, ['repack', '-adfq']);
  git(path, ['prune-packed', '-q']);
  await expectAll(reader, main);
  await reader.close();
});

test('changes of a returned object do not affect the next reader', async () => {
  git(path, ['repack', '-adfq']);
  git(path, ['prune-packed', '-q']);
  await repository.close();
  repository = await openRepository(path, { engine: 'isomorphic-git' });
  const [first] = await repository.readObjects([`${main}:file`]);
  first?.data.fill(0);
  const [second] = await repository.readObjects([`${main}:file`]);
  expect(second?.data.toString('latin1', 0, 6)).toBe('a line');
});

test('reading thousands of objects yields to the event loop', async () => {
  git(path, ['repack', '-adfq']);
  git(path, ['prune-packed', '-q']);
  // The one that wrote them may have them in memory still.
  await repository.close();
  repository = await openRepository(path, { engine: 'isomorphic-git' });
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 1);
  await repository.statObjects(Array.from({ length: 20_000 }, () => `${main}:file`));
  clearInterval(timer);
  expect(turns).toBeGreaterThan(1);
});

test('an index of the first version is refused', async () => {
  git(path, ['repack', '-adfq']);
  git(path, ['prune-packed', '-q']);
  const packs = join(path, 'objects/pack');
  const [pack = ''] = readdirSync(packs).filter((name) => name.endsWith('.pack'));
  rmSync(join(packs, pack.replace('.pack', '.idx')));
  git(path, ['index-pack', '--index-version=1', join(packs, pack)]);
  await repository.close();
  repository = await openRepository(path, { engine: 'isomorphic-git' });
  await expect(repository.readObjects([main])).rejects.toMatchObject({
    code: 'Corrupt',
    message: expect.stringContaining('not of version 2'),
  });
});
