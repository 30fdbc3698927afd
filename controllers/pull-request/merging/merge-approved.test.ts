import { beforeEach, describe, expect, test } from 'vitest';
import type { MergeOutcome } from '../../../src/forge/forge-merging.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { hostRepository, mergeBranch } from '../../../test/support/delivery-pull-request.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';

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
    await at.policy(review, spec);
    name = await at.propose();
    unprotect = protectMain(at.world.store.repository('apps'));
    hostRepository(at.forge, at.path);
    await at.reconcile(name);
  }
  /** The controller and the syncs of a while. */
  async function settle(times = 3): Promise<void> {
    for (let turn = 0; turn < times; turn += 1) {
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(name);
    }
  }
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
