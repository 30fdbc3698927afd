import { expect, test } from 'vitest';
import { stateExplainer } from '../../src/package/api/explain/explain-state.ts';
import { explainSchema } from '../../src/package/model/revision/revision-readings.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { eachProposals } from '../../test/support/proposal-bench.ts';
import type { Shown } from '../pull-request/shown-proposals.ts';
import { proposalId } from '../pull-request/text/section.ts';
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
    const { next, alternatives } = await approvalExplainer(at.world).explain(explained, { ...SURROUNDINGS, disabled });
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
  const { next } = await approvalExplainer(at.world).explain(
    { evaluation, siblings: [], refusals: [], recordFlaw: undefined },
    SURROUNDINGS,
  );
  expect(next).toEqual([
    'merge its pull request as a user whom the policy maps, after approving reviews there by 1 other mapped user',
  ]);
});

test('where too few mapped users are left for the approvals that are missing, the next step is another entry, or a user of Sluice', async () => {
  const at = open();
  const approvers = [{ user: 'Bob', subject: 'bob@example.com' }];
  await at.policy({ publishOn: 'merge', approvers }, { approval: { quorum: { required: 2 } } });
  const name = await at.propose();
  const nextOf = async () => {
    const evaluation = { ...(await at.world.store.evaluate(name)), gates: [] };
    const explained = { evaluation, siblings: [], refusals: [], recordFlaw: undefined };
    return (await approvalExplainer(at.world).explain(explained, SURROUNDINGS)).next;
  };
  expect(await nextOf()).toEqual([
    `add an entry for another user to spec.review.approvers of the policy review, or as another user than Bob (bob@example.com): sluice rpkg approve ${name}`,
  ]);
  // Then the merge is the other one.
  await at.reconcile(name);
  await at.world.store.update(name, { action: 'approve' }, { actor: { name: 'carol' }, face: 'cli' });
  expect(await nextOf()).toEqual(['merge its pull request']);
});

test('no next step is on the Git host while the branch of the proposal has other files, its pull request has ended, or a plan holds it', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  const nextOf = async (isHeld = false) => {
    const evaluation = { ...(await at.world.store.evaluate(name)), gates: [] };
    const explained = { evaluation, siblings: [], refusals: [], recordFlaw: undefined };
    const options = { store: at.world.store, isHeld: async () => isHeld };
    return (await approvalExplainer(options).explain(explained, SURROUNDINGS)).next;
  };
  expect(await nextOf()).toEqual(['merge its pull request']);
  expect(await nextOf(true)).toEqual([]);
  const { refusals } = at.world.store.repository('apps');
  refusals.noteEnd(name, { reason: 'PullRequestClosed', message: 'it was closed' });
  expect(await nextOf()).toEqual([]);
  await at.reconcile(name);
  expect(refusals.of(name)).toEqual([]);
  expect(await nextOf()).toEqual(['merge its pull request']);
  await at.world.push(at.path, { 'policies/p.yaml': 'kind: B\n' }, 'proposed/app/w1');
  await at.sync();
  expect(await nextOf()).toEqual([]);
});

test('a conflict, and a merge that publishes nothing, lead to the commands that end the proposal, and not to its approval', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  const explained = async () => {
    const key = { namespace: 'default', name };
    return explainSchema.parse(await at.world.client.subResource('explain').get(packageRevisionKind, key, {}))
      .explanation;
  };
  const reject = `sluice rpkg reject ${name}`;
  const { refusals } = at.world.store.repository('apps');
  refusals.noteEnd(name, { reason: 'MergeNotPublished', message: 'it was merged' });
  const evaluation = await at.world.store.evaluate(name);
  const state = { evaluation, siblings: [], refusals: [], recordFlaw: undefined };
  expect((await stateExplainer(at.world.store).explain(state, SURROUNDINGS)).next).toEqual([reject]);
  refusals.noteEnd(name, undefined);
  await at.world.push(at.path, { 'app/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\n' });
  await at.sync();
  const { next, alternatives } = await explained();
  expect(next).toEqual([reject, `sluice rpkg rebase ${name}`, `sluice rpkg propose ${name}`]);
  expect(alternatives?.join()).not.toContain('approve');
});

test('users who may not approve count as long as the proposal is the one that they were asked about', async () => {
  const at = open();
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  const evaluation = { ...(await at.world.store.evaluate(name)), gates: [] };
  const { revision, record } = evaluation;
  const nextOf = async (proposal: string) => {
    const rights = { without: [{ name: 'bob@example.com' }], isNone: false };
    const shown = { get: () => ({ proposal, rights }) as unknown as Shown };
    const explained = { evaluation, siblings: [], refusals: [], recordFlaw: undefined };
    return (await approvalExplainer({ ...at.world, shown }).explain(explained, SURROUNDINGS)).next;
  };
  expect(await nextOf(proposalId(revision.uid, record.steps))).toEqual([
    'merge its pull request, not as Bob (bob@example.com)',
  ]);
  expect(await nextOf('0123456789abcdef')).toEqual(['merge its pull request']);
});

test('a user who may not approve since they proposed it is named with the name on the host, also in the pull request', async () => {
  const at = open();
  const carl = { user: 'carl', subject: 'carl@example.com' };
  const approvers = [{ user: 'alice', subject: 'berta' }, carl];
  await at.policy({ publishOn: 'merge', approvers }, { approval: { quorum: { required: 1, excludeProposer: true } } });
  const name = await at.propose();
  await at.reconcile(name);
  const { next } = await approvalExplainer(at.world).explain(
    { evaluation: await at.world.store.evaluate(name), siblings: [], refusals: [], recordFlaw: undefined },
    SURROUNDINGS,
  );
  expect(next).toEqual(['merge its pull request, not as alice (berta)']);
  const body = at.forge.pulls[0]?.body;
  expect(body).toContain('approving reviews of these users count as approvals: `carl`.');
  expect(body).toContain('These users may not approve it: `anna`, `alice (berta)`.');
});

test('where the policy maps no other user than the proposer, the next step is an approval by command', async () => {
  const at = open();
  const approvers = [{ user: 'alice', subject: 'berta' }];
  await at.policy({ publishOn: 'merge', approvers }, { approval: { quorum: { required: 1, excludeProposer: true } } });
  const evaluation = { ...(await at.world.store.evaluate(await at.propose())), gates: [] };
  const explained = { evaluation, siblings: [], refusals: [], recordFlaw: undefined };
  const { next } = await approvalExplainer(at.world).explain(explained, SURROUNDINGS);
  expect(next).toEqual([expect.stringMatching(/^sluice rpkg approve apps\.app\.w1/)]);
});
