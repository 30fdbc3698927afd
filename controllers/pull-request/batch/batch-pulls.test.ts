import { beforeEach, expect, test } from 'vitest';
import { readRef } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { proposalId } from '../text/section.ts';
import { updateBatchBranch } from './batch-branch.ts';
import { batchBranch } from './batch-name.ts';
import { ofOtherBatch } from './batch-pulls.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

test('what the Repository of another directory shares is left to it while it is not open, and nothing that users forge', async () => {
  const name = await at.propose();
  const repository = at.world.store.repository('apps');
  const { path, tip, uid, record } = at.revision(name);
  const member = { proposal: proposalId(uid, record?.steps ?? []), name, path, tree: tip.tree ?? '' };
  const other = batchBranch('default/other', member.proposal);
  const shared = async (branch: string, members: readonly (typeof member)[]) => {
    await updateBatchBranch(repository, branch, members, new AbortController().signal);
    return { head: { branch, commit: readRef(at.path, `refs/heads/${branch}`) ?? '' } };
  };
  const pull = await shared(other, [member]);
  const forged = await shared(`${other}x`, [{ ...member, name: 'other.none.w1' }]);
  const { git, index, id, layout } = repository;
  const beside = { git, index, id, layout: { ...layout, directory: 'elsewhere' } };
  expect(await ofOtherBatch([beside], pull)).toBe('ended');
  expect(await ofOtherBatch([beside], forged)).toBe('none');
  expect(await ofOtherBatch([repository], pull)).toBe('none');
});
