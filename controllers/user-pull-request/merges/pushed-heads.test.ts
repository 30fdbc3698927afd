import { expect, test } from 'vitest';
import { eachUserPulls, GATES, KPTFILE, TESTED } from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();

test.each(['', 'refs/pull/1/head'])(
  'a head that never was in a branch is none whose branch was removed: %j',
  async (branch) => {
    const at = open();
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED) }, { branch: 'review', isFork: true });
    await at.merge(1, 'bob');
    // A push to refs/for/main creates a pull request on Gitea, for which a user needs no right to push to branches.
    const commit = at.forge.pulls[0]?.head.commit ?? '';
    at.forge.change(1, { head: { branch, commit, isSameRepository: true } });
    await at.poll();
    expect(at.world.store.find('apps.web.merge-1')?.outOfBand?.reason).toBe('GateUnmet');
  },
);
