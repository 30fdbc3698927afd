import { beforeEach, describe, expect, test } from 'vitest';
import { isDecided, isMergeOfDecision } from '../../../src/package/store/approve-by-merge.ts';
import { recordedApprovals } from '../../../src/package/store/unmet-rules.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { hostRepository, mergeBranch } from '../../../test/support/delivery-pull-request.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import { waitsForMerge } from '../../approval/explain-approval.ts';

const BLOCKED = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' } as const;

describe('a decision for a merge of the host, whose review does not count any more', () => {
  const open = eachProposals();
  let at: Proposals;
  let name: string;
  let may: boolean;
  beforeEach(() => {
    at = open();
    may = true;
  });

  /** Bob has approved, or these users, the decision is recorded, and the host refuses the merge so far. */
  async function decide(
    spec: Record<string, unknown> = {},
    rules: Record<string, unknown> = {},
    users: readonly string[] = ['bob'],
  ): Promise<void> {
    await at.policy(rules, spec);
    at.restart({ mayApprove: async () => may });
    name = await at.propose();
    protectMain(at.world.store.repository('apps'));
    hostRepository(at.forge, at.path);
    await at.reconcile(name);
    at.forge.outcome = BLOCKED;
    for (const user of users) await review('approved', user);
    await settle();
    expect(at.revision(name).record?.approvals).toMatchObject(
      users.map((user) => ({ subject: `${user}@example.com` })),
    );
    at.forge.outcome = undefined;
    at.forge.calls.length = 0;
  }
  async function settle(times = 3): Promise<void> {
    at.clock.advance(600_000);
    for (let turn = 0; turn < times; turn += 1) {
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
    }
  }
  const review = (state: 'approved' | 'changes-requested' | 'dismissed', user = 'bob') =>
    at.review(1, user, state, at.revision(name).commit);
  const dismiss = (nth: number) => {
    const all = at.forge.reviewsOf.get(1) ?? [];
    at.forge.reviewsOf.set(
      1,
      all.map((one, index) => (index === nth ? { ...one, state: 'dismissed' } : one)),
    );
    at.forge.change(1, {});
  };
  async function changePolicy(change: Record<string, unknown>): Promise<void> {
    const key = { namespace: 'default', name: 'review' };
    const policy = await at.world.client.get(packagePolicyKind, key);
    const spec = { ...policy.spec, review: { ...policy.spec.review, ...change } } as typeof policy.spec;
    await at.world.client.update(packagePolicyKind, { ...policy, spec });
    const expected = JSON.stringify(Object.values(change)[0]);
    const [field] = Object.keys(change);
    await expect
      .poll(() => {
        at.clock.advance(1000);
        return JSON.stringify((at.world.policyFor(at.revision(name)).review as never)?.[`${field}`]);
      })
      .toBe(expected);
  }
  const mergeByHand = (by: string) => {
    const merge = { method: 'merge', title: 'by hand', message: '' } as const;
    const commit = mergeBranch(at.path, 'main', at.revision(name).commit, merge);
    at.forge.change(1, { state: 'merged', merged: { commit, by }, closedAt: new Date(at.clock.now()).toISOString() });
  };

  const withdrawals: readonly [string, () => Promise<void> | void][] = [
    [
      'the reviewer requested changes, and that review was dismissed',
      async () => {
        await review('changes-requested');
        dismiss(1);
      },
    ],
    [
      'the review was deleted',
      () => {
        at.forge.reviewsOf.set(1, []);
        at.forge.change(1, {});
      },
    ],
    ['the policy lists the reviewer no more', () => changePolicy({ approvers: [] })],
    ['the policy has reviews publish no more', () => changePolicy({ publishOn: 'approval' })],
    [
      'the reviewer may approve no more',
      () => {
        may = false;
      },
    ],
    ['the review was dismissed', () => dismiss(0)],
  ];

  test.each(withdrawals)('is not merged, nor an approval of a merge by another user: %s', async (_, withdraw) => {
    await decide();
    await withdraw();
    await settle();
    // A decision that is old is made again.
    at.clock.advance(3_000_000);
    await settle();
    expect(at.forge.calls.filter((call) => call === 'merge')).toEqual([]);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    mergeByHand('mallory');
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'NotApproved' } });
  });

  test('stays in the record as withdrawn, and counts for no other approval, until another review takes its place', async () => {
    await decide({ approval: { quorum: { required: 1 } } });
    const given = async () => recordedApprovals(await at.world.store.evaluate(name)).quorums[0]?.given.length;
    expect(await given()).toBe(1);
    dismiss(0);
    await settle();
    expect(at.revision(name).record?.approvals).toMatchObject([{ withdrawn: expect.stringMatching(/was dismissed/) }]);
    expect(await given()).toBe(0);
    await review('approved');
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('that was withdrawn is none for waves, explanations and the log', async () => {
    await decide();
    const repository = at.world.store.repository('apps');
    const readers = async () => [
      isDecided(at.revision(name)),
      isMergeOfDecision(at.revision(name), repository),
      waitsForMerge(await at.world.store.evaluate(name)) !== undefined,
    ];
    expect(await readers()).toEqual([true, true, true]);
    dismiss(0);
    await settle();
    expect(await readers()).toEqual([false, false, false]);
  });

  test.each(['Sluice', 'a user'])(
    'that was withdrawn holds up no merge by %s for the decision of another reviewer',
    async (by) => {
      await decide({ approval: { quorum: { required: 1 } } });
      dismiss(0);
      await settle();
      if (by === 'a user') at.forge.outcome = BLOCKED;
      await review('approved', 'carl');
      await settle();
      if (by === 'a user') await at.mergeHead(name, 'mallory', 'merge');
      await settle();
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    },
  );

  test.each([[['bob']], [['bob', 'carl']]])(
    'counts again once the policy has reviews publish again: %j',
    async (users) => {
      await decide({ approval: { quorum: { required: users.length } } }, {}, users);
      at.forge.outcome = BLOCKED;
      await changePolicy({ publishOn: 'approval' });
      await settle();
      await changePolicy({ publishOn: 'review' });
      await settle();
      expect(at.revision(name).record?.approvals?.map(({ withdrawn }) => withdrawn)).toEqual(
        users.map(() => undefined),
      );
      at.forge.outcome = undefined;
      await settle();
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    },
  );

  test('the approval by a comment stays after the review of the user was dismissed', async () => {
    await decide();
    const id = at.forge.comment(1, 'bob', '/sluice approve');
    const evidence = at.forge.commentsOf.get(1)?.find((one) => one.id === id)?.url ?? '';
    const bob = { actor: { name: 'bob@example.com' }, face: 'api' } as const;
    await at.world.store.update(name, { action: 'approve', evidence }, bob);
    dismiss(0);
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  /** Eve has approved through the API, as a member of these groups, and the host refuses the merge so far. */
  async function decideByRequest(groups: readonly string[] | undefined): Promise<void> {
    await at.policy({ publishOn: 'approval' });
    name = await at.propose();
    protectMain(at.world.store.repository('apps'));
    hostRepository(at.forge, at.path);
    await at.reconcile(name);
    at.forge.outcome = BLOCKED;
    const actor = { name: 'eve', ...(groups === undefined ? {} : { groups: [...groups] }) };
    await at.world.store.update(name, { action: 'approve' }, { actor, face: groups === undefined ? 'cli' : 'api' });
    await settle(1);
    at.forge.outcome = undefined;
    at.forge.calls.length = 0;
  }

  test('an approval through the API stops counting when its user loses the right, and that of another user takes its place', async () => {
    await decideByRequest(['system:authenticated', 'sre']);
    at.restart({ mayApprove: async (user) => user.name !== 'eve' });
    await settle();
    at.clock.advance(3_000_000);
    await settle();
    expect(at.forge.calls).not.toContain('merge');
    expect((await at.world.events(name)).at(-1)).toMatch(/^NotMerged: .*the approval of eve at .* another user has to/);
    const fay = { actor: { name: 'fay', groups: [] }, face: 'api' } as const;
    await at.world.store.update(name, { action: 'approve' }, fay);
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test.each(['fay', 'hal'])(
    'the loss of the right by %s, of three of whom two are enough, holds up no merge',
    async (user) => {
      let lost = '';
      await at.policy({ publishOn: 'approval' }, { approval: { quorum: { required: 2 } } });
      at.restart({ mayApprove: async (one) => one.name !== lost });
      name = await at.propose();
      protectMain(at.world.store.repository('apps'));
      hostRepository(at.forge, at.path);
      await at.reconcile(name);
      at.forge.outcome = BLOCKED;
      for (const one of ['fay', 'gus', 'hal'])
        await at.world.store.update(name, { action: 'approve' }, { actor: { name: one, groups: [] }, face: 'api' });
      await settle();
      lost = user;
      at.forge.outcome = undefined;
      await settle();
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    },
  );

  test('a merge by a user of the host after the loss of the right is out of band', async () => {
    await decideByRequest([]);
    at.restart({ mayApprove: async () => false });
    mergeByHand('mallory');
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'NotApproved' } });
  });

  test('the right through any group of the request stays, also when the decision is made again', async () => {
    await decideByRequest(['system:authenticated', 'sre']);
    at.restart({ mayApprove: async ({ groups }) => groups?.includes('sre') === true });
    at.forge.outcome = BLOCKED;
    at.clock.advance(3_000_000);
    await settle();
    at.forge.outcome = undefined;
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('an approval by a command without an API, which grants no rights, stays', async () => {
    await decideByRequest(undefined);
    at.restart({ mayApprove: async () => false });
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('the right through a group of the reviewer stays', async () => {
    await decide({}, { approvers: [{ user: 'bob', subject: 'bob@example.com', groups: ['sre'] }] });
    at.restart({ mayApprove: async ({ groups }) => groups?.includes('sre') === true });
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test.each([{}, { approval: { forbidSelfApproval: true } }])(
    'another review of the user counts in its place: %j',
    async (spec) => {
      await decide(spec);
      dismiss(0);
      await settle();
      await review('approved');
      await settle();
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    },
  );
});
