import { beforeEach, describe, expect, test } from 'vitest';
import { explainRevision } from '../../../src/package/api/explain/explain-revision.ts';
import { kernelExplainer, stateExplainer } from '../../../src/package/api/explain/explain-state.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { approvalExplainer } from '../../approval/explain-approval.ts';
import { gateExplainer } from '../../revision/explain-gates.ts';
import { pullRequestExplainer } from '../explain-pull-request.ts';
import { ShownProposals } from '../shown-proposals.ts';

const SURROUNDINGS = { disabled: [], resolvers: [], running: true, now: 0, actor: 'anna' };
const PERMIT =
  'kubectl create rolebinding review-approvers --namespace default --clusterrole=sluice:approver --user=bob@example.com';

describe('a proposal whose mapped users may not all approve it', () => {
  const open = eachProposals();
  let at: Proposals;
  let shown: ShownProposals;
  const permitted = new Set<string>();
  beforeEach(() => {
    at = open();
    shown = new ShownProposals();
    permitted.clear();
    at.restart({ shown, mayApprove: async ({ name }) => permitted.has(name) });
  });
  const ready = (name: string) => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
  const body = () => at.forge.pulls[0]?.body ?? '';
  const explain = async (name: string) => {
    const { store } = at.world;
    const own = [approvalExplainer({ store, shown }), pullRequestExplainer(store, shown)];
    const explainers = [stateExplainer(store), kernelExplainer, gateExplainer, ...own];
    const { next, reasons } = await explainRevision(store, at.revision(name), explainers, SURROUNDINGS);
    return { next, reasons: reasons.map(({ reason }) => reason) };
  };
  const approvers = [{ user: 'bob', subject: 'bob@example.com' }];

  test.each(['merge', 'review'])(
    'has no green check while none may, with the command that permits them, and follows the right: %s',
    async (publishOn) => {
      await at.policy({ publishOn, approvers });
      const name = await at.propose();
      await at.reconcile(name);
      await at.review(1, 'bob', 'approved', at.revision(name).commit);
      await at.reconcile(name);
      const none =
        'no user whom spec.review.approvers of the policy review lists may approve it yet: bob (bob@example.com)';
      expect(ready(name)).toMatchObject({
        ...{ state: 'pending', title: expect.stringContaining('Blocked by NotPermitted of policy review: no user') },
        text: expect.stringContaining(none),
      });
      expect(ready(name)?.text).toContain(PERMIT);
      expect(body()).toContain(PERMIT);
      expect(body()).toContain(none);
      expect(body()).toContain('**Reviews that do not count:**');
      expect(body()).not.toContain('**Approved:**');
      expect(body()).not.toMatch(/users count[^.]*`bob`/);
      const { next, reasons } = await explain(name);
      expect(next).toEqual([PERMIT]);
      expect(reasons).toEqual(expect.arrayContaining(['ApproversNotPermitted', 'ReviewNotCounted']));

      permitted.add('bob@example.com');
      await at.settle(600_000);
      if (publishOn === 'review') return expect(at.revision(name).lifecycle).toBe('Published');
      expect(ready(name)?.state).toBe('success');
      expect(body()).not.toContain('may approve it yet');
      expect((await explain(name)).next).toEqual(['merge its pull request']);
      expect((await explain(name)).reasons).not.toContain('ApproversNotPermitted');

      // The right is taken back.
      permitted.clear();
      await at.settle(600_000);
      expect(ready(name)?.state).toBe('pending');
      return expect((await explain(name)).next).toEqual([PERMIT]);
    },
  );

  test('names those who may not where others may, and why their reviews do not count', async () => {
    permitted.add('carl@example.com');
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(ready(name)?.state).toBe('success');
    expect(body()).toContain('these may not approve it: Bob (bob@example.com)');
    expect(body()).toMatch(/users count as approvals: `carl`\./);
    expect(body()).toMatch(
      /\*\*Reviews that do not count:\*\* `.* of bob does not count: User "bob@example.com" may not/,
    );
    expect(await explain(name)).toEqual({
      next: ['merge its pull request, not as Bob (bob@example.com)', PERMIT],
      reasons: expect.arrayContaining(['ApproversNotPermitted', 'ReviewNotCounted']),
    });
  });

  test('does not wait for them where no user of the host is to approve it', async () => {
    await at.policy({ publishOn: 'approval', approvers });
    const name = await at.propose();
    await at.reconcile(name);
    expect(ready(name)?.state).toBe('success');
    expect((await explain(name)).next).toEqual([`sluice rpkg approve ${name}`]);
    await at.world.store.update(name, { action: 'approve' }, { ...ANNA, actor: { name: 'carla' } });
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  test('has the same rule in each part of a shared pull request', async () => {
    await at.policy({ publishOn: 'merge', batch: {}, approvers });
    at.serveBranches();
    await at.proposeAll('db', 'web');
    await at.settle(60_000);
    const { head } = await at.forge.get(1);
    expect(at.forge.checksOf(head.commit)).toEqual({ 'sluice/ready': 'pending' });
    expect(body()).toContain('may approve it yet: bob (bob@example.com)');
  });
});
