import { expect, test } from 'vitest';
import { commitsMade } from '../../../src/package/plan/records/record-chain.ts';
import { hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';

const HALF_HOURS = 24;

const open = eachProposals();

test('a proposal that the host does not merge gets few records, keeps the time of its approval and the proof of its commits', async () => {
  const at = open();
  await at.policy({});
  const name = await at.propose();
  protectMain(at.world.store.repository('apps'));
  hostRepository(at.forge, at.path);
  at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a required check is missing' };
  await at.reconcile(name);
  await at.review(1, 'bob', 'approved', at.revision(name).commit);
  await at.reconcile(name);
  const records = () => Number(git(at.path, ['rev-list', '--count', at.revision(name).recordOid ?? '']));
  const approvals = () => at.revision(name).record?.approvals ?? [];
  const made = () => commitsMade(at.world.store.repository('apps'), at.revision(name));
  const [before, count, proven] = [approvals()[0], records(), await made()];
  expect(before).toMatchObject({ subject: 'bob@example.com', mergeOf: at.revision(name).commit });
  expect(proven.size).toBeGreaterThan(0);

  const merges = () => at.forge.calls.filter((call) => call === 'merge').length;
  const tried = merges();
  for (let turn = 0; turn < HALF_HOURS; turn += 1) {
    at.clock.advance(1_801_000);
    await at.reconcile('apps');
    await at.reconcile(name);
    await at.reconcile(name);
  }
  expect(merges() - tried).toBe(HALF_HOURS);
  expect(approvals()).toMatchObject([{ subject: 'bob@example.com', at: before?.at }]);
  expect(records() - count).toBeLessThan(5);
  expect(await made()).toEqual(proven);

  at.forge.outcome = undefined;
  at.clock.advance(1_801_000);
  await at.reconcile('apps');
  await at.reconcile(name);
  await at.sync();
  await at.reconcile(name);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});
