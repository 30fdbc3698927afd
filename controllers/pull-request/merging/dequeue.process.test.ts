import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { freezesAt } from '../../../src/package/model/policy/approval-rules.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { proposeReserved, settleReserved } from './testing-reserved.ts';

const RESOLVER = { actor: { name: 'resolver:other' }, face: 'controller' } as const;
const REQUIRED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };

describe('a pull request in the merge queue', () => {
  const open = eachProposals();
  let at: Proposals;
  let name: string;
  beforeEach(() => {
    at = open();
  });

  async function start(...given: readonly Record<string, unknown>[]): Promise<void> {
    ({ name } = await proposeReserved(at, ...given));
  }
  const settle = (times?: number) => settleReserved(at, name, times);
  const merges = () => at.forge.calls.filter((call) => call === 'merge').length;
  const reviewBy = (author: string) => at.review(1, author, 'approved', at.revision(name).commit);

  test('while a pull request is in the merge queue, its branch gets no commit of a controller', async () => {
    await start({}, REQUIRED);
    await at.set(name, 'True');
    at.forge.outcome = { state: 'queued' };
    await reviewBy('bob');
    await settle();
    expect(merges()).toBe(1);
    const { commit } = at.revision(name);
    const change = at.world.store.change(
      name,
      { conditions: [{ type: 'example.com/Other', status: 'True' }] },
      RESOLVER,
    );
    await expect(change).rejects.toMatchObject({ code: 'Busy' });
    expect(at.revision(name).commit).toBe(commit);
    at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
    at.clock.advance(600_000);
    await settle();
    await at.world.store.change(name, { conditions: [{ type: 'example.com/Other', status: 'True' }] }, RESOLVER);
    expect(at.revision(name).commit).not.toBe(commit);
  });

  describe('what Sluice has put into the merge queue', () => {
    const key = { namespace: 'default', name: 'stop' };
    async function queued(spec: Record<string, unknown> = {}): Promise<void> {
      await start({}, spec);
      at.forge.batchesReads = true;
      at.forge.outcome = { state: 'queued' };
      at.forge.after = (method) => {
        if (method === 'merge') at.forge.queue.add(1);
      };
      await reviewBy('bob');
      await settle();
      expect([...at.forge.queue]).toEqual([1]);
      expect(at.world.store.repository('apps').refusals.isInMergeQueue(at.revision(name))).toBe(true);
    }
    const freezes = () => freezesAt(at.world.policyFor(at.revision(name)).freezes, at.clock.now());
    async function freeze(): Promise<void> {
      await at.world.client.create(freezeKind, { metadata: key, spec: { reason: 'repair' } });
      await expect.poll(freezes).toHaveLength(1);
    }
    const dequeues = () => at.forge.calls.filter((call) => call === 'dequeue').length;

    test.each([false, true])(
      'leaves it when a freeze begins, and is put there again when it ends (restart: %s)',
      async (isRestarted) => {
        await queued();
        if (isRestarted) at.restart();
        await freeze();
        await at.reconcile(name);
        expect([...at.forge.queue]).toEqual([]);
        expect(at.world.store.repository('apps').refusals.isInMergeQueue(at.revision(name))).toBe(false);
        const events = await at.world.events(name);
        expect(events).toContainEqual(
          expect.stringMatching(/^Dequeued: .*pulls\/1 was removed .*Freeze default\/stop/),
        );
        for (let minutes = 0; minutes < 30; minutes += 10) {
          at.clock.advance(600_000);
          await settle(1);
        }
        expect([...at.forge.queue]).toEqual([]);
        expect(dequeues()).toBe(1);
        expect(merges()).toBe(1);
        await at.world.client.delete(freezeKind, key);
        await expect
          .poll(() => {
            at.clock.advance(1000);
            return freezes();
          })
          .toHaveLength(0);
        await settle(2);
        expect([...at.forge.queue]).toEqual([1]);
        expect(merges()).toBe(2);
      },
    );

    test.each(['window', 'freeze'] as const)(
      'leaves it when a rule of a policy closes its publication, and is put there again when that ends: %s',
      async (kind) => {
        const day = 86_400_000;
        const untilHour = (hour: number) => (hour * 3_600_000 + day - (at.clock.now() % day)) % day;
        const period = (cron: string, duration: string) => [{ cron, duration }];
        const rule =
          kind === 'window' ? { windows: period('0 0 * * *', '1h') } : { freezes: period('0 1 * * *', '23h') };
        await queued({ approval: rule });
        const { requeueAfter = 0 } = (await at.reconcile(name)) as { requeueAfter?: number };
        expect(requeueAfter).toBeLessThanOrEqual(untilHour(1));
        at.clock.advance(untilHour(1));
        await settle(1);
        expect([...at.forge.queue]).toEqual([]);
        expect(await at.world.events(name)).toContainEqual(
          expect.stringMatching(/^Dequeued: .*pulls\/1 was removed .*policy review (permits|forbids) approvals/),
        );
        at.clock.advance(untilHour(23));
        await settle();
        expect([merges(), dequeues()]).toEqual([1, 1]);
        at.clock.advance(untilHour(0));
        await settle();
        expect([...at.forge.queue]).toEqual([1]);
        expect(merges()).toBe(2);
      },
    );

    test('leaves it when a gate closes that no change of the pull request shows', async () => {
      await queued();
      const key = { namespace: 'default', name: 'review' };
      await at.world.client.patch(packagePolicyKind, key, { spec: REQUIRED });
      await expect.poll(() => at.world.policyFor(at.revision(name)).requiredGates).toHaveLength(2);
      await at.reconcile(name);
      expect([...at.forge.queue]).toEqual([]);
      expect((await at.world.events(name)).join('\n')).toMatch(/Dequeued: .*gate example.com\/Tested is closed/);
    });

    const policyKey = { namespace: 'default', name: 'review' };
    const changePolicy = (spec: object) => at.world.client.patch(packagePolicyKind, policyKey, { spec } as never);
    const policy = () => at.world.policyFor(at.revision(name));

    test.each([true, false])(
      'leaves it when a policy requires more approvals, also if the decision was recorded as one of them meanwhile (%s)',
      async (isRecorded) => {
        await queued();
        await changePolicy({ approval: { quorum: { required: 2 } } });
        await expect.poll(() => policy().approvalRules).toHaveLength(1);
        const bob = { actor: { name: 'bob@example.com' }, face: 'api', evidence: 'https://git.example.com/2' } as const;
        if (isRecorded) await at.world.store.update(name, { action: 'approve' }, bob);
        await at.reconcile(name);
        expect([...at.forge.queue]).toEqual([]);
        expect((await at.world.events(name)).join('\n')).toMatch(
          isRecorded ? /Dequeued: .*no approval of what it publishes/ : /Dequeued: .*has 1 of 2 approvals/,
        );
      },
    );

    test('leaves it also if that is another process, and the decision was recorded as one of several approvals', async () => {
      await queued();
      at.restart();
      await changePolicy({ approval: { quorum: { required: 2 } } });
      await expect.poll(() => policy().approvalRules).toHaveLength(1);
      const bob = { actor: { name: 'bob@example.com' }, face: 'api', evidence: 'https://git.example.com/2' } as const;
      await at.world.store.update(name, { action: 'approve' }, bob);
      await settle();
      expect([...at.forge.queue]).toEqual([]);
      expect(dequeues()).toBe(1);
      expect(at.world.store.repository('apps').refusals.isInMergeQueue(at.revision(name))).toBe(false);
    });

    test('after a restart, what a user has put there stays, which is found out once and is no mistake', async () => {
      await queued();
      at.forge.queuedByOthers.add(1);
      at.restart();
      await changePolicy({ review: { publishOn: 'merge' } });
      await expect.poll(() => policy().review?.publishOn).toBe('merge');
      await settle();
      expect([...at.forge.queue]).toEqual([1]);
      expect(dequeues()).toBe(1);
      expect(at.world.store.repository('apps').refusals.isInMergeQueue(at.revision(name))).toBe(true);
      expect((await at.world.events(name)).join('\n')).not.toMatch(/equeued/);
    });

    test('is reported when its policy has ended while no process ran, which named the host', async () => {
      await queued();
      at.restart();
      await changePolicy({ review: null });
      await expect.poll(() => policy().review).toBeUndefined();
      await at.reconcile(name);
      expect((await at.world.events(name)).at(-1)).toMatch(
        /^NotDequeued: .*no policy with spec.review selects it; remove it there: .*pulls\/1 is in the merge queue/,
      );
    });

    test.each([false, true])(
      'leaves it when the policy leaves merges to users, who may put it there (restart: %s)',
      async (isRestarted) => {
        await queued();
        if (isRestarted) at.restart();
        await changePolicy({ review: { publishOn: 'merge' } });
        await expect.poll(() => policy().review?.publishOn).toBe('merge');
        await at.reconcile(name);
        expect([...at.forge.queue]).toEqual([]);
        at.forge.queue.add(1);
        at.forge.queuedByOthers.add(1);
        at.forge.change(1, {});
        await settle(2);
        expect([...at.forge.queue]).toEqual([1]);
        expect(dequeues()).toBe(1);
        expect((await at.world.events(name)).join('\n')).not.toMatch(/NotDequeued/);
      },
    );

    test.each([1, 2])('leaves it also if the response to the merge was lost, %i polls later', async (polls) => {
      await start();
      at.forge.batchesReads = true;
      Object.assign(at.forge, {
        mergeQueue: { waiting: async () => ({ merges: [], isComplete: true }), treeOf: async () => undefined },
      });
      at.forge.outcome = { state: 'queued' };
      at.forge.after = (method) => {
        if (method !== 'merge') return;
        at.forge.queue.add(1);
        throw new SluiceError('Unavailable', 'status 502');
      };
      await reviewBy('bob');
      await expect(settle()).rejects.toThrow('502');
      await changePolicy({ review: { publishOn: 'merge' } });
      await expect.poll(() => policy().review?.publishOn).toBe('merge');
      for (let turn = 0; turn < polls; turn += 1) {
        at.clock.advance(30_000);
        await at.reconcile('apps');
      }
      await at.reconcile(name);
      expect([...at.forge.queue]).toEqual([]);
    });

    test.each(['removed', 'contradicted'] as const)(
      'leaves it when no one policy says any more how it is reviewed: %s',
      async (how) => {
        await queued();
        const { spec } = await at.world.client.get(packagePolicyKind, policyKey);
        if (how === 'removed') await changePolicy({ review: null });
        else await at.world.client.create(packagePolicyKind, { metadata: { name: 'other' }, spec });
        await expect.poll(() => policy().review).toBeUndefined();
        at.forge.before = (method) => {
          if (method === 'dequeue') throw new SluiceError('Unavailable', 'it is down');
        };
        expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 60_000 });
        at.forge.before = () => undefined;
        await at.reconcile(name);
        expect([...at.forge.queue]).toEqual([]);
        expect((await at.world.events(name)).join('\n')).toMatch(
          /Dequeued: .*(no policy with spec.review selects it|the policies other, review all have spec.review)/,
        );
        await at.reconcile(name);
        expect(dequeues()).toBe(2);
      },
    );

    test('stays there if the host refuses that, which an event reports, and is tried again', async () => {
      await queued();
      await freeze();
      at.forge.before = (method) => {
        if (method === 'dequeue') throw new SluiceError('Refused', 'the App may not do that');
      };
      await at.reconcile(name);
      expect((await at.world.events(name)).join('\n')).toMatch(
        /NotDequeued: .*pulls\/1 cannot be removed .*the App may not do that.*Freeze default\/stop.*remove it there/,
      );
      at.forge.before = () => undefined;
      await at.reconcile(name);
      expect([...at.forge.queue]).toEqual([]);
    });

    test('by another user stays there, which an event reports', async () => {
      await queued();
      at.forge.queuedByOthers.add(1);
      await freeze();
      await at.reconcile(name);
      expect([...at.forge.queue]).toEqual([1]);
      expect((await at.world.events(name)).join('\n')).toMatch(/NotDequeued: .*another user has put it/);
    });

    test('leaves it when the review by which it was approved is dismissed', async () => {
      await queued();
      const [review] = at.forge.reviewsOf.get(1) ?? [];
      if (review !== undefined) at.forge.reviewsOf.set(1, [{ ...review, state: 'dismissed' }]);
      at.forge.change(1, {});
      await settle();
      expect([...at.forge.queue]).toEqual([]);
      expect(at.revision(name).lifecycle).toBe('Proposed');
    });
  });
});
