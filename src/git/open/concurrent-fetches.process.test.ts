import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { startGitServer } from '../../../test/support/git/git-server.ts';
import { commitOf } from '../git-repository.conformance.ts';
import { EMPTY_TREE } from '../git-repository.ts';
import { DEFAULT_NETWORK } from '../network/git-network.ts';
import { openLocation } from './open-location.ts';
import { openRepository } from './open-repository.ts';

test('processes that make and fetch one mirror at once all succeed', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const origin = initBare(join(folder.path, 'origin.git'));
  const source = await openRepository(origin);
  await source.editTree(undefined, new Map());
  const commit = await source.writeCommit(commitOf(EMPTY_TREE, [], 'a'));
  const names = Array.from({ length: 200 }, (_, index) => `refs/heads/b${index}`);
  await source.transaction(names.map((ref) => ({ type: 'create', ref, new: commit }) as const));
  await source.close();
  const server = await startGitServer({ root: folder.path });
  onTestFinished(() => server.close());
  for (let round = 0; round < 8; round += 1) {
    const mirrorPath = join(folder.path, `${round}`, 'mirror.git');
    const fetch = async () => {
      const { git, remote } = await openLocation({
        ...{ url: `${server.url}/origin.git`, mirrorPath, repository: { network: DEFAULT_NETWORK } },
      });
      if (remote === undefined) throw new Error('it is no mirror');
      await git.fetch(remote, { refspecs: ['+refs/heads/*:refs/heads/*'], prune: true }).finally(() => git.close());
    };
    // Each has locks of its own in memory, as a process has.
    await Promise.all([fetch(), fetch(), fetch()]);
    expect(refsOf(mirrorPath)).toEqual(refsOf(origin));
  }
});
