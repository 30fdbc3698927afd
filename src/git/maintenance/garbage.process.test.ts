import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nextFileTime } from '../../../test/support/git/file-clock.ts';
import { fsck, git, initBare, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import type { GitRepository } from '../git-repository.ts';
import { openRepository } from '../open/open-repository.ts';

const DAY = 86_400_000;
/** Running time that maintenance lets pass between two steps. */
const PAUSE = 3_600_000;
const SIGNATURE = { name: 'A', email: 'a@example.com', time: 0 };

describe('objects that no ref leads to', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let path: string;
  let clock: ManualClock;
  let runningTime: number;
  let repository: GitRepository;
  let garbage: string;
  let root: string;
  beforeEach(async () => {
    folder = temporaryFolder();
    path = initBare(join(folder.path, 'r.git'));
    clock = new ManualClock(Date.now());
    runningTime = 0;
    repository = await open();
    root = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
    await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: await commit(root) }]);
    garbage = await repository.writeBlob(randomBytes(2 * 1024 * 1024));
    await repository.transaction([]);
  });
  afterEach(async () => {
    await repository.close();
    folder.remove();
  });

  const open = () =>
    openRepository(path, { engine: 'native', clock, runningTime: () => runningTime, timeouts: { leftBehind: PAUSE } });
  const commit = (tree: string, message = 'm') =>
    repository.writeCommit({ tree, parents: [], author: SIGNATURE, committer: SIGNATURE, message });
  const run = (dropAfter: number | undefined = 14 * DAY) =>
    repository.maintain({ underPressure: true, ...(dropAfter === undefined ? {} : { dropAfter }) });
  /** Runs with the running time that a step needs before each of them. */
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round += 1) {
      await run();
      runningTime += PAUSE;
    }
  };
  const isThere = (oid: string) => {
    try {
      return git(path, ['cat-file', '-t', oid]) !== '';
    } catch {
      return false;
    }
  };
  const files = (where: string) => (existsSync(join(path, where)) ? readdirSync(join(path, where)) : []);

  test('are kept forever without a time for their removal', async () => {
    clock.advance(1000 * DAY);
    for (let round = 0; round < 4; round += 1) {
      await repository.maintain();
      runningTime += PAUSE;
    }
    expect(isThere(garbage)).toBe(true);
  });

  test('are packed by themselves, set aside when they are old, and deleted later; the rest stays', async () => {
    const before = (await repository.diskUse()).bytes;
    await rounds(3);
    expect(files('objects/pack').filter((name) => name.endsWith('.mtimes'))).toHaveLength(1);
    clock.advance(15 * DAY);
    await rounds(1);
    expect(isThere(garbage)).toBe(false);
    expect(files('sluice-put-aside').some((name) => name.endsWith('.pack'))).toBe(true);
    await rounds(2);
    expect(files('sluice-put-aside')).toEqual([]);
    expect((await repository.diskUse()).bytes).toBeLessThan(before - 2 * 1024 * 1024);
    expect((await repository.readCommit(git(path, ['rev-parse', 'main']))).tree).toBe(root);
    fsck(path);
  });

  test('stay until a process has observed them for a while, independent of the clock', async () => {
    await run();
    clock.advance(366 * DAY);
    const patient = await openRepository(path, { engine: 'native', clock, timeouts: { leftBehind: PAUSE } });
    for (let round = 0; round < 4; round += 1) {
      await patient.maintain({ dropAfter: 14 * DAY, underPressure: true });
      clock.advance(366 * DAY);
    }
    await patient.close();
    expect(isThere(garbage)).toBe(true);
  });

  test('stay when the clock is set back', async () => {
    await rounds(1);
    for (const name of files('objects/pack'))
      utimesSync(
        join(path, 'objects/pack', name),
        new Date(clock.now() + 366 * DAY),
        new Date(clock.now() + 366 * DAY),
      );
    clock.advance(20 * DAY);
    await rounds(3);
    expect(isThere(garbage)).toBe(true);
  });

  test('that a transaction needs are written again, so that they outlive the pack that is removed', async () => {
    const tree = await repository.editTree(undefined, new Map([['f', { data: Buffer.from('old') }]]));
    await repository.transaction([]);
    await rounds(2);
    clock.advance(15 * DAY);
    const other = await open();
    // Another writer finds all of it there, in the pack that is put aside between this moment and its transaction.
    const again = await other.editTree(undefined, new Map([['f', { data: Buffer.from('old') }]]));
    expect(again).toBe(tree);
    const tip = await other.writeCommit({ tree, parents: [], author: SIGNATURE, committer: SIGNATURE, message: 'n' });
    await rounds(1);
    expect(isThere(tree)).toBe(false);
    await other.transaction([{ type: 'create', ref: 'refs/heads/again', new: tip }]);
    await other.close();
    await rounds(3);
    expect((await repository.readObjects([`${tip}:f`]))[0]?.data.toString()).toBe('old');
    fsck(path);
  });

  test('are restored if a ref leads to them again while they are set aside', async () => {
    const tree = await repository.editTree(undefined, new Map([['f', { data: Buffer.from('old') }]]));
    await repository.transaction([]);
    await rounds(2);
    clock.advance(15 * DAY);
    await rounds(1);
    expect(isThere(tree)).toBe(false);
    // As by a writer that looked before, and did not write what it found.
    const tip = git(
      path,
      ['hash-object', '-t', 'commit', '-w', '--literally', '--stdin'],
      [`tree ${tree}`, 'author A <a@example.com> 0 +0000', 'committer A <a@example.com> 0 +0000', '', 'm', ''].join(
        '\n',
      ),
    );
    writeFileSync(join(path, 'refs/heads/again'), `${tip}\n`);
    await rounds(2);
    expect((await repository.readObjects([`${tip}:f`]))[0]?.data.toString()).toBe('old');
    expect(isThere(garbage)).toBe(true);
    fsck(path);
    // What is garbage still is taken away in its own time.
    clock.advance(15 * DAY);
    await rounds(4);
    expect(isThere(garbage)).toBe(false);
    fsck(path);
  });

  test('that the commit graph names are removed from it first', async () => {
    const removed = await commit(root, 'gone soon');
    await repository.transaction([{ type: 'create', ref: 'refs/heads/gone', new: removed }]);
    await rounds(1);
    expect(files('objects/info/commit-graphs')).toContain('commit-graph-chain');
    await repository.transaction([{ type: 'delete', ref: 'refs/heads/gone', old: removed }]);
    // Enough that is new for garbage to be looked for.
    await repository.writeBlob(randomBytes(8 * 1024 * 1024));
    await repository.transaction([]);
    // What was garbage before goes first.
    for (let life = 0; life < 4; life += 1) {
      clock.advance(15 * DAY);
      await rounds(3);
    }
    expect(isThere(removed)).toBe(false);
    git(path, ['commit-graph', 'verify']);
    fsck(path);
  });

  test('that were moved in part when the process was killed are handled', async () => {
    await rounds(2);
    const [pack = ''] = files('objects/pack').filter((name) => name.endsWith('.mtimes'));
    const name = pack.replace('.mtimes', '');
    mkdirSync(join(path, 'sluice-put-aside'));
    renameSync(join(path, 'objects/pack', `${name}.idx`), join(path, 'sluice-put-aside', `${name}.idx`));
    clock.advance(15 * DAY);
    await rounds(6);
    expect(files('sluice-put-aside')).toEqual([]);
    expect(files('objects/pack').filter((file) => file.startsWith(name))).toEqual([]);
    expect(isThere(garbage)).toBe(false);
    fsck(path);
  });

  test('are left alone where a list of packs of another tool names them', async () => {
    await rounds(1);
    git(path, ['multi-pack-index', 'write']);
    clock.advance(15 * DAY);
    await rounds(3);
    expect(isThere(garbage)).toBe(true);
  });

  test('a run ends when its signal aborts, and leaves nothing half done', async () => {
    await expect(repository.maintain({ dropAfter: DAY, signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'Unavailable',
    });
    expect(isThere(garbage)).toBe(true);
    fsck(path);
  });

  test('a temporary file that is being written is kept, independent of the clock', async () => {
    const file = join(path, 'objects/pack/tmp_pack_abc');
    writeFileSync(file, 'x');
    clock.advance(366 * DAY);
    for (let round = 0; round < 3; round += 1) {
      await repository.maintain();
      runningTime += PAUSE;
      await nextFileTime();
      writeFileSync(file, 'more', { flag: 'a' });
    }
    expect(statSync(file).size).toBeGreaterThan(1);
    await repository.maintain();
    runningTime += PAUSE;
    await repository.maintain();
    expect(existsSync(file)).toBe(false);
  });
});
