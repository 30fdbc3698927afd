import { beforeEach, describe, expect, test } from 'vitest';
import {
  eachUserPulls,
  GATES,
  KPTFILE,
  LABELS,
  MAP,
  TESTED,
  type UserPullBench,
} from '../../../test/support/user-pull-bench.ts';

describe('merges of pull requests that users open, rare cases', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(async () => {
    at = open();
  });
  const revision = (name: string) => at.world.store.find(name);

  test.each(['squash', 'rebase', 'fast-forward'] as const)('end in the same revision as a %s', async (style) => {
    await at.policy({ publishOn: 'merge' });
    if (style !== 'fast-forward') await at.world.push(at.path, { 'README.md': 'before' });
    await at.pull({ 'db/Kptfile': KPTFILE() });
    await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() }, { onTop: true });
    await at.poll();
    if (style !== 'fast-forward') {
      await at.world.push(at.path, { 'README.md': 'after' });
      await at.world.store.repository('apps').refresh();
    }
    const commit = await at.merge(1, 'bob', style);
    await at.poll();
    for (const name of ['apps.web.merge-1', 'apps.db.merge-1'])
      expect(revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
  });

  test('count reviews: of the merged content as approvals, and requests for changes as a closed gate', async () => {
    await at.policy({ publishOn: 'review' });
    const head = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    at.forge.review(1, 'bob', 'approved', head);
    await at.merge(1, 'eve');
    await at.poll();
    expect(revision('apps.web.merge-1')?.outOfBand).toBeUndefined();
    expect(revision('apps.web.merge-1')?.tip.facts.statement?.statement.record.approvals).toMatchObject([
      { subject: 'bob@example.com', evidence: expect.stringContaining('#review-1') },
    ]);
    const second = await at.pull({ 'web/a.yaml': MAP }, { branch: 'second' });
    at.forge.review(2, 'bob', 'changes-requested', second);
    await at.merge(2, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-2')?.outOfBand?.reason).toBe('GateUnmet');
    expect(at.comment(2, 'merged')).toContain('sluice.dev/Reviewed');
    // With that kind of policy the merge itself is no approval.
    await at.pull({ 'web/b.yaml': MAP }, { branch: 'third' });
    await at.merge(3, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-3')?.outOfBand?.reason).toBe('NotApproved');
  });

  test('of mistakes, of packages that are not rendered, and of conditions of a fork are flagged', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({
      'bad/Kptfile': KPTFILE(),
      'bad/a.yaml': 'a: [\n',
      'raw/Kptfile': KPTFILE(LABELS),
      'raw/map.yaml': MAP,
    });
    await at.merge(1, 'bob');
    await at.poll();
    expect(revision('apps.bad.merge-1')?.outOfBand?.message).toContain('Rendered');
    expect(await at.world.events('apps.raw.merge-1')).toEqual([
      expect.stringContaining('the pipeline changes map.yaml'),
    ]);
    await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED) }, { branch: 'own' });
    await at.merge(2, 'bob');
    await at.pull({ 'api/Kptfile': KPTFILE(GATES, TESTED) }, { branch: 'foreign', isFork: true });
    await at.merge(3, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-2')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(revision('apps.api.merge-3')?.outOfBand?.reason).toBe('GateUnmet');
  });

  test('while no process ran are found and published in their order; earlier ones than the policy are not', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.pull({ 'old/Kptfile': KPTFILE() }, { branch: 'old' });
    await at.merge(1, 'bob');
    await at.merge(2, 'bob', 'squash');
    at.forge.change(2, { closedAt: '2020-01-01T00:00:00Z' });
    await at.pull({ 'web/a.yaml': MAP }, { branch: 'third' });
    const last = await at.merge(3, 'bob');
    at.forge.change(1, { title: 'changed last' });
    at.restart();
    await at.poll();
    expect(revision('apps.web.merge-1')).toMatchObject({ revision: 1 });
    expect(revision('apps.web.merge-3')).toMatchObject({ revision: 2, commit: last, outOfBand: undefined });
    expect(revision('apps.old.merge-2')).toBeUndefined();
    expect(revision('apps.web.main')?.outOfBand).toBeUndefined();
  });
});
