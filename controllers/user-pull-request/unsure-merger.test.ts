import { expect, test } from 'vitest';
import { eachUserPulls, KPTFILE } from '../../test/support/user-pull-bench.ts';

const open = eachUserPulls();

test('where no merge is an approval, the check of a user waits for a review', async () => {
  const at = open();
  at.forge.unsureMerger = 'the host may have detected the merge';
  await at.policy({ publishOn: 'merge' });
  const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
  await at.poll();
  await at.poll();
  const check = () => at.forge.checks.get(commit)?.get('sluice/ready');
  expect(check()?.state).not.toBe('success');
  expect(check()?.text).toContain(
    'no merge is an approval here, since the host may have detected the merge, and no user',
  );
  at.forge.review(1, 'bob', 'approved', commit);
  await at.poll();
  await at.poll();
  expect(check()?.state).toBe('success');
  await at.merge(1, 'bob');
  await at.poll();
  expect(at.world.store.find('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});
