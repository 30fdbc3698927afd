import { cpSync, existsSync, linkSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { git, initBare, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { commitOf } from '../git-repository.conformance.ts';
import type { Oid } from '../git-repository.ts';
import { openRepository } from '../open/open-repository.ts';

/** Where the objects are. */
type Place = 'loose' | 'packed' | 'repacked';

describe('what git moves while objects are read', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let path: string;
  let objects: string;
  let commit: Oid;

  beforeEach(async () => {
    folder = temporaryFolder();
    path = initBare(join(folder.path, 'moved.git'));
    objects = join(path, 'objects');
    const repository = await openRepository(path);
    const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
    commit = await repository.writeCommit(commitOf(tree));
    await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
    keep('loose');
    git(path, ['repack', '-adq']);
    keep('packed');
    const next = await repository.writeCommit(commitOf(tree, [commit]));
    await repository.transaction([{ type: 'create', ref: 'refs/heads/next', new: next }]);
    git(path, ['repack', '-adq']);
    keep('repacked');
    await repository.close();
    expect(filesOf('loose').filter((file) => file.startsWith('pack/'))).toEqual([]);
  });

  afterEach(() => folder.remove());

  function keep(place: Place): void {
    cpSync(objects, join(folder.path, place), { recursive: true });
  }

  function filesOf(place: Place): string[] {
    return filesBelow(join(folder.path, place)).sort((a, b) => rank(a) - rank(b));
  }

  /** In the order in which git does it, while no other code runs. */
  function moveTo(place: Place): void {
    const files = filesOf(place);
    for (const file of files) {
      mkdirSync(dirname(join(objects, file)), { recursive: true });
      if (!existsSync(join(objects, file))) linkSync(join(folder.path, place, file), join(objects, file));
    }
    const removed = filesBelow(objects).filter((file) => !files.includes(file));
    for (const file of removed.sort((a, b) => rank(b) - rank(a))) rmSync(join(objects, file));
  }

  test.each([
    ['native', 'packed', 'repacked'],
    ['native', 'packed', 'loose'],
    ['native', 'loose', 'packed'],
    ['isomorphic-git', 'packed', 'repacked'],
    ['isomorphic-git', 'packed', 'loose'],
    ['isomorphic-git', 'loose', 'packed'],
  ] as const)('is found by the engine %s, from %s to %s at any moment', async (engine, from, to) => {
    for (let moment = 0; moment < 30; moment += 1) {
      moveTo(from);
      const reader = await openRepository(path, { engine });
      const reading = reader.readObjects([commit, `${commit}:a`]);
      // Each takes as long as a step of the reader.
      for (let step = 0; step < moment; step += 1) await stat(objects);
      moveTo(to);
      const found = await reading;
      expect(found.map((object) => object?.type)).toEqual(['commit', 'blob']);
      await reader.close();
    }
  });

  test('is not taken for absent if it is moved all the time', async () => {
    // The other engine asks git, which does not look again as often.
    const reader = await openRepository(path, { engine: 'isomorphic-git' });
    for (let round = 0; round < 10; round += 1) {
      let isRead = false;
      const reading = reader.statObjects([commit]).then(
        ([found]) => found?.type,
        (error) => error.code,
      );
      const ended = reading.finally(() => {
        isRead = true;
      });
      for (let move = 0; !isRead; move += 1) {
        moveTo(move % 2 === 0 ? 'packed' : 'repacked');
        await stat(objects);
      }
      expect(['commit', 'Unavailable']).toContain(await ended);
    }
    await reader.close();
  });
});

/** As paths from the folder. */
function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
}

/** The index is the last file of a pack that git adds, and the first that it removes. */
function rank(file: string): number {
  return file.endsWith('.idx') ? 1 : 0;
}
