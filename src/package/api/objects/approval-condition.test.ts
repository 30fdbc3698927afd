import { expect, test } from 'vitest';
import { packageKinds, revision } from '../../../../test/support/package-kinds.ts';
import { anna, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { type PackageRevision, packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';
import type { ApprovalRule } from '../../model/policy/approval-rules.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../../model/policy/policy.ts';
import type { BlockingRule } from '../../model/revision/revision-state.ts';

const key = { namespace: 'default', name: 'packages.shop.v1' };
const conditionOf = ({ status }: PackageRevision) =>
  status?.conditions?.find(({ type }) => type === 'sluice.dev/ApprovalAllowed') ?? null;
const rule = (overrides: Partial<ApprovalRule>): ApprovalRule => ({
  ...{ policy: 'p', windows: [], freezes: [], soak: {}, inFlight: [] },
  ...overrides,
});
const freeze = {
  ...{ name: 'stop', namespace: 'default', isInstallation: false, reason: 'repair', since: '2026-01-01T00:00:00Z' },
};

test('a proposed revision shows which rule blocks it, since when, until when, and who can resolve it', async () => {
  await using scratch = await scratchRepository();
  const { clock } = scratch;
  let policy: EffectivePolicy = DEFAULT_POLICY;
  const { client, store, changePolicy } = await packageKinds(scratch, { policyFor: () => policy });
  const shown = async () => conditionOf(await client.get(packageRevisionKind, key));
  const enforce = (next: Partial<EffectivePolicy>) => {
    policy = { ...DEFAULT_POLICY, ...next };
    changePolicy();
  };
  await client.create(packageRevisionKind, revision('shop', 'v1'));
  enforce({ approvalRules: [rule({ soak: { proposedMs: 3_600_000 } })] });
  // A draft has no approval yet.
  expect(await shown()).toBeNull();
  await store.update(key.name, { action: 'propose' }, anna);
  expect(await shown()).toEqual({
    ...{ type: 'sluice.dev/ApprovalAllowed', status: 'False', reason: 'Soak' },
    message:
      'policy p requires that packages.shop.v1 was proposed for 1h without a change; it was proposed at 2026-01-02T03:04:05Z; blocked since 2026-01-02T03:04:05Z until 2026-01-02T04:04:05Z; it is resolved by users who may change PackagePolicy p, or whom its spec.approval.breakGlass lists',
  });
  clock.advance(3_600_000);
  expect(await shown()).toMatchObject({ status: 'True', reason: 'NoRuleBlocks' });
  const inFlight = [
    { name: 'packages.web.v1', publishedAt: Date.parse('2026-01-02T01:00:00Z') },
    { name: 'packages.api.v1', publishedAt: Date.parse('2026-01-02T02:00:00Z') },
    { name: 'packages.ui.v1', publishedAt: Date.parse('2026-01-02T03:00:00Z') },
  ];
  enforce({ approvalRules: [rule({ maxInFlight: 2, inFlight })] });
  // Two of those that are in flight now were by then.
  expect(await shown()).toMatchObject({
    reason: 'InFlight',
    message: expect.stringContaining('since 2026-01-02T02:00:00Z'),
  });
  inFlight.pop();
  inFlight.pop();
  clock.advance(60_000);
  expect(await shown()).toMatchObject({ status: 'True' });
  enforce({ freezes: [{ ...freeze, until: clock.now() + 1000 }], approvalRules: [rule({ windows: [] })] });
  expect(await shown()).toMatchObject({ status: 'False', reason: 'Freeze' });
  clock.advance(1000);
  expect(await shown()).toMatchObject({ status: 'True' });
  enforce({});
  expect(await shown()).toBeNull();
  enforce({ freezes: [freeze] });
  expect(await shown()).toMatchObject({ status: 'False', reason: 'Freeze' });
  enforce({});
  await store.update(key.name, { action: 'approve' }, anna);
  expect(await shown()).toBeNull();
});

test('a missing quorum, a missing independent approval and the hold of a plan are rules as all others', async () => {
  await using scratch = await scratchRepository();
  let policy: EffectivePolicy = DEFAULT_POLICY;
  let hold: BlockingRule | undefined;
  const holds = { mayHold: () => hold !== undefined, holdOf: async () => hold, readHold: async () => hold };
  const { client, store, changePolicy } = await packageKinds(scratch, { policyFor: () => policy }, { holds });
  const shown = async () => conditionOf(await client.get(packageRevisionKind, key));
  const enforce = (next: Partial<EffectivePolicy>) => {
    policy = { ...DEFAULT_POLICY, ...next };
    changePolicy();
  };
  await client.create(packageRevisionKind, revision('shop', 'v1'));
  await store.update(key.name, { action: 'propose' }, anna);
  const quorum = { required: 2, from: ['group:sre'], excludeProposer: true, excludeContributors: true };
  enforce({ approvalRules: [rule({ quorum })] });
  const needed = {
    ...{ type: 'sluice.dev/ApprovalAllowed', status: 'False', reason: 'Quorum' },
    message:
      'policy p requires 2 approvals, of which 0 are recorded; blocked since 2026-01-02T03:04:05Z; it is resolved by group:sre, without the proposer and contributors',
  };
  expect(await shown()).toEqual(needed);
  await store.update(key.name, { action: 'approve' }, { actor: { name: 'ben', groups: ['sre'] }, face: 'api' });
  expect(await shown()).toMatchObject({
    status: 'False',
    reason: 'Quorum',
    message: expect.stringContaining('1 are recorded (ben'),
  });
  enforce({ forbidSelfApproval: true });
  expect(await shown()).toMatchObject({ status: 'True' });
  enforce({ approvalRules: [rule({ quorum: { ...quorum, required: 1 } })] });
  expect(await shown()).toMatchObject({ status: 'True', reason: 'NoRuleBlocks' });
  hold = { rule: 'Wave', message: 'WavePlan web holds it', since: '2026-01-02T03:00:00Z', resolvedBy: 'WavePlan web' };
  enforce({});
  expect(await shown()).toEqual({
    ...{ type: 'sluice.dev/ApprovalAllowed', status: 'False', reason: 'Wave' },
    message: 'WavePlan web holds it; blocked since 2026-01-02T03:00:00Z; it is resolved by WavePlan web',
  });
  hold = undefined;
  enforce({});
  expect(await shown()).toBeNull();
});

test('the end of a rule is sent to watchers', async () => {
  await using scratch = await scratchRepository();
  let policy: EffectivePolicy = DEFAULT_POLICY;
  const { client, store, revisions, changePolicy } = await packageKinds(scratch, { policyFor: () => policy });
  await client.create(packageRevisionKind, revision('shop', 'v1'));
  await store.update(key.name, { action: 'propose' }, anna);
  revisions.table.startEvaluations();
  policy = { ...policy, approvalRules: [rule({ soak: { proposedMs: 60_000 } })] };
  changePolicy();
  const blocked = await client.get(packageRevisionKind, key);
  expect(conditionOf(blocked)).toMatchObject({ status: 'False' });
  const stop = new AbortController();
  const watching = (async () => {
    const options = { resourceVersion: blocked.metadata.resourceVersion, signal: stop.signal };
    for await (const event of client.watch(packageRevisionKind, options))
      if (event.type === 'MODIFIED') return conditionOf(event.object);
    return undefined;
  })();
  scratch.clock.advance(60_000);
  expect(await watching).toMatchObject({ status: 'True', reason: 'NoRuleBlocks' });
  stop.abort();
});

test('what a client writes of it is ignored, and Git does not have it', async () => {
  await using scratch = await scratchRepository();
  const { client, store } = await packageKinds(scratch);
  const created = await client.create(packageRevisionKind, revision('shop', 'v1'));
  const forged = { type: 'sluice.dev/ApprovalAllowed', status: 'True' as const, reason: 'Forged' };
  const written = await client.updateStatus(packageRevisionKind, {
    ...created,
    status: { ...created.status, publishTimestamp: null, conditions: [forged] },
  });
  expect(conditionOf(written)).toBeNull();
  await store.change(key.name, { conditions: [forged] }, anna);
  expect((await store.content(key.name)).files.get('Kptfile')?.toString()).not.toContain('ApprovalAllowed');
  await store.update(key.name, { action: 'propose' }, anna);
});
