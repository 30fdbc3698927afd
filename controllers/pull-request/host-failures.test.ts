import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { explainRevision } from '../../src/package/api/explain/explain-revision.ts';
import { stateExplainer } from '../../src/package/api/explain/explain-state.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';

describe('why the host does not accept what a proposal needs', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(async () => {
    at = open();
    await at.policy();
  });

  test('is explained after another commit and another proposal too', async () => {
    const name = await at.propose();
    const failure = { reason: 'PullRequestFailed', message: 'the App has been suspended' };
    const noted = async () => {
      await at.reconcile(name);
      return at.world.store.repository('apps').refusals.of(at.revision(name).name);
    };
    at.forge.before = () => {
      throw new SluiceError('Refused', failure.message);
    };
    expect(await noted()).toMatchObject([failure]);
    // That of the policy has the commands that end it.
    const { store } = at.world;
    const surroundings = { disabled: [], resolvers: [], running: true, now: 0, actor: 'anna' };
    const { next } = await explainRevision(store, at.revision(name), [stateExplainer(store)], surroundings);
    expect(next).toEqual(['sluice why packagepolicy/review']);
    await at.set(name, 'True');
    expect(await noted()).toMatchObject([failure]);
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    expect(await noted()).toEqual([]);
    await at.world.store.update(name, { action: 'propose' }, ANNA);
    expect(await noted()).toMatchObject([failure]);
    at.forge.before = () => undefined;
    expect(await noted()).toEqual([]);
  });

  test('a refused reviewer is explained until the policy names another one, who is requested', async () => {
    at.forge.strangers.add('bbo');
    const name = await at.propose();
    const request = async (...users: string[]) => {
      const policy = { namespace: 'default', name: 'review' };
      const reviewers = { users, teams: [] };
      await at.world.client.patch(packagePolicyKind, policy, { spec: { review: { reviewers } } });
      await expect.poll(() => at.world.policyFor(at.revision(name)).review?.reviewers).toEqual(reviewers);
    };
    await request('bbo', 'carl');
    await at.reconcile(name);
    const { refusals } = at.world.store.repository('apps');
    const message = expect.stringContaining('the review of bbo cannot be requested: no collaborator');
    expect(refusals.of(name)).toMatchObject([{ reason: 'ReviewerRefused', message }]);
    await at.set(name, 'True');
    await at.reconcile(name);
    expect(refusals.of(name)).toMatchObject([{ reason: 'ReviewerRefused' }]);
    expect(at.forge.requested).toEqual(['carl']);
    await request('bob', 'carl');
    await at.reconcile(name);
    expect(refusals.of(name)).toEqual([]);
    expect(at.forge.requested).toEqual(['carl', 'bob']);
  });

  test.each(['changed', 'created again'])(
    'and who is requested if the policy was %s with another host',
    async (how) => {
      at.forge.strangers.add('bbo');
      const name = await at.propose();
      const policy = { namespace: 'default', name: 'review' };
      const { spec } = await at.world.client.get(packagePolicyKind, policy);
      const set = async (provider: 'gitea' | 'github', ...users: string[]) => {
        const review = { ...spec.review, reviewers: { users }, forge: { ...spec.review?.forge, provider } };
        await at.world.client.patch(packagePolicyKind, policy, { spec: { review } as never });
        await expect.poll(() => at.world.policyFor(at.revision(name)).review?.reviewers.users).toEqual(users);
      };
      await set('github', 'bbo');
      await at.reconcile(name);
      const { refusals } = at.world.store.repository('apps');
      expect(refusals.of(name)).toMatchObject([{ reason: 'ReviewerRefused' }]);
      if (how === 'created again') {
        await at.world.client.delete(packagePolicyKind, policy);
        await expect.poll(() => at.world.policyFor(at.revision(name)).review).toBeUndefined();
        await at.reconcile(name);
        await at.world.client.create(packagePolicyKind, { metadata: { name: 'review' }, spec });
      }
      await set('gitea', 'bob');
      await at.reconcile(name);
      expect(refusals.of(name)).toEqual([]);
      expect(at.forge.requested).toEqual(['bob']);
      at.restart();
      await at.reconcile(name);
      expect(at.forge.requested).toEqual(['bob']);
    },
  );

  test('a comment that the host refuses is explained until one is written', async () => {
    const name = await at.propose();
    await at.reconcile(name);
    const { refusals } = at.world.store.repository('apps');
    at.forge.before = (method) => {
      if (method === 'setComment') throw new SluiceError('Refused', 'the token may not read its user');
    };
    at.forge.comment(1, 'bob', '/sluice why');
    await at.reconcile('apps');
    await at.reconcile(name);
    const message = expect.stringContaining('a comment cannot be written: the token may not read its user');
    expect(refusals.of(name)).toMatchObject([{ reason: 'ReplyFailed', message }]);
    at.forge.before = () => undefined;
    await at.reconcile(name);
    expect(refusals.of(name)).toEqual([]);
  });
});
