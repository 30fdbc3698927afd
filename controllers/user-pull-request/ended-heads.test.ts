import { expect, test, vi } from 'vitest';
import { eachUserPulls, KPTFILE } from '../../test/support/user-pull-bench.ts';

const open = eachUserPulls();

test('what was fetched of a pull request that ended while no process ran is forgotten, and of an open one is not', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' });
  await at.pull({ 'web/Kptfile': KPTFILE() }, { branch: 'ended', isFork: true });
  await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'open', isFork: true });
  await at.poll();
  await at.merge(1, 'bob');
  const { untracked } = at.world.store.repository('apps');
  vi.spyOn(untracked, 'fetchedPulls').mockResolvedValue([1, 2]);
  const forget = vi.spyOn(untracked, 'forgetPull');
  at.restart();
  await at.poll();
  expect(forget.mock.calls).toEqual([[1]]);
});
