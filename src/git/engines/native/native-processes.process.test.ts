import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { processesWith } from '../../../../test/support/git/processes.ts';
import { systemClock } from '../../../foundation/time/clock.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import type { GitRepository, Oid } from '../../git-repository.ts';
import { openRepository } from '../../open/open-repository.ts';
import { runGit } from '../../process/git-process.ts';
import { holdFolder } from '../../refs/held-folders.ts';

describe('git processes', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let path: string;
  let repository: GitRepository;
  let commit: Oid;

  beforeEach(async () => {
    folder = temporaryFolder();
    path = initBare(`${folder.path}/repository.git`);
    repository = await openRepository(path, { packRefsFrom: 1_000 });
    const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
    commit = await repository.writeCommit(commitOf(tree));
    await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
  });

  afterEach(async () => {
    await repository.close();
    folder.remove();
  });

  const ABSENT = 'a'.repeat(40);
  /** So many are read by a process; what was written a moment ago is read from memory. */
  const MANY = Array.from({ length: 65 }, () => ABSENT);
  const kept = (name: string) => processesWith(path).filter(({ arguments: words }) => words.includes(name));

  test('stay open between calls, and are started again when they were killed', async () => {
    await repository.statObjects(MANY);
    const [reader] = kept('cat-file');
    const [writer] = kept('update-ref');
    await repository.statObjects(MANY);
    await repository.transaction([{ type: 'verify', ref: 'refs/heads/main', old: commit }]);
    expect(kept('cat-file').map(({ pid }) => pid)).toEqual([reader?.pid]);
    expect(kept('update-ref').map(({ pid }) => pid)).toEqual([writer?.pid]);
    for (const { pid } of processesWith(path)) process.kill(pid, 'SIGKILL');
    const reads = Array.from({ length: 600 }, () => commit);
    expect((await repository.readObjects(reads)).every((object) => object?.oid === commit)).toBe(true);
    await repository.transaction([{ type: 'create', ref: 'refs/heads/next', new: commit }]);
    expect(kept('cat-file').map(({ pid }) => pid)).not.toEqual([reader?.pid]);
  });

  test('are not started for a few objects and refs of a small repository', async () => {
    const release = holdFolder(dirname(path));
    onTestFinished(release);
    const few = async (): Promise<(string | undefined)[]> => {
      await expect.poll(() => processesWith(path)).toEqual([]);
      const small = await openRepository(path);
      await small.transaction([{ type: 'verify', ref: 'refs/heads/main', old: commit }]);
      const [read] = await small.readObjects([`${commit}:a`]);
      const [found] = await small.statObjects([commit]);
      expect([read?.data.toString(), found?.type, ...(await small.statObjects([ABSENT]))]).toEqual([
        'a',
        'commit',
        undefined,
      ]);
      expect(processesWith(path)).toEqual([]);
      await small.statObjects(MANY);
      const started = processesWith(path).map(({ arguments: words }) => words.find((word) => word === 'cat-file'));
      await small.close();
      return started;
    };
    await repository.close();
    expect(await few()).toEqual(['cat-file']);
    git(path, ['gc', '-q', '--prune=now']);
    expect(await few()).toEqual(['cat-file']);
    const large = git(path, ['hash-object', '-w', '--stdin'], randomBytes(300_000).toString('hex'));
    git(path, ['update-ref', 'refs/keep/blob', large]);
    git(path, ['gc', '-q', '--prune=now']);
    await expect.poll(() => processesWith(path)).toEqual([]);
    const reader = await openRepository(path);
    expect((await reader.statObjects([commit]))[0]?.type).toBe('commit');
    expect(kept('cat-file')).toHaveLength(1);
    await reader.close();
    const borrower = initBare(`${folder.path}/borrower.git`);
    writeFileSync(`${borrower}/objects/info/alternates`, `${path}/objects\n`);
    const borrowing = await openRepository(borrower);
    expect((await borrowing.statObjects([commit]))[0]?.type).toBe('commit');
    await borrowing.close();
  });

  test('read objects that other processes write, pack and move', async () => {
    await repository.readObjects([commit]);
    const blob = git(path, ['hash-object', '-w', '--stdin'], 'late');
    expect((await repository.readObjects([blob]))[0]?.data.toString()).toBe('late');
    git(path, ['update-ref', 'refs/keep/blob', blob]);
    git(path, ['gc', '-q', '--prune=now']);
    expect((await repository.readObjects([`${commit}:a`, blob])).map((object) => object?.data.toString())).toEqual([
      'a',
      'late',
    ]);
    expect(await repository.resolveRef('refs/keep/blob')).toBe(blob);
  });

  test('end when idle and when the repository is closed', async () => {
    const short = await openRepository(path, { timeouts: { idle: 20 } });
    await repository.close();
    await short.readObjects([commit]);
    await short.transaction([{ type: 'verify', ref: 'refs/heads/main', old: commit }]);
    await expect.poll(() => processesWith(path)).toEqual([]);
    expect((await short.readObjects([commit]))[0]?.oid).toBe(commit);
    await short.close();
    await expect.poll(() => processesWith(path)).toEqual([]);
    await expect(short.readObjects([commit])).rejects.toMatchObject({ code: 'Internal' });
    await expect(
      repository.transaction([{ type: 'verify', ref: 'refs/heads/main', old: commit }]),
    ).rejects.toMatchObject({
      code: 'Internal',
    });
  });

  test('get no variable of the environment and run no hook', async () => {
    await repository.statObjects(MANY);
    const [reader] = kept('cat-file');
    const names = reader?.environment.map((entry) => entry.split('=')[0]).filter((name) => name !== '');
    expect(names?.filter((name) => !/^(?:PATH|HOME|LC_ALL|GIT_.*)$/.test(name ?? ''))).toEqual([]);
    mkdirSync(join(path, 'hooks'), { recursive: true });
    for (const hook of ['reference-transaction', 'post-update']) {
      writeFileSync(join(path, 'hooks', hook), `#!/bin/sh\ntouch '${folder.path}/ran'\n`);
      chmodSync(join(path, 'hooks', hook), 0o755);
    }
    await repository.transaction([{ type: 'create', ref: 'refs/heads/hooked', new: commit }]);
    await repository.maintain();
    expect(readdirSync(folder.path)).toEqual(['repository.git']);
  });

  test('that hang or print too much are killed with all they started', async () => {
    const marker = `${folder.path}/marker`;
    // An alias is the one way to have git run a command that never ends; its shell starts a child of its own.
    const hanging = {
      settings: [`alias.hang=!sleep 1000 & sleep 1000; : ${marker}`],
      arguments: ['hang'],
      clock: systemClock,
    };
    const clock = new ManualClock();
    const late = expect(runGit({ ...hanging, clock, timeout: 200 })).rejects.toMatchObject({ code: 'Timeout' });
    await expect.poll(() => processesWith(marker).length).toBeGreaterThan(0);
    clock.advance(200);
    await late;
    await expect.poll(() => processesWith(marker)).toEqual([]);
    const controller = new AbortController();
    const cancelled = runGit({ ...hanging, timeout: 60_000, signal: controller.signal });
    await expect.poll(() => processesWith(marker).length).toBeGreaterThan(0);
    controller.abort();
    await expect(cancelled).rejects.toMatchObject({ code: 'Unavailable' });
    await expect.poll(() => processesWith(marker)).toEqual([]);
    await expect(runGit({ ...hanging, timeout: 60_000, signal: controller.signal })).rejects.toMatchObject({
      code: 'Unavailable',
    });
    const loud = { settings: ['alias.loud=!yes'], arguments: ['loud'], clock: systemClock, timeout: 60_000 };
    await expect(runGit({ ...loud, maxOutput: 10_000 })).rejects.toMatchObject({ code: 'LimitExceeded' });
  });

  test('maintenance packs objects and all refs but branches, and loses nothing', async () => {
    await repository.close();
    repository = await openRepository(path, { packRefsFrom: 1_000, timeouts: { leftBehind: 0 } });
    const tag = git(
      path,
      ['hash-object', '-t', 'tag', '-w', '--stdin'],
      `object ${commit}\ntype commit\ntag v1\ntagger T <t@example.com> 1 +0000\n\nx\n`,
    );
    await repository.transaction([
      { type: 'create', ref: 'refs/heads/drafts/p/w', new: commit },
      { type: 'create', ref: 'refs/tags/p/v1', new: tag },
      { type: 'create', ref: 'refs/sluice/records/1', new: commit },
    ]);
    const unreferenced = await repository.writeBlob(Buffer.from('not yet referred to'));
    await repository.transaction([]);
    const waiting = await repository.writeBlob(Buffer.from('not yet on disk'));
    const leftover = join(path, 'objects', commit.slice(0, 2), 'tmp_obj_left');
    const fresh = join(path, 'objects', commit.slice(0, 2), 'tmp_obj_fresh');
    for (const file of [leftover, fresh]) writeFileSync(file, 'x');
    utimesSync(leftover, new Date(0), new Date(0));
    const before = refsOf(path);
    await repository.maintain();
    await repository.maintain();
    expect(refsOf(path)).toEqual(before);
    expect(readdirSync(join(path, 'refs'), { recursive: true }).sort()).toEqual(
      ['heads', 'heads/drafts', 'heads/drafts/p', 'heads/drafts/p/w', 'heads/main', 'sluice', 'tags']
        .concat(readdirSync(join(path, 'refs/sluice')).map((name) => `sluice/${name}`))
        .sort(),
    );
    expect(git(path, ['show-ref', '-d', '--tags'])).toContain(`${commit} refs/tags/p/v1^{}`);
    expect(git(path, ['count-objects', '-v'])).toContain('count: 0');
    const reader = await openRepository(path);
    expect(await reader.statObjects([unreferenced, waiting])).toMatchObject([{ oid: unreferenced }, undefined]);
    await repository.transaction([]);
    expect((await reader.readObjects([waiting]))[0]?.data.toString()).toBe('not yet on disk');
    await reader.close();
    expect(readdirSync(join(path, 'objects', commit.slice(0, 2)))).toEqual(['tmp_obj_fresh']);
    fsck(path);
  });

  test('maintenance and writers do not disturb each other', async () => {
    const other = await openRepository(path);
    const value = async (round: number) => (await repository.resolveRef(`refs/tags/t${round}`)) ?? '';
    const writer = (async () => {
      for (let round = 0; round < 30; round += 1) {
        const tree = await repository.editTree(commit, new Map([[`f${round}`, { data: Buffer.from(`${round}`) }]]));
        const next = await repository.writeCommit(commitOf(tree, [commit]));
        await repository.transaction([
          { type: 'create', ref: `refs/tags/t${round}`, new: next },
          ...(round > 4
            ? [{ type: 'delete', ref: `refs/tags/t${round - 5}`, old: await value(round - 5) } as const]
            : []),
        ]);
        expect((await repository.listFiles(tree)).map((file) => file.path)).toEqual(['a', `f${round}`]);
      }
    })();
    for (let round = 0; round < 6; round += 1) await other.maintain();
    await writer;
    await other.close();
    const names = [...refsOf(path).keys()];
    expect(names).toEqual(['refs/heads/main', ...[25, 26, 27, 28, 29].map((round) => `refs/tags/t${round}`)]);
    fsck(path);
  });
});
