import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { BERTA, eachProposals } from '../../../test/support/proposal-bench.ts';

const WANTED = { labels: ['packages'], reviewers: { users: ['carl'] } };

describe('labels and review requests of a pull request', () => {
  const open = eachProposals();

  test.each([
    { when: 'before', opensWithLabels: true },
    { when: 'after', opensWithLabels: true },
    { when: 'before', opensWithLabels: false },
    { when: 'after', opensWithLabels: false },
  ] as const)(
    'none is lost by an end of the process $when any call, opened with labels: $opensWithLabels',
    async ({ when, opensWithLabels }) => {
      const at = open();
      at.forge.opensWithLabels = opensWithLabels;
      await at.policy(WANTED);
      let failing = '';
      for (let call = 0, isAll = false; !isAll; call += 1) {
        expect(call).toBeLessThan(30);
        const { name } = await at.world.draft(`apps/app-${call}/w1`);
        await at.world.store.update(name, { action: 'propose' }, BERTA);
        at.restart();
        at.forge.requested.length = 0;
        let calls = 0;
        at.forge[when] = (method) => {
          // The process has ended: no later call has an effect either.
          if (calls++ < call) return;
          failing = method;
          throw new SluiceError('Unavailable', 'status 502');
        };
        await at.reconcile(name).catch(() => undefined);
        isAll = calls <= call;
        at.forge[when] = () => undefined;
        at.restart();
        await at.reconcile(name);
        const own = at.forge.pulls.filter(({ head }) => head.branch === `proposed/app-${call}/w1`);
        expect(own, `${when} ${failing}`).toMatchObject([{ labels: ['packages'] }]);
        expect(new Set(at.forge.requested), `${when} ${failing}`).toEqual(new Set(['carl']));
      }
    },
  );

  test('what users remove is not added again, by a new process neither', async () => {
    const at = open();
    await at.policy(WANTED);
    const name = await at.propose();
    await at.reconcile(name);
    expect(at.forge.requested).toEqual(['carl']);
    at.forge.change(1, { labels: [] });
    for (const isNew of [false, true]) {
      if (isNew) at.restart();
      for (const key of ['apps', name]) await at.reconcile(key);
      expect(at.forge.pulls[0]?.labels).toEqual([]);
      expect(at.forge.requested).toEqual(['carl']);
    }
  });

  test('a reviewer whom the host refuses is requested once, and a new process explains it and requests those in its place', async () => {
    const at = open();
    at.forge.strangers.add('no-one');
    await at.policy({ labels: ['packages'], reviewers: { users: ['carl', 'no-one'] } });
    const name = await at.propose();
    await at.reconcile(name);
    const requests = () => at.forge.calls.filter((method) => method === 'requestReviewers').length;
    expect([requests(), at.forge.requested]).toEqual([1, ['carl']]);
    const { body = '' } = at.forge.pulls[0] ?? {};
    at.forge.change(1, { labels: [], body: body.replaceAll('\n', '\r\n') });
    at.restart();
    for (const key of ['apps', name, 'apps', name]) await at.reconcile(key);
    expect([requests(), at.forge.requested, at.forge.pulls[0]?.labels]).toEqual([1, ['carl'], []]);
    const { refusals } = at.world.store.repository('apps');
    const message = expect.stringMatching(
      /the review of no-one cannot be requested: .*; correct spec\.review\.reviewers/,
    );
    expect(refusals.of(name)).toMatchObject([{ reason: 'ReviewerRefused', message }]);

    at.restart();
    const reviewers = { users: ['carl', 'dora'], teams: [] };
    const policy = { namespace: 'default', name: 'review' };
    await at.world.client.patch(packagePolicyKind, policy, { spec: { review: { reviewers } } });
    await expect.poll(() => at.world.policyFor(at.revision(name)).review?.reviewers).toEqual(reviewers);
    for (const key of ['apps', name]) await at.reconcile(key);
    expect(at.forge.requested).toContain('dora');
    expect(refusals.of(name)).toEqual([]);
    at.restart();
    for (const key of ['apps', name]) await at.reconcile(key);
    expect(requests()).toBe(2);
  });

  test('one request opens it with its labels, and neither reviews nor comments of it are read before it changes', async () => {
    const at = open();
    await at.policy({ labels: ['packages'] });
    const name = await at.propose();
    await at.reconcile(name);
    expect(at.forge.pulls[0]?.labels).toEqual(['packages']);
    for (const method of ['reviews', 'comments', 'addLabels', 'update']) expect(at.forge.calls).not.toContain(method);
    at.clock.advance(1000);
    await at.reconcile('apps');
    expect(at.woken).toContain(name);
    await at.reconcile(name);
    expect(at.forge.calls.filter((method) => method === 'reviews')).toHaveLength(1);
  });

  test('a pull request that is to have none is ready with the request that opens it', async () => {
    const at = open();
    await at.policy();
    const opened: (string | undefined)[] = [];
    at.forge.after = (method) => {
      if (method === 'open') opened.push(at.forge.pulls[0]?.body);
    };
    await at.reconcile(await at.propose());
    expect(opened).toEqual([expect.stringMatching(/^<!-- sluice:begin proposal=[0-9a-f]{16} prepared -->/)]);
  });
});
