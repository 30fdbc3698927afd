import { expect, test } from 'vitest';
import { hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { eachProposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';

const open = eachProposals();

test('a check that has ended at the head of an approved proposal makes its merge due, and wakes nothing else', async () => {
  const at = open();
  await at.policy();
  const [name = '', other = ''] = await at.proposeAll('web', 'db');
  protectMain(at.world.store.repository('apps'));
  hostRepository(at.forge, at.path);
  const requests = new SyncRequests(at.clock);
  at.restart({ requests });
  at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
  await at.settle();
  for (const [index, one] of [name, other].entries()) {
    const pull = at.forge.pulls.findIndex(({ head }) => head.branch.includes(index === 0 ? 'web' : 'db')) + 1;
    at.forge.review(pull, 'bob', 'approved', at.revision(one).commit);
  }
  // Until the pauses between the attempts are long.
  await at.settle(600_000);
  const merges = () => at.forge.calls.filter((call) => call === 'merge').length;
  const before = merges();
  expect(before).toBeGreaterThan(2);
  const { commit } = at.revision(name);
  const apps = { namespace: 'default', name: 'apps' };
  at.forge.calls.length = 0;
  at.woken.length = 0;
  requests.addCheck(apps, 'f'.repeat(40));
  requests.addCheck({ namespace: 'other', name: 'apps' }, commit);
  expect(at.woken).toEqual([]);
  for (let check = 0; check < 10; check += 1) requests.addCheck(apps, commit);
  expect(at.woken).toEqual([name]);
  expect(at.forge.calls).toEqual([]);
  await at.reconcile(name);
  await at.reconcile(other);
  expect(merges()).toBe(1);
});
