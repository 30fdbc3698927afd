import { expect, test } from 'vitest';
import { eachProposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();

test('the check succeeds once the users whom the policy maps get the right to approve', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 1 } } });
  at.serveBranches();
  let grantedAt = Number.POSITIVE_INFINITY;
  at.restart({ mayApprove: async () => at.clock.now() >= grantedAt });
  const name = await at.propose();
  await at.settle(60_000);
  const ready = () => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
  expect(ready()?.state).toBe('pending');
  // A RoleBinding that is created in a minute. Two hours follow, with all polls and wake-ups that the controller asks for.
  grantedAt = at.clock.now() + 60_000;
  await at.settle(7_200_000);

  expect(ready()?.state).toBe('success');
});

test('an approving review counts once its user gets the right that the event asks for', async () => {
  const at = open();
  await at.policy({});
  at.serveBranches();
  let grantedAt = Number.POSITIVE_INFINITY;
  at.restart({ mayApprove: async () => at.clock.now() >= grantedAt });
  const name = await at.propose();
  await at.settle(60_000);
  at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
  await at.settle(60_000);
  expect((await at.world.events(name)).join()).toMatch(/ReviewNotCounted: .*grant that right/);
  grantedAt = at.clock.now() + 60_000;
  await at.settle(7_200_000);
  expect(at.revision(name).lifecycle).toBe('Published');
});

test('the check waits again once the only mapped user has lost the right', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 1 } } });
  at.serveBranches();
  let lostAt = Number.POSITIVE_INFINITY;
  at.restart({ mayApprove: async () => at.clock.now() < lostAt });
  const name = await at.propose();
  await at.settle(60_000);
  const ready = () => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
  expect(ready()?.state).toBe('success');
  lostAt = at.clock.now() + 60_000;
  await at.settle(7_200_000);
  expect(ready()?.state).toBe('pending');
});
