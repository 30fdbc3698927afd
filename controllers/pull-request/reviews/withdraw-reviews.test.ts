import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { approvalController } from '../../approval/approval-controller.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const FILES = { 'a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: a}\n' };
const SOAK = { approval: { automatic: true, quorum: { required: 1 }, soak: { proposed: '1h' } } };

describe('a recorded approval by a review', () => {
  const open = eachProposals();
  let at: Proposals;
  let name: string;
  beforeEach(() => {
    at = open();
  });

  const subjects = () => (at.revision(name).record?.approvals ?? []).map(({ subject }) => subject);
  const changeReview = (author: string, state: 'dismissed' | 'deleted', number = 1) => {
    const all = at.forge.reviewsOf.get(number) ?? [];
    at.forge.reviewsOf.set(
      number,
      all.flatMap((one) => (one.author !== author ? one : state === 'deleted' ? [] : { ...one, state })),
    );
    at.forge.change(number, {});
  };
  /** A poll by the clock of the test, and what it wakes. */
  async function poll(): Promise<void> {
    at.clock.advance(60_000);
    await at.reconcile('apps');
    await at.reconcile(name);
    await at.reconcile(name);
  }
  /** Bob has approved in the pull request, which is recorded while the soak time blocks the publication. */
  async function recorded(review: Record<string, unknown> = {}, batchesReads = false): Promise<void> {
    at.forge.batchesReads = batchesReads;
    await at.policy(review, SOAK);
    name = (await at.world.draft('apps/app/w1', FILES)).name;
    await at.world.settle(name);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(subjects()).toEqual(['bob@example.com']);
  }
  async function afterSoak(): Promise<void> {
    at.clock.advance(7_200_000);
    const { client, store } = at.world;
    const recorder = at.world.recorder('controller:approval');
    const approval = approvalController({ client, store, clock: at.clock, recorder });
    await poll();
    await approval.reconcile({ namespace: 'default', name }, CONTEXT);
  }
  async function unlist(): Promise<void> {
    const policy = await at.world.client.get(packagePolicyKind, { namespace: 'default', name: 'review' });
    const approvers = [{ user: 'carl', subject: 'carl@example.com' }];
    const spec = { ...policy.spec, review: { ...policy.spec.review, approvers } } as typeof policy.spec;
    await at.world.client.update(packagePolicyKind, { ...policy, spec });
    await expect
      .poll(() => {
        at.clock.advance(1000);
        return at.world.policyFor(at.revision(name)).review?.approvers;
      })
      .toHaveLength(1);
  }

  const ends: readonly [string, () => Promise<void> | void, RegExp][] = [
    ['was dismissed', () => changeReview('bob', 'dismissed'), /the review was dismissed or deleted/],
    ['was deleted', () => changeReview('bob', 'deleted'), /the review was dismissed or deleted/],
    [
      'was followed by requested changes of the user, which are dismissed too',
      async () => {
        at.forge.review(1, 'bob', 'changes-requested', at.revision(name).commit);
        await poll();
        changeReview('bob', 'dismissed');
      },
      /a later one took its place/,
    ],
    ['is of a user whom the policy lists no more', unlist, /approvers of the policy review does not list this user/],
  ];
  for (const batchesReads of [false, true])
    test.each(ends)(
      `does not publish after a soak time when it %s (reads together: ${batchesReads})`,
      async (_, end, why) => {
        await recorded({}, batchesReads);
        await end();
        await poll();
        expect(subjects()).toEqual([]);
        expect(at.revision(name).recordDistrust).toBeUndefined();
        const events = (await at.world.events(name)).filter((event) => event.startsWith('ApprovalWithdrawn'));
        expect(events).toEqual([expect.stringMatching(why)]);
        const entries = (await at.world.store.history(name, 20)).filter(({ action }) => action === 'withdraw');
        expect(entries).toMatchObject([
          { by: 'controller:pull-request', face: 'controller', reason: expect.stringMatching(why) },
        ]);
        expect(entries[0]?.what).toContain('withdraw the approval of bob@example.com');
        const { etag } = at.revision(name);
        at.restart();
        await poll();
        expect(at.revision(name).etag).toBe(etag);
        await afterSoak();
        expect(at.revision(name).lifecycle).toBe('Proposed');
      },
    );

  const again: readonly [string, 'approved' | 'changes-requested'][] = [
    ['requested changes', 'changes-requested'],
    ['approved once more', 'approved'],
  ];
  test.each(again)('does not count again when the user %s, and deletes that review', async (_, state) => {
    await recorded();
    at.forge.review(1, 'bob', state, at.revision(name).commit);
    await poll();
    // What the process remembers must not decide.
    at.restart();
    at.forge.reviewsOf.set(1, (at.forge.reviewsOf.get(1) ?? []).slice(0, 1));
    at.forge.change(1, {});
    for (let turn = 0; turn < 3; turn += 1) await poll();
    expect(subjects()).toEqual([]);
    const uncounted = (await at.world.events(name)).filter((event) => event.startsWith('ReviewNotCounted'));
    expect(uncounted).toEqual([
      expect.stringContaining('#review-1 of bob does not count: the same user reviewed again'),
    ]);
    const { etag } = at.revision(name);
    await afterSoak();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Proposed', etag });
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await poll();
    await afterSoak();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('that stands publishes after the soak time, and one that took the place of a withdrawn one too', async () => {
    await recorded();
    changeReview('bob', 'dismissed');
    await poll();
    expect(subjects()).toEqual([]);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await poll();
    expect(subjects()).toEqual(['bob@example.com']);
    await afterSoak();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('is withdrawn by the next process where it ended while none ran', async () => {
    await recorded();
    changeReview('bob', 'dismissed');
    at.restart();
    await at.reconcile(name);
    expect(subjects()).toEqual([]);
  });

  test('stays while the host cannot be read, and where only a list from before lacks it', async () => {
    await recorded();
    const all = at.forge.reviewsOf.get(1) ?? [];
    changeReview('bob', 'dismissed');
    at.restart();
    at.forge.before = (method) => {
      if (method === 'reviews') throw new SluiceError('Unavailable', 'the host is down');
    };
    await at.reconcile(name).catch(() => undefined);
    expect(subjects()).toEqual(['bob@example.com']);
    // The first read lacks it, the one before the withdrawal has it.
    at.forge.reviewsOf.set(1, []);
    let reads = 0;
    at.forge.before = (method) => {
      if (method !== 'reviews') return;
      reads += 1;
      if (reads === 2) at.forge.reviewsOf.set(1, all);
      if (reads === 2) at.forge.change(1, {});
    };
    at.restart();
    await at.reconcile(name);
    expect(reads).toBeGreaterThan(1);
    expect(subjects()).toEqual(['bob@example.com']);
  });

  test('by other ways stays: the command line, and a comment', async () => {
    await recorded();
    await at.world.store.update(name, { action: 'approve' }, { actor: { name: 'dora' }, face: 'cli' });
    at.forge.comment(1, 'carl', '/sluice approve');
    await poll();
    expect(subjects()).toEqual(['bob@example.com', 'dora', 'carl@example.com']);
    changeReview('bob', 'deleted');
    await poll();
    expect(subjects()).toEqual(['dora', 'carl@example.com']);
  });

  test('ends within ten minutes where the host shows no change of a deleted one, by one read of the reviews', async () => {
    await recorded();
    await poll();
    at.forge.reviewsOf.set(1, []);
    at.forge.calls.length = 0;
    expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 600_000 });
    expect(subjects()).toEqual(['bob@example.com']);
    expect(at.forge.calls).toEqual([]);
    at.clock.advance(600_000);
    await at.reconcile(name);
    expect(subjects()).toEqual([]);
  });

  test('costs no request while nothing changes', async () => {
    await recorded();
    await poll();
    at.forge.calls.length = 0;
    for (let turn = 0; turn < 3; turn += 1) await at.reconcile(name);
    expect(at.forge.calls).toEqual([]);
  });

  test('and that of another user are recorded together only while both stand', async () => {
    await at.policy({}, { approval: { quorum: { required: 2 } } });
    name = await at.propose();
    await at.reconcile(name);
    at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
    at.forge.review(1, 'carl', 'approved', at.revision(name).commit);
    await at.reconcile('apps');
    at.forge.before = () => {
      if (subjects().length !== 1) return;
      at.forge.before = () => undefined;
      changeReview('bob', 'dismissed');
    };
    await at.reconcile(name);
    await poll();
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(subjects()).toEqual([]);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await poll();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('of a shared pull request is withdrawn from each of its proposals', async () => {
    at.serveBranches();
    await at.policy({ batch: {} }, SOAK);
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.review(1, 'bob', 'approved', (await at.forge.get(1)).head.commit);
    await at.settle(60_000);
    const all = () => names.map((one) => (at.revision(one).record?.approvals ?? []).map(({ subject }) => subject));
    expect(all()).toEqual([['bob@example.com'], ['bob@example.com']]);
    changeReview('bob', 'dismissed');
    await at.settle(60_000);
    expect(all()).toEqual([[], []]);
  });
});
