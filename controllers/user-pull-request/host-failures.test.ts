import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { eachUserPulls, GATE, GATES, KPTFILE, MAP, type UserPullBench } from '../../test/support/user-pull-bench.ts';
import { SyncRequests } from '../repository/sync-requests.ts';

describe('while the host fails', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(() => {
    at = open();
  });
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn += 1) await at.poll();
  };
  const failing = async (method: string, error: SluiceError, work: () => Promise<unknown>) => {
    at.forge.before = (called) => {
      if (called === method) throw error;
    };
    const result = await work().catch((failure: unknown) => failure);
    at.forge.before = () => undefined;
    return result;
  };
  const down = new SluiceError('Unavailable', 'the host is down');

  test('a second change in the same second is checked after a list that failed', async () => {
    await at.policy();
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await turns(4);
    const { updatedAt } = at.forge.change(1, { title: 'first' });
    await at.poll();
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP });
    const [pull] = at.forge.pulls;
    if (pull !== undefined) at.forge.pulls[0] = { ...pull, updatedAt };
    expect(await failing('listUpdated', down, () => at.poll())).toBe(down);
    await at.poll();
    expect(Object.keys(at.titles(commit))).toEqual(['sluice/ready']);
  });

  test('an event says that the pull requests can be read again, once', async () => {
    await at.policy();
    await at.pull({ 'web/Kptfile': KPTFILE() });
    const invalid = new SluiceError('Unauthenticated', 'status 401: the token is not valid');
    await failing('listUpdated', invalid, () => turns(2));
    await turns(3);
    const reasons = (await at.world.client.list(eventKind, { namespace: 'default' })).items
      .map(({ reason }) => reason)
      .filter((reason) => reason?.startsWith('PullRequests'));
    expect(reasons.sort()).toEqual(['PullRequestsNotChecked', 'PullRequestsRead']);
  });

  test('a request for the checks again outlasts a failure to read Git that follows', async () => {
    await at.policy();
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await turns(4);
    const before = at.titles(commit);
    at.forge.checks.clear();
    const key = { namespace: 'default', name: 'apps' };
    requests.addReview(key, { rerun: commit });
    const head = { branch: 'proposed/web/w1', commit };
    requests.addReview(key, { pull: { number: 2, isReview: false, isComment: false, head } });
    const { index } = at.world.store.repository('apps');
    const { ref } = index;
    index.ref = () => {
      throw new Error('git: cannot read the object');
    };
    await expect(at.poll()).rejects.toThrow('git');
    index.ref = ref;
    await turns(2);
    expect(at.titles(commit)).toEqual(before);
  });

  test('all are checked by a policy that has changed, although the merge queue cannot be read', async () => {
    let isDown = false;
    const waiting = async () => {
      if (isDown) throw down;
      return { merges: [], isComplete: true };
    };
    Object.assign(at.forge, { mergeQueue: { waiting } });
    await at.policy();
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES) });
    await turns(4);
    const key = { namespace: 'default', name: 'review' };
    await at.world.client.patch(packagePolicyKind, key, { spec: { review: { gateChecks: [GATE] } } });
    const { name } = await at.world.draft('apps/probe/w1');
    await expect.poll(() => at.world.policyFor(at.world.store.get(name)).review?.gateChecks).toEqual([GATE]);
    // The queue is read since another one is new.
    await at.pull({ 'docs/a.md': 'text' }, { branch: 'other' });
    isDown = true;
    await expect(at.poll()).rejects.toBe(down);
    isDown = false;
    await turns(2);
    expect(Object.keys(at.titles(commit))).toEqual(['sluice/ready', `sluice/gate/${GATE}`]);
  });

  test.each(['get', 'listUpdated'])(
    'a failure that comes again after it had ended has an event again: %s',
    async (method) => {
      await at.policy();
      await at.pull({ 'web/Kptfile': KPTFILE() });
      await turns(3);
      const refused = new SluiceError('Refused', 'the App has been suspended');
      const fail = () =>
        failing(method, refused, async () => {
          at.forge.change(1, {});
          await turns(2);
        });
      const events = async () => {
        const { items } = await at.world.client.list(eventKind);
        return items.find(({ reason }) => reason === 'PullRequestsNotChecked')?.count;
      };
      await fail();
      await expect.poll(events).toBe(1);
      at.forge.change(1, {});
      await turns(3);
      await fail();
      await expect.poll(events).toBe(2);
    },
  );
});
