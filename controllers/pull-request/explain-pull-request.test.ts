import { expect, test } from 'vitest';
import type { ExplainedRevision } from '../../src/package/api/explain/explainer.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { eachProposals } from '../../test/support/proposal-bench.ts';
import { protectMain } from '../../test/support/protected-main.ts';
import { pullRequestExplainer } from './explain-pull-request.ts';
import { ShownProposals } from './shown-proposals.ts';

const open = eachProposals();
const SURROUNDINGS = { disabled: [], resolvers: [], running: true, now: 0, actor: '' };

test('an explanation has the number and the address of the pull request once they are known, and the branch before', async () => {
  const at = open();
  await at.policy();
  const shown = new ShownProposals();
  at.restart({ shown });
  const name = await at.propose();
  const explain = async (of: ShownProposals | undefined) => {
    const explained = { evaluation: await at.world.store.evaluate(name) } as ExplainedRevision;
    return (await pullRequestExplainer(at.world.store, of).explain(explained, SURROUNDINGS)).reasons?.[0]?.message;
  };
  const unknown = 'has it reviewed in the pull request of the branch proposed/app/w1 on git.example.com;';
  expect(await explain(shown)).toContain(unknown);
  await at.reconcile(name);
  expect(await explain(shown)).toContain(
    'has it reviewed in pull request #1 (https://git.example.com/owner/apps/pulls/1) of the branch proposed/app/w1 on git.example.com;',
  );
  expect(await explain(undefined)).toContain(unknown);
});

test('what is approved and waits for the merge of the host has the pull request as the next step, until a note has another one', async () => {
  const at = open();
  await at.policy();
  const shown = new ShownProposals();
  at.restart({ shown });
  const name = await at.propose();
  protectMain(at.world.store.repository('apps'));
  await at.reconcile(name);
  const nextOf = async () => {
    const explained = { evaluation: await at.world.store.evaluate(name) } as ExplainedRevision;
    return (await pullRequestExplainer(at.world.store, shown).explain(explained, SURROUNDINGS)).next;
  };
  expect(await nextOf()).toBeUndefined();
  await at.world.store.update(name, { action: 'approve' }, { ...ANNA, actor: { name: 'carla' } });
  expect(await nextOf()).toEqual([
    'merge its pull request, unless Sluice has the host merge it: https://git.example.com/owner/apps/pulls/1',
  ]);
  at.world.store
    .repository('apps')
    .refusals.noteNotMerged(name, { message: 'a check is missing', next: 'wait for it' });
  expect(await nextOf()).toBeUndefined();
});

test('a review is no approval by the user who proposed it, where a policy forbids that', async () => {
  const at = open();
  const approvers = [
    { user: 'bert', subject: 'berta' },
    { user: 'carl', subject: 'carl@example.com' },
  ];
  await at.policy({ approvers }, { approval: { forbidSelfApproval: true } });
  const name = await at.propose();
  const effectOf = async (count: number) => {
    const evaluation = await at.world.store.evaluate(name);
    const { review } = evaluation.policy;
    const policy = {
      ...evaluation.policy,
      review: review && { ...review, approvers: review.approvers.slice(0, count) },
    };
    const explained = { evaluation: { ...evaluation, policy } } as ExplainedRevision;
    const { reasons } = await pullRequestExplainer(at.world.store).explain(explained, SURROUNDINGS);
    return reasons?.[0]?.message;
  };
  expect(await effectOf(2)).toContain('an approving review by one of carl publishes it');
  expect(await effectOf(1)).toContain('no review publishes it, since all users of spec.review.approvers have proposed');
});
