import { expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import type { MergeStyle } from '../../../test/support/git/merge-on-host.ts';
import { writeCommit } from '../../../test/support/git/write-objects.ts';
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

test.each([
  ['has got another commit since', 'merge', false, undefined],
  ['was created again since', 'squash', false, undefined],
  ['was merged into a branch of the repository', 'merge', true, 'GateUnmet'],
] as const)('a branch that %s is as it was at its merge', async (_, style: MergeStyle, isFork, refusal) => {
  const at = open();
  await at.policy({ publishOn: 'merge' });
  const head = await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED) }, { branch: 'develop', isFork });
  await at.poll();
  const commit = await at.merge(1, 'bob', style);
  const from = style === 'squash' ? commit : head;
  const tree = git(at.path, ['rev-parse', `${from}^{tree}`]);
  git(at.path, [
    'update-ref',
    'refs/heads/develop',
    writeCommit(at.path, { tree, parents: [from], message: 'next\n' }),
  ]);
  await at.world.store.repository('apps').refresh();
  await at.poll();
  expect(at.world.store.find('apps.web.merge-1')).toMatchObject({ commit });
  expect(at.world.store.find('apps.web.merge-1')?.outOfBand?.reason).toBe(refusal);
});
