import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fsck, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../../../test/support/git/git-server.ts';
import { runs } from '../../../../test/support/runs.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import type { GitRemote, GitRepository, Oid, RefUpdate } from '../../git-repository.ts';
import { openRepository } from '../../open/open-repository.ts';

/** Side-band header, "unpack ok", the line of the ref, flush. */
const REPORT_BYTES = 5 + 14 + 4 + 'ok refs/heads/cut-nn\n'.length + 4;
const FEWEST_CUTS = 8;

describe('an answer that ends too early', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let server: GitServer;
  let repository: GitRepository;
  let remote: GitRemote;
  let first: Oid;

  beforeEach(async () => {
    folder = temporaryFolder();
    initBare(join(folder.path, 'origin.git'));
    server = await startGitServer({ root: folder.path });
    remote = { url: `${server.url}/origin.git` };
    repository = await openRepository(initBare(join(folder.path, 'local.git')));
    first = await commit('a');
    await repository.push(remote, [create('refs/heads/main', first)]);
  });

  afterEach(async () => {
    await repository.close();
    await server.close();
    folder.remove();
  });

  const create = (ref: string, oid: Oid): RefUpdate => ({ type: 'create', ref, new: oid });

  async function commit(content: string, parents: readonly Oid[] = []): Promise<Oid> {
    const tree = await repository.editTree(parents[0], new Map([[content[0] ?? '', { data: Buffer.from(content) }]]));
    return repository.writeCommit(commitOf(tree, parents));
  }

  /** Places from `start` up to `end`, as far apart as the number of runs wants. */
  function cuts(start: number, end: number): number[] {
    const step = (end - start) / runs(end - start, FEWEST_CUTS);
    const places: number[] = [];
    for (let place = start; place < end; place += step) places.push(Math.floor(place));
    return places;
  }

  test('is never a successful push, wherever it ends', async () => {
    for (const bytes of cuts(10, REPORT_BYTES)) {
      const next = await commit(`b${bytes}`, [first]);
      server.behaviour.cutAfter = bytes;
      await expect(
        repository.push(remote, [create(`refs/heads/cut-${bytes}`, next)]),
        `${bytes} bytes`,
      ).rejects.toMatchObject({ code: 'Unavailable', details: { outcome: 'unknown' } });
    }
  });

  test('changes nothing by a fetch, wherever it ends', async () => {
    const refspecs = ['+refs/heads/*:refs/heads/*'];
    await repository.push(remote, [create('refs/heads/x', await commit('b', [first]))]);
    const other = await openRepository(initBare(join(folder.path, 'other.git')));
    await other.fetch(remote, { refspecs: ['+refs/heads/main:refs/heads/main'] });
    const before = refsOf(other.path);
    const step = 210 / runs(30, FEWEST_CUTS);
    let failures = 0;
    for (let bytes = 0; refsOf(other.path).size === 1; bytes += Math.floor(step)) {
      server.behaviour.cutAfter = bytes;
      try {
        await other.fetch(remote, { refspecs });
      } catch (error) {
        failures += 1;
        expect(error, `${bytes} bytes`).toMatchObject({ code: 'Unavailable' });
        expect(refsOf(other.path)).toEqual(before);
      }
    }
    expect(failures).toBeGreaterThanOrEqual(FEWEST_CUTS);
    expect(other.remoteNote?.message).toContain('fetch by own client');
    fsck(other.path);
    await other.close();
  });
});
