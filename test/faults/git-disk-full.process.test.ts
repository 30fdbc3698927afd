import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { skipFor } from '../support/skip.ts';

const MIB = 1024 * 1024;
const SIGNATURE = { name: 'A', email: 'a@example.com', time: 0 };
const REFSPECS = { refspecs: ['+refs/*:refs/*'], prune: true };

/** A disk of 16 MiB; undefined where this user may not mount one. */
function mountSmallDisk(): string | undefined {
  const path = mkdtempSync(join(tmpdir(), 'sluice-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', path], { stdio: 'ignore' });
    return path;
  } catch {
    rmdirSync(path);
    return undefined;
  }
}

function unmount(path: string): void {
  execFileSync('umount', [path]);
  rmdirSync(path);
}

const probe = mountSmallDisk();
if (probe !== undefined) unmount(probe);

describe(
  'a full disk under a mirror (needs the right to mount a tmpfs)',
  skipFor(probe === undefined && 'only root may mount a tmpfs'),
  () => {
    let disk: string;
    let folder: ReturnType<typeof temporaryFolder>;
    let server: GitServer;
    let origin: string;
    let path: string;
    let mirror: GitRepository;
    let filler: string;
    const remote = () => ({ url: `${server.url}/origin.git` });

    beforeEach(async () => {
      disk = mountSmallDisk() ?? '';
      filler = join(disk, 'filler');
      folder = temporaryFolder();
      mkdirSync(join(folder.path, 'root'));
      origin = initBare(join(folder.path, 'root/origin.git'));
      server = await startGitServer({ root: join(folder.path, 'root') });
      path = join(disk, 'mirror.git');
      mirror = await initRepository(path);
    });
    afterEach(async () => {
      await mirror.close();
      await server.close();
      folder.remove();
      unmount(disk);
    });

    /** Leaves about this many bytes free. */
    const fill = (left: number) => {
      rmSync(filler, { force: true });
      const { bavail, bsize } = statfsSync(disk);
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - left)));
    };
    const empty = () => rmSync(filler, { force: true });
    const commit = async (data: Buffer, parents: readonly Oid[] = []) => {
      const tree = await mirror.editTree(undefined, new Map([['a', { data }]]));
      return mirror.writeCommit({ tree, parents, author: SIGNATURE, committer: SIGNATURE, message: 'm' });
    };
    const temporary = () =>
      readdirSync(path, { recursive: true })
        .map(String)
        .filter((name) => /tmp_|\.lock$|\.new$|incoming/.test(name));

    test.each([
      ['is refused before anything is written', 100 * 1024, 5 * MIB],
      ['with no byte left', 0, 1000],
    ])('a transaction %s, and succeeds when there is space', async (_what, left, size) => {
      const next = await commit(randomBytes(size));
      fill(left);
      const before = await mirror.diskUse();
      const refused = mirror.transaction([{ type: 'create', ref: 'refs/heads/main', new: next }]);
      await expect(refused).rejects.toMatchObject({
        code: 'Unavailable',
        message: expect.stringContaining('Free space there'),
      });
      expect(await mirror.resolveRef('refs/heads/main')).toBeUndefined();
      expect(await mirror.diskUse()).toEqual(before);
      expect(temporary()).toEqual([]);
      empty();
      await mirror.transaction([{ type: 'create', ref: 'refs/heads/main', new: next }]);
      fsck(path);
    });

    test('a write that proves to be too large leaves nothing behind', async () => {
      fill(4 * MIB);
      const next = await commit(randomBytes(6 * MIB));
      const refused = mirror.transaction([{ type: 'create', ref: 'refs/heads/main', new: next }]);
      await expect(refused).rejects.toMatchObject({ code: 'Unavailable', message: expect.stringContaining('ENOSPC') });
      expect(refsOf(path).size).toBe(0);
      expect(temporary()).toEqual([]);
      empty();
      await mirror.transaction([{ type: 'create', ref: 'refs/heads/main', new: next }]);
      fsck(path);
    });

    test('a push is neither acknowledged nor carried out', async () => {
      const next = await commit(randomBytes(1000));
      fill(0);
      const update = { type: 'create', ref: 'refs/heads/main', new: next } as const;
      await expect(mirror.push(remote(), [update])).rejects.toMatchObject({ code: 'Unavailable' });
      expect(refsOf(origin).size).toBe(0);
      empty();
      await mirror.push(remote(), [update]);
      await mirror.transaction([update]);
      expect(refsOf(path)).toEqual(refsOf(origin));
    });

    test.each([
      ['before it begins', 100 * 1024],
      ['in the middle', 3 * MIB],
    ])('a fetch is refused %s, and leaves nothing that grows', async (_what, left) => {
      const first = await commit(Buffer.from('first'));
      await mirror.push(remote(), [{ type: 'create', ref: 'refs/heads/main', new: first }]);
      await mirror.fetch(remote(), REFSPECS);
      const blob = git(origin, ['hash-object', '-w', '--stdin'], randomBytes(5 * MIB));
      const tree = git(origin, ['mktree'], `100644 blob ${blob}\ta\n`);
      git(origin, ['update-ref', 'refs/heads/main', git(origin, ['commit-tree', tree, '-m', 'm', '-p', first])]);
      fill(left);
      let used = 0;
      for (let attempt = 0; attempt < 3; attempt += 1) {
        await expect(mirror.fetch(remote(), REFSPECS)).rejects.toMatchObject({
          code: 'Unavailable',
          message: expect.stringContaining('Free space there'),
        });
        expect(await mirror.resolveRef('refs/heads/main')).toBe(first);
        const now = (await mirror.diskUse()).bytes + temporary().length;
        if (attempt > 0) expect(now).toBe(used);
        used = now;
      }
      empty();
      await mirror.fetch(remote(), REFSPECS);
      expect(refsOf(path)).toEqual(refsOf(origin));
      fsck(path);
    });

    test('maintenance is postponed, and loses nothing', async () => {
      const next = await commit(randomBytes(2 * MIB));
      await mirror.transaction([{ type: 'create', ref: 'refs/heads/main', new: next }]);
      fill(MIB);
      await expect(mirror.maintain({ dropAfter: 0, underPressure: true })).rejects.toMatchObject({
        code: 'Unavailable',
      });
      expect(temporary()).toEqual([]);
      fsck(path);
      empty();
      await mirror.maintain({ dropAfter: 0, underPressure: true });
      fsck(path);
    });

    test('refs can be removed, which frees space', async () => {
      const next = await commit(randomBytes(1000));
      await mirror.transaction([{ type: 'create', ref: 'refs/heads/main', new: next }]);
      fill(100 * 1024);
      await mirror.transaction([{ type: 'delete', ref: 'refs/heads/main', old: next }]);
      expect(refsOf(path).size).toBe(0);
    });
  },
);
