import { beforeEach, describe, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { approvalExplainer } from '../../approval/explain-approval.ts';
import { pullRequestExplainer } from '../explain-pull-request.ts';

const SURROUNDINGS = { disabled: [], resolvers: [], running: true, now: 0, actor: '' };

describe('a proposal whose record a push has removed', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  async function lost(): Promise<string> {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.reconcile(name);
    expect(ready(name)).toMatchObject({ state: 'success' });
    git(at.path, ['update-ref', 'refs/sluice/records/app/w1', 'refs/heads/main']);
    await at.sync();
    await at.reconcile(name);
    return name;
  }
  const ready = (name: string) => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');

  test('has a check that fails with the next step, and so does why', async () => {
    const name = await lost();
    expect(ready(name)).toMatchObject({
      state: 'failure',
      title: expect.stringContaining('Blocked by RecordLost: the record of the proposal'),
      text: expect.stringContaining('reject it, then propose it again'),
    });
    expect(at.forge.pulls[0]?.body).toContain('so that a merge now would publish nothing');
    const evaluation = await at.world.store.evaluate(name);
    const explained = { evaluation, siblings: [], refusals: [], recordFlaw: undefined };
    const { next, reasons } = await approvalExplainer(at.world).explain(explained, SURROUNDINGS);
    expect(next).toEqual([expect.stringContaining('rpkg reject'), expect.stringContaining('rpkg propose')]);
    expect(reasons).toContainEqual(expect.objectContaining({ reason: 'BlockedRecordLost' }));
    const pull = await pullRequestExplainer(at.world.store).explain(explained, SURROUNDINGS);
    expect(pull.reasons?.[0]?.message).toContain('nothing there publishes it');
  });

  test('is not published by a merge, which a comment reports once', async () => {
    const name = await lost();
    await at.mergeHead(name, 'bob');
    await at.readMerge(name);
    await at.settle(120_000);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    const comments = at.forge.commentsOf.get(1) ?? [];
    expect(comments.map(({ body }) => body)).toEqual([
      expect.stringMatching(/Not published.*`bob` merged .*reject it, then propose it again/s),
    ]);
    expect(at.forge.calls.filter((call) => call === 'setComment')).toHaveLength(1);
  });
});
