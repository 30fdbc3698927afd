import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { git, initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { commitOf } from '../git-repository.conformance.ts';
import { EMPTY_TREE, type Oid, type RefUpdate } from '../git-repository.ts';
import { openRepository } from '../open/open-repository.ts';
import { holdFolder } from './held-folders.ts';

const WRITER = new URL('../../../test/support/git/dying-writer.ts', import.meta.url).pathname;
const REFS = Array.from({ length: 100 }, (_, index) => `refs/heads/drafts/p${index}/v1`);

let folder: ReturnType<typeof temporaryFolder>;
let held: string;
let end: () => void;
beforeEach(() => {
  folder = temporaryFolder();
  held = join(realpathSync(folder.path), 'data');
  mkdirSync(held);
  end = holdFolder(held);
});
afterEach(() => {
  end();
  folder.remove();
});

/** A repository with one commit. */
async function create(path: string): Promise<Oid> {
  const repository = await openRepository(initBare(path));
  await repository.editTree(undefined, new Map());
  const commit = await repository.writeCommit(commitOf(EMPTY_TREE, [], 'a'));
  await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
  await repository.close();
  return commit;
}

/** Begins a transaction of 100 refs in a process that is killed before one of its changes of files. */
async function kill(path: string, updates: readonly RefUpdate[], step: number): Promise<boolean> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...[WRITER, path, JSON.stringify(updates), String(step), held],
  ]).catch((error: { stdout: string }) => error);
  return stdout === 'done';
}

/** As after a restart: no repository of the folder was opened yet. */
function holdAgain(): void {
  end();
  end = holdFolder(held);
}

const locksOf = (path: string) =>
  readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lock'));

describe.each(['in the folder', 'elsewhere'])('a repository %s', (where) => {
  test('can be written at once after its writer was killed at any step', { timeout: 120_000 }, async () => {
    let most = 0;
    for (let step = 0, done = false; !done; step += 1) {
      const path = join(where === 'elsewhere' ? folder.path : held, `${step}.git`);
      const commit = await create(path);
      const updates = REFS.map((ref): RefUpdate => ({ type: 'create', ref, new: commit }));
      done = await kill(path, updates, step);
      most = Math.max(most, locksOf(path).length);
      const next = await openRepository(path);
      const isDone = (await next.listRefs(['refs/heads/drafts'])).length > 0;
      const again = isDone ? REFS.map((ref): RefUpdate => ({ type: 'delete', ref, old: commit })) : updates;
      await next.transaction(again);
      expect(refsOf(path).size, `step ${step}`).toBe(isDone ? 1 : 101);
      expect(locksOf(path), `step ${step}`).toEqual([]);
      await next.close();
    }
    expect(most).toBeGreaterThan(100);
  });
});

test('what git locked and did not release is released in the folder; elsewhere the error names the file', async () => {
  for (const where of [held, folder.path]) {
    const path = join(where, 'one.git');
    const commit = await create(path);
    holdAgain();
    const lock = join(path, 'refs/heads/main.lock');
    writeFileSync(lock, '');
    const repository = await openRepository(path);
    const removal = repository.transaction([{ type: 'delete', ref: 'refs/heads/main', old: commit }]);
    if (where === held) await removal;
    else
      await expect(removal).rejects.toThrow(
        `refs/heads/main is locked by another writer. Try again; if that does not help and no Git program works there, remove ${realpathSync(lock)}`,
      );
    expect(existsSync(lock)).toBe(where !== held);
    await repository.close();
  }
});

test('a lock that changes is one of a living process, and stays', async () => {
  const path = join(held, 'one.git');
  const commit = await create(path);
  holdAgain();
  const lock = join(path, 'refs/heads/main.lock');
  writeFileSync(lock, '');
  const work = setInterval(() => appendFileSync(lock, '.'), 200);
  const opening = openRepository(path);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  expect(existsSync(lock)).toBe(true);
  clearInterval(work);
  const repository = await opening;
  await repository.transaction([{ type: 'delete', ref: 'refs/heads/main', old: commit }]);
  await repository.close();
  expect(git(path, ['for-each-ref'])).toBe('');
});
