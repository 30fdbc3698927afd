import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
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
