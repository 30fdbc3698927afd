import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scratchRepository } from '../../../test/support/scratch-repository.ts';
import { initRepository } from '../../git/open/open-repository.ts';

const { signal } = new AbortController();
const BRANCH = 'sluice/other';
const REF = `refs/heads/${BRANCH}`;

test('a branch that is no revision is in the mirror as soon as it is written; a lost race changes nothing', async () => {
  await using scratch = await scratchRepository();
  const git = await initRepository(join(scratch.folder, 'mirror.git'));
  const { repository } = await scratch.open({ git, remote: { url: `file://${scratch.path}` } });
  await repository.sync();
  const main = repository.index.mainHead ?? '';
  const author = { name: 'a', email: 'a@example.com', time: scratch.clock.now() };
  const commit = async (message: string, parent: string) =>
    git.writeCommit({
      ...{ tree: (await git.readCommit(main)).tree, parents: [parent], message },
      ...{ author, committer: author },
    });
  const places = async () => [
    await git.resolveRef(REF),
    (await scratch.git('for-each-ref', '--format=%(objectname)', REF)) || undefined,
  ];
  const first = await commit('first', main);
  await repository.untracked.writeBranch({ type: 'create', ref: REF, new: first }, signal);
  expect(await places()).toEqual([first, first]);
  const second = await commit('second', first);
  await scratch.git('update-ref', REF, main);
  await expect(
    repository.untracked.writeBranch({ type: 'update', ref: REF, old: first, new: second }, signal),
  ).rejects.toThrow(/sluice\/other/);
  expect(await places()).toEqual([first, main]);
  expect(await repository.untracked.readBranch(BRANCH, signal)).toBe(main);
  await repository.untracked.writeBranch({ type: 'delete', ref: REF, old: main }, signal);
  expect(await places()).toEqual([undefined, undefined]);
});
