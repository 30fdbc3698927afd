import { expect, test } from 'vitest';
import { eachProposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();

test.each([
  { what: 'no rule', spec: {} },
  { what: 'a quorum', spec: { approval: { quorum: { required: 1 } } } },
])('where no merge is an approval, the check waits for a review: $what', async ({ spec }) => {
  const at = open();
  at.serveBranches();
  at.forge.unsureMerger = 'the host may have detected the merge';
  await at.policy({ publishOn: 'merge' }, spec);
  const name = await at.propose();
  await at.settle(60_000);
  const { commit } = at.revision(name);
  const check = () => JSON.stringify(at.forge.checksOf(commit)['sluice/ready']);
  expect(check()).not.toContain('success');
  at.forge.review(1, 'bob', 'approved', commit);
  await at.settle(60_000);
  expect(check()).toContain('success');
  await at.mergeHead(name, 'bob');
  await at.sync();
  await at.settle(60_000);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});
