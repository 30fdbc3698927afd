import { expect, test } from 'vitest';
import { eachProposals } from '../../test/support/proposal-bench.ts';
import { approvalExplainer } from './explain-approval.ts';

const open = eachProposals();
const SURROUNDINGS = { disabled: [], resolvers: [], running: true, now: 0, actor: '' };

test.each([
  ['review', 'approve it by a review of its pull request'],
  ['merge', 'merge its pull request'],
  ['approval', undefined],
])('with publishOn %s the next step is: %s', async (publishOn, onHost) => {
  const at = open();
  await at.policy({ publishOn });
  const name = await at.propose();
  const explain = async (disabled: readonly string[] = []) => {
    const evaluation = { ...(await at.world.store.evaluate(name)), gates: [] };
    const explained = { evaluation, siblings: [], refusals: [], recordFlaw: undefined };
    const { next, alternatives } = await approvalExplainer.explain(explained, { ...SURROUNDINGS, disabled });
    return { next, alternatives };
  };
  const approve = expect.stringMatching(/^sluice rpkg approve apps\.app\.w1/);
  const reject = expect.stringMatching(/^sluice rpkg reject /);
  const byCommand = { next: [approve], alternatives: [reject] };
  expect(await explain()).toEqual(
    onHost === undefined ? byCommand : { next: [onHost], alternatives: [approve, reject] },
  );
  // Nothing that happens there has an effect.
  expect(await explain(['pull-request'])).toEqual(byCommand);
});

test('where a merge is not the only approval that is missing, the next step has the others before it', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 2 } } });
  const evaluation = { ...(await at.world.store.evaluate(await at.propose())), gates: [] };
  const { next } = await approvalExplainer.explain(
    { evaluation, siblings: [], refusals: [], recordFlaw: undefined },
    SURROUNDINGS,
  );
  expect(next).toEqual([
    'merge its pull request as a user whom the policy maps, after approving reviews there by 1 other mapped user',
  ]);
});
