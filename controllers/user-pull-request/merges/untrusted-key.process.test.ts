import { beforeEach, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  await at.world.push(at.path, { 'README.md': 'start' });
  await at.world.store.repository('apps').refresh();
  await at.poll();
});

test('a merge from while the key of the server did not count is published once it counts again', async () => {
  await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP });
  await at.poll();
  await at.merge(1, 'bob');
  const { trust } = at.world.store.repository('apps');
  const untrusted = vi.spyOn(trust, 'expectOwnKey').mockImplementation(() => {
    throw new SluiceError('Refused', 'the signing key of this server is not one that the repository trusts');
  });
  for (let turn = 0; turn < 3; turn += 1)
    expect(await at.poll(60_000)).toMatchObject({ reason: expect.stringContaining('the signing key of this server') });
  untrusted.mockRestore();
  await at.poll(60_000);
  expect(at.world.store.find('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});
