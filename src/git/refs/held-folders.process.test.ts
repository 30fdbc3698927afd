import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { git, initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { commitOf } from '../git-repository.conformance.ts';
import { EMPTY_TREE, type Oid, type RefUpdate } from '../git-repository.ts';
import { openRepository } from '../open/open-repository.ts';
import { holdFolder } from './held-folders.ts';
import { RefFiles } from './ref-files.ts';

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

test('what git locked is released when the next holder of the folder opens the repository, unless a command works there', async () => {
  const path = join(held, 'one.git');
  const commit = await create(path);
  end();
  const lines = [`sluice 00000000-0000-4000-8000-000000000000 \n`, ''];
  for (const line of lines) {
    const [left, packed] = [join(path, 'refs/heads/main.lock'), join(path, 'packed-refs.lock')];
    writeFileSync(left, '');
    writeFileSync(packed, line);
    writeFileSync(join(path, 'packed-refs.new'), '');
    end = holdFolder(held);
    const [one, two] = await Promise.all([openRepository(path), openRepository(path)]);
    expect(locksOf(path), line).toEqual(line === '' ? [] : ['packed-refs.lock']);
    expect(existsSync(join(path, 'packed-refs.new')), line).toBe(line !== '');
    await one.close();
    await two.close();
    end();
  }
  end = holdFolder(held);
  const next = await openRepository(path);
  await next.transaction([{ type: 'delete', ref: 'refs/heads/main', old: commit }]);
  await next.close();
});

test('elsewhere, what git locked stays until it was unchanged for long, also if each attempt opens the repository again', async () => {
  const path = join(folder.path, 'one.git');
  const commit = await create(path);
  const lock = join(path, 'refs/heads/main.lock');
  writeFileSync(lock, '');
  const removal = async () => {
    const repository = await openRepository(path, { timeouts: { staleLock: 200 } });
    try {
      await repository.transaction([{ type: 'delete', ref: 'refs/heads/main', old: commit }]);
    } finally {
      await repository.close();
    }
  };
  await expect(removal()).rejects.toThrow(
    `refs/heads/main is locked by another writer. Try again; if that does not help and no Git program works there, remove ${realpathSync(lock)}`,
  );
  expect(existsSync(lock)).toBe(true);
  await setTimeout(300);
  await removal();
  expect(existsSync(lock)).toBe(false);
});

test('all that git locked when it was killed in a fetch is released at once then', async () => {
  const origin = join(held, 'origin.git');
  const commit = await create(origin);
  const source = await openRepository(origin);
  await source.transaction(REFS.map((ref): RefUpdate => ({ type: 'create', ref, new: commit })));
  await source.close();
  const path = initBare(join(held, 'mirror.git'));
  const mirror = await openRepository(path, { timeouts: { staleLock: 200 } });
  for (const ref of REFS) {
    mkdirSync(dirname(join(path, ref)), { recursive: true });
    writeFileSync(join(path, `${ref}.lock`), '');
  }
  const fetch = () => mirror.fetch({ url: `file://${origin}` }, { refspecs: ['+refs/*:refs/*'], prune: true });
  await fetch().catch(() => undefined);
  await setTimeout(300);
  await fetch();
  expect(refsOf(path)).toEqual(refsOf(origin));
  expect(locksOf(path)).toEqual([]);
  await mirror.close();
});

test('the process that begins to hold a folder undoes nothing that a command writes meanwhile', async () => {
  const path = join(held, 'one.git');
  const commit = await create(path);
  end();
  // It does not hold the folder, as commands do that only write to Git.
  const command = await openRepository(path);
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const { packed } = RefFiles.prototype;
  const spy = vi.spyOn(RefFiles.prototype, 'packed').mockImplementationOnce(async function (this: RefFiles) {
    const refs = await packed.call(this);
    reach();
    await gate;
    return refs;
  });
  onTestFinished(() => spy.mockRestore());
  const written = command.transaction(REFS.map((ref): RefUpdate => ({ type: 'create', ref, new: commit })));
  await reached;
  end = holdFolder(held);
  const server = await openRepository(path);
  const publish = () => server.transaction([{ type: 'create', ref: 'refs/tags/p/v1', new: commit }]);
  await expect(publish()).rejects.toMatchObject({ details: { kind: 'locked', ref: 'packed-refs' } });
  open();
  await written;
  await publish();
  expect(refsOf(path).size).toBe(1 + REFS.length + 1);
  await server.close();
  await command.close();
});

test('a writer that lost its lock, since it stood still for long, changes nothing', async () => {
  const path = join(held, 'one.git');
  const commit = await create(path);
  const late = await openRepository(path, { packRefsFrom: 1 });
  const { packed } = RefFiles.prototype;
  const lock = join(path, 'packed-refs.lock');
  const spy = vi.spyOn(RefFiles.prototype, 'packed').mockImplementationOnce(async function (this: RefFiles) {
    const refs = await packed.call(this);
    rmSync(lock);
    git(path, ['update-ref', 'refs/tags/p/v1', commit]);
    git(path, ['pack-refs', '--all']);
    // Of yet another one.
    writeFileSync(lock, '');
    return refs;
  });
  onTestFinished(() => spy.mockRestore());
  const update: RefUpdate = { type: 'create', ref: 'refs/tags/p/v2', new: commit };
  await expect(late.transaction([update])).rejects.toMatchObject({ details: { kind: 'locked', ref: 'packed-refs' } });
  expect(existsSync(lock)).toBe(true);
  rmSync(lock);
  expect([...refsOf(path).keys()]).toEqual(['refs/heads/main', 'refs/tags/p/v1']);
  await late.transaction([update]);
  expect([...refsOf(path).keys()]).toEqual(['refs/heads/main', 'refs/tags/p/v1', 'refs/tags/p/v2']);
  await late.close();
});
