import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { eachUserPulls, KPTFILE, type UserPullBench } from '../../../test/support/user-pull-bench.ts';
import { REREAD_MS } from '../../pull-request/reviews/withdraw-reviews.ts';

describe('the check of a pull request of a user', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(() => {
    at = open();
  });
  const ready = (commit: string) => at.forge.checks.get(commit)?.get('sluice/ready');

  test.each(['merge', 'review'])(
    'does not pass where too many reviews make the merge out of band: %s',
    async (publishOn) => {
      await at.policy({ publishOn });
      const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
      at.forge.before = (method) => {
        if (method === 'reviews' || method === 'mergedState')
          throw new SluiceError('LimitExceeded', 'there are too many reviews');
      };
      await at.poll();
      expect(ready(commit)).toMatchObject({ state: 'pending', title: '1 gate closed: sluice.dev/Reviewed of web' });
      expect(at.comment(1)).toContain('too many reviews');
      await at.merge(1, 'bob');
      await at.poll();
      expect(at.world.store.get('apps.web.merge-1').outOfBand).toBeDefined();
    },
  );

  test('passes some time after a request for changes was deleted, which the host does not show', async () => {
    await at.policy({ publishOn: 'merge' });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    at.forge.review(1, 'bob', 'changes-requested', commit);
    await at.poll();
    expect(ready(commit)?.state).toBe('failure');
    expect(await at.check(1)).toMatchObject({ requeueAfter: REREAD_MS });
    at.forge.reviewsOf.set(1, []);
    expect(await at.check(1)).toBeUndefined();
    expect(ready(commit)?.state).toBe('success');
  });
});
