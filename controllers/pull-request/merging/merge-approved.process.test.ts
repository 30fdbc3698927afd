import { beforeEach, describe, expect, test } from 'vitest';
import type { MergeObstacle, MergeOutcome } from '../../../src/forge/forge-merging.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { historySchema } from '../../../src/package/model/revision/revision-readings.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { mergeBranch } from '../../../test/support/delivery-pull-request.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { approveTargets } from '../../wave-plan/targets/approve-targets.ts';
import { WAVE_PLAN_ACTOR } from '../../wave-plan/wave-plan-controller.ts';
import { proposeReserved, protectTags, settleReserved } from './testing-reserved.ts';

const CARLA = { ...ANNA, actor: { name: 'carla' } };
const REQUIRED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };

describe('a main branch that the host reserves for merges', () => {
  const open = eachProposals();
  let at: Proposals;
  let name: string;
  let unprotect: () => void;
  beforeEach(() => {
    at = open();
  });

  async function start(review: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Promise<void> {
    ({ name, unprotect } = await proposeReserved(at, review, spec));
  }
  const settle = (times?: number) => settleReserved(at, name, times);
  const merges = () => at.forge.calls.filter((call) => call === 'merge').length;
  const approvals = () => at.revision(name).record?.approvals ?? [];
  const reviewBy = (author: string, state: 'approved' | 'changes-requested' | 'dismissed' = 'approved') =>
    at.review(1, author, state, at.revision(name).commit);

  test.each(['merge', 'squash'] as const)('an approving review has the host merge it: %s', async (mergeMethod) => {
    await start({ mergeMethod });
    const { commit } = at.revision(name);
    await reviewBy('bob');
    await at.reconcile(name);
    expect(approvals()).toMatchObject([{ subject: 'bob@example.com', mergeOf: commit }]);
    await settle();
    expect(merges()).toBe(1);
    const { merged } = at.forge.pulls[0] ?? {};
    expect(at.revision(name)).toMatchObject({
      ...{ lifecycle: 'Published', revision: 1, commit: merged?.commit, outOfBand: undefined },
    });
    const { record } = at.revision(name).tip.facts.statement?.statement ?? {};
    const [review] = at.forge.reviewsOf.get(1) ?? [];
    expect(record?.approvals).toMatchObject([{ subject: 'bob@example.com', face: 'api', evidence: review?.url }]);
    expect(record?.steps.at(-1)).toMatchObject({ action: 'approve', by: 'bob@example.com' });
    const parents = git(at.path, ['log', '-1', '--format=%P', 'main']).split(' ');
    expect(parents).toHaveLength(mergeMethod === 'merge' ? 2 : 1);
  });

  test('with publishOn: merge, an approval in a comment is refused with the next step, and later commands are executed', async () => {
    await start({ publishOn: 'merge' });
    at.forge.comment(1, 'bob', '/sluice approve');
    at.forge.comment(1, 'bob', '/sluice why');
    await settle();
    const replies = (at.forge.commentsOf.get(1) ?? []).filter(({ isOwn }) => isOwn).map(({ body }) => body);
    expect(replies.join()).toMatch(
      /\/sluice why.*Done.*\n.*\/sluice approve.*\*\*Refused\*\*.*merge its pull request instead/,
    );
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Proposed' });
    expect(at.world.store.repository('apps').refusals.of(name)).toEqual([]);
  });

  test.each(['merge', 'review'] as const)(
    'with publishOn: %s, an approval in a comment does not name a merge as the next step where a rule refuses the tag',
    async (publishOn) => {
      await start({ publishOn });
      unprotect();
      protectTags(at);
      at.forge.comment(1, 'bob', '/sluice approve');
      await settle();
      const replies = (at.forge.commentsOf.get(1) ?? []).filter(({ isOwn }) => isOwn).map(({ body }) => body);
      expect(replies.join()).toMatch(/\/sluice approve.*\*\*Refused\*\*.*protected tag/);
      expect(replies.join()).not.toMatch(/merge its pull request instead/);
    },
  );

  test('an approval by the API is recorded once, and has the host merge it; where pushes are permitted it publishes at once', async () => {
    await start({ publishOn: 'approval' });
    const warnings: string[] = [];
    const context = { ...CARLA, warn: (message: string) => void warnings.push(message) };
    const made = await at.world.store.update(name, { action: 'approve' }, context);
    expect(made?.lifecycle).toBe('Proposed');
    expect(warnings.join()).toMatch(/rules of the Git host reserve the branch main for merges/);
    const again = at.world.store.update(name, { action: 'approve' }, CARLA);
    await expect(again).rejects.toThrow(
      /is approved already, by carla at .*by the merge of its pull request \(WaitsForMerge\)/,
    );
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect((await at.world.store.evaluate(name)).record.steps.at(-1)).toMatchObject({ by: 'carla', face: 'cli' });

    const { name: other } = await at.world.draft('apps/web/w1', { 'a.yaml': 'kind: A\n' });
    await at.world.store.update(other, { action: 'propose' }, ANNA);
    unprotect();
    at.clock.advance(3_600_000);
    await at.reconcile(other);
    await at.world.store.update(other, { action: 'approve' }, CARLA);
    expect(at.revision(other).lifecycle).toBe('Published');
    expect(merges()).toBe(1);
  });

  test('an approval with a closed gate, and without a policy that reviews in pull requests, is refused as before', async () => {
    await start({}, REQUIRED);
    await expect(at.world.store.update(name, { action: 'approve' }, CARLA)).rejects.toThrow(/Tested is closed/);
    await at.set(name, 'True');
    at.restart();
    await at.reconcile(name);
    await at.world.store.update(name, { action: 'approve' }, CARLA);
    await at.set(name, 'False');
    await settle();
    expect(merges()).toBe(0);
    expect((await at.world.events(name)).at(-1)).toMatch(/^NotMerged: .*gate example.com\/Tested is closed/);
    // Another condition is another commit, for which it is decided again.
    await at.set(name, 'True');
    at.clock.advance(600_000);
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('with publishOn: merge the refusal of the host is reported as it is', async () => {
    await start({ publishOn: 'merge' });
    await expect(at.world.store.update(name, { action: 'approve' }, CARLA)).rejects.toThrow(/protected branch/);
    expect(approvals()).toEqual([]);
  });

  test('with publishOn: merge what a WavePlan approves is merged too, at the commit that it approved', async () => {
    await start({ publishOn: 'merge' });
    const { commit } = at.revision(name);
    const client = at.world.client.as({ name: WAVE_PLAN_ACTOR }, 'controller');
    const intents = [{ id: 'apps/web', key: { namespace: 'default', name }, commit }];
    const approve = () =>
      approveTargets(intents, () => 'wave one', { client, store: at.world.store }, new AbortController().signal);
    const waits = {
      id: 'apps/web',
      refusal: expect.stringMatching(/^WaitsForMerge: it is approved by controller:wave-plan/),
    };
    expect(await approve()).toEqual([waits]);
    expect(approvals()).toMatchObject([{ subject: WAVE_PLAN_ACTOR, mergeOf: commit }]);
    at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
    await settle();
    expect(await approve()).toMatchObject([{ refusal: expect.stringContaining('WaitsForMerge') }]);
    expect((await at.world.events(name)).at(-1)).toMatch(/^NotMerged: .*a check is missing; satisfy the rules/);
    at.forge.outcome = undefined;
    at.clock.advance(600_000);
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    const { record } = at.revision(name).tip.facts.statement?.statement ?? {};
    expect(record?.steps.at(-1)).toMatchObject({ action: 'approve', by: WAVE_PLAN_ACTOR });
    expect(await approve()).toEqual([{ id: 'apps/web' }]);
  });

  test.each<[MergeOutcome, RegExp]>([
    [{ state: 'refused', obstacle: 'blocked', message: 'a check is missing' }, /a check is missing; satisfy the rules/],
    [{ state: 'refused', obstacle: 'conflict', message: 'it conflicts' }, /it conflicts; resolve the conflict/],
    [
      { state: 'refused', obstacle: 'behind', message: 'out of date' },
      /updates the branch as soon as it has read the main branch/,
    ],
    [{ state: 'refused', obstacle: 'method', message: 'no' }, /spec.review.mergeMethod/],
    [{ state: 'queued' }, /it is in the merge queue/],
  ])('what the host has against it is reported, and it is merged when that ends: %j', async (outcome, expected) => {
    await start();
    at.forge.outcome = outcome;
    await reviewBy('bob');
    await settle();
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(merges()).toBe(1);
    const key = { namespace: 'default', name };
    const explained = await at.world.client.subResource('explain').get(packageRevisionKind, key);
    expect(JSON.stringify(explained)).toMatch(/WaitsForMerge.*it is approved by bob@example.com since/);
    const event = (await at.world.events(name)).at(-1);
    expect(event).toMatch(/^NotMerged: https:/);
    expect(event).toMatch(expected);
    at.forge.outcome = undefined;
    at.clock.advance(600_000);
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('an approval for a merge that another one published without is in the history as that, and not as required', async () => {
    await start({ publishOn: 'approval' });
    at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
    await at.world.store.update(name, { action: 'approve' }, CARLA);
    unprotect();
    at.clock.advance(600_000);
    await at.world.store.update(name, { action: 'approve' }, { ...ANNA, actor: { name: 'dora' } });
    expect(at.revision(name).lifecycle).toBe('Published');
    const key = { namespace: 'default', name };
    const read = await at.world.client.subResource('history').get(packageRevisionKind, key);
    const entries = historySchema.parse(read).entries.filter(({ action }) => action === 'approval');
    expect(entries).toMatchObject([{ by: 'carla', what: 'approval, for a merge of the Git host' }]);
  });

  test('a refused merge is requested again after the pauses of deliveries', async () => {
    await start();
    at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
    await reviewBy('bob');
    await settle();
    for (const [pauseMs, expected] of [
      [19_000, 1],
      [1000, 2],
      [39_000, 2],
      [1000, 3],
    ] as const) {
      at.clock.advance(pauseMs);
      await settle(1);
      expect(merges()).toBe(expected);
    }
  });

  test('a method that the host does not permit is not requested again, until the policy names another one', async () => {
    await start();
    at.forge.outcome = { state: 'refused', obstacle: 'method', message: 'Merge commits are not allowed' };
    at.forge.methods = ['squash'];
    await reviewBy('bob');
    for (let turn = 0; turn < 5; turn += 1) {
      await settle();
      at.clock.advance(600_000);
    }
    expect(merges()).toBe(1);
    expect((await at.world.events(name)).at(-1)).toMatch(
      /^NotMerged: .*Merge commits are not allowed; permit the method/,
    );
    at.forge.outcome = undefined;
    const key = { namespace: 'default', name: 'review' };
    await at.world.client.patch(packagePolicyKind, key, { spec: { review: { mergeMethod: 'squash' } } });
    await expect
      .poll(() => {
        // Watches end by this clock.
        at.clock.advance(1000);
        return at.world.policyFor(at.revision(name)).review?.mergeMethod;
      })
      .toBe('squash');
    await settle();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(merges()).toBe(2);
  });

  test.each([true, false])(
    'a method is requested once the host permits it, if the host states that: %s',
    async (isStated) => {
      await start();
      at.forge.outcome = { state: 'refused', obstacle: 'method', message: 'Merge commits are not allowed' };
      at.forge.methods = isStated ? ['squash'] : undefined;
      await reviewBy('bob');
      await settle();
      at.forge.outcome = undefined;
      if (isStated) at.forge.methods = ['merge', 'squash'];
      at.clock.advance(600_000);
      await settle();
      expect(at.revision(name).lifecycle).toBe(isStated ? 'Published' : 'Proposed');
      if (isStated) return;
      // As a comment does.
      at.forge.change(1, {});
      await settle();
      expect(at.revision(name).lifecycle).toBe('Published');
    },
  );

  test.each<MergeObstacle>(['conflict', 'unknown', 'blocked'])(
    'what the host misreports for a minute delays the merge, and changes nothing: %s',
    async (obstacle) => {
      await start();
      const { commit } = at.revision(name);
      at.forge.outcome = { state: 'refused', obstacle, message: 'not mergeable' };
      await reviewBy('bob');
      for (let second = 0; second < 60; second += 5) {
        await settle(1);
        at.clock.advance(5000);
      }
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Proposed', commit });
      at.forge.outcome = undefined;
      at.clock.advance(80_000);
      await settle();
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
      expect(at.forge.pulls).toHaveLength(1);
      expect(merges()).toBeLessThan(8);
    },
  );

  test('a freeze does not end because the wall clock is ahead for some seconds', async () => {
    await start();
    const until = new Date(at.clock.now() + 20 * 3_600_000).toISOString().replace('.000', '');
    await reviewBy('bob');
    at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
    await at.reconcile(name);
    await at.reconcile(name);
    at.forge.outcome = undefined;
    const before = merges();
    await at.world.client.create(freezeKind, { metadata: { name: 'stop' }, spec: { reason: 'repair', until } });
    await expect.poll(() => at.world.policyFor(at.revision(name)).freezes).toHaveLength(1);
    at.clock.setBy(25 * 3_600_000);
    at.clock.advance(60_000);
    await settle();
    at.clock.setBy(-25 * 3_600_000);
    expect(merges()).toBe(before);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(/^NotMerged: .*Freeze default\/stop/);
    at.clock.advance(21 * 3_600_000);
    await settle();
    expect(merges()).toBe(before + 1);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test.each([true, false])(
    'a policy that requires more approvals since the decision stops the merge until they are there (old decision: %s)',
    async (isOld) => {
      await start();
      at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
      await reviewBy('bob');
      await settle();
      at.forge.outcome = undefined;
      const before = merges();
      const review = { namespace: 'default', name: 'review' };
      const approval = { quorum: { required: 2 } };
      await at.world.client.patch(packagePolicyKind, review, { spec: { approval } });
      await expect.poll(() => at.world.policyFor(at.revision(name)).approvalRules).toHaveLength(1);
      if (isOld) at.clock.advance(3_600_000);
      for (let turn = 0; turn < 3; turn += 1) {
        at.clock.advance(600_000);
        await settle();
      }
      expect(merges()).toBe(before);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect((await at.world.events(name)).at(-1)).toMatch(/^NotMerged: .*has 1 of 2 approvals/);
      await reviewBy('carl');
      at.clock.advance(600_000);
      await settle();
      expect(merges()).toBe(before + 1);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    },
  );

  test('a dismissed review, requested changes and another head are seen before the merge', async () => {
    await start();
    at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
    await reviewBy('bob');
    await settle();
    at.forge.outcome = undefined;
    const [review] = at.forge.reviewsOf.get(1) ?? [];
    if (review !== undefined) at.forge.reviewsOf.set(1, [{ ...review, state: 'dismissed' }]);
    at.clock.advance(600_000);
    await settle();
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(
      /^NotMerged: .*was dismissed or deleted.*another review of this user/,
    );
    expect(merges()).toBe(1);
    await reviewBy('carl', 'changes-requested');
    await settle();
    expect(merges()).toBe(1);
    await reviewBy('carl');
    await reviewBy('bob');
    at.clock.advance(600_000);
    await settle();
    await settle();
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  test('a condition that changes after the merge loses nothing', async () => {
    await start();
    await reviewBy('bob');
    at.forge.after = (method) => {
      if (method === 'merge') throw new SluiceError('Unavailable', 'the connection was lost');
    };
    await at.reconcile(name).catch(() => undefined);
    await at.reconcile(name).catch(() => undefined);
    at.forge.after = () => undefined;
    expect(at.forge.pulls[0]?.state).toBe('merged');
    await at.set(name, 'True');
    at.restart();
    await settle();
    const { merged } = at.forge.pulls[0] ?? {};
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit: merged?.commit, outOfBand: undefined });
    expect(merges()).toBe(1);
  });

  test('a user who merges what was not approved publishes nothing', async () => {
    await start();
    const [pull] = at.forge.pulls;
    const { commit } = at.revision(name);
    const merge = { method: 'merge', title: 'by hand', message: '' } as const;
    const made = mergeBranch(at.path, 'main', commit, merge);
    at.forge.change(pull?.number ?? 0, { state: 'merged', merged: { commit: made, by: 'bob' } });
    await settle();
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect((await at.world.events(name)).at(-1)).toMatch(/^MergedOutside/);
  });
});
