import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { holdRule } from '../wave-plan/holding-plan.ts';
import { approvalController } from './approval-controller.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const CANARY = 'example.com/Canary';
const BEN = { actor: { name: 'ben', groups: ['sre'] }, face: 'api' } as const;
const CLEO = { actor: { name: 'cleo', groups: ['sre'] }, face: 'api' } as const;

let clock: ManualClock;
let world: Fixture;
let repository: string;
let reconcile: (name: string) => ReturnType<ReturnType<typeof approvalController>['reconcile']>;

beforeEach(async () => {
  // A Wednesday, 11:00 in Berlin.
  clock = new ManualClock(Date.parse('2026-01-14T10:00:00Z'));
  world = await fixture(clock);
  repository = await world.register('apps');
  const { client, store } = world;
  const controller = approvalController({ client, store, clock, recorder: world.recorder('controller:approval') });
  reconcile = (name) => controller.reconcile({ namespace: 'default', name }, CONTEXT);
});
afterEach(() => world[Symbol.asyncDispose]());

const lifecycle = (name: string) => world.store.get(name).lifecycle;
async function policy(approval: object, spec: object = {}, name = 'p'): Promise<void> {
  await world.client.create(packagePolicyKind, { metadata: { name }, spec: { ...spec, approval } });
  await settle();
}
async function proposed(path: `${string}/${string}/${string}` = 'apps/app/w1'): Promise<string> {
  const { name } = await world.draft(path);
  await world.settle(name);
  await world.store.update(name, { action: 'propose' }, ANNA);
  return name;
}
const approve = (name: string, by: typeof BEN | typeof CLEO) => world.store.update(name, { action: 'approve' }, by);

test('a policy approves what an external controller has set the condition on', async () => {
  await policy({ automatic: true }, { requiredGates: [{ conditionType: CANARY, approveOnly: true }] });
  const name = await proposed();
  await reconcile(name);
  expect(lifecycle(name)).toBe('Proposed');
  await world.store.change(name, { conditions: [{ type: CANARY, status: 'True' }] }, BEN);
  await reconcile(name);
  expect(world.store.get(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  expect((await world.events(name)).at(-1)).toMatch(/\(policy p: all rules for approvals are met\)$/);
});

test('a conflict with an edit on the main branch stops automatic approval, which reports it, until the edit is taken back', async () => {
  await policy({ automatic: true });
  const name = await proposed();
  const edit = async (text: string | null) => {
    const made = await world.push(repository, { 'app/data.yaml': text });
    await world.store.repositoryOf(world.store.get(name)).refresh();
    await reconcile(name);
    return made;
  };
  const made = await edit('a: 1\n');
  expect(lifecycle(name)).toBe('Proposed');
  expect((await world.events(name)).at(-1)).toMatch(
    new RegExp(`^NotApproved: .* conflicts with refs/heads/main: .* by ${made} \\(data.yaml\\);`),
  );
  await edit(null);
  expect(lifecycle(name)).toBe('Published');
});

test('without automatic: true, and by labels that a push wrote, nothing is approved', async () => {
  await policy({ soak: { proposed: '1m' } });
  const one = await proposed();
  clock.advance(120_000);
  await reconcile(one);
  expect(lifecycle(one)).toBe('Proposed');
  await policy({ automatic: true }, { selector: { packageSelector: { matchLabels: { tier: 'dev' } } } }, 'dev');
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n  labels:\n    tier: dev\n';
  const draft = await world.draft('apps/web/w1', { Kptfile: kptfile });
  await world.settle(draft.name);
  await world.store.update(draft.name, { action: 'propose' }, ANNA);
  clock.advance(120_000);
  await reconcile(draft.name);
  expect(lifecycle(draft.name)).toBe('Proposed');
  await world.store.change(draft.name, { metadata: { labels: { tier: 'dev' } } }, ANNA);
  await reconcile(draft.name);
  expect(lifecycle(draft.name)).toBe('Published');
});

test('users complete the quorum outside of the window, and it is published when the window opens', async () => {
  const windows = [{ cron: '0 9 * * 1-5', duration: '1h', timeZone: 'Europe/Berlin' }];
  await policy({ automatic: true, quorum: { required: 2, from: ['group:sre'] }, windows });
  const name = await proposed();
  await approve(name, BEN);
  await approve(name, CLEO);
  expect(world.store.get(name).record?.approvals).toMatchObject([
    { subject: 'ben', groups: ['sre'] },
    { subject: 'cleo', groups: ['sre'] },
  ]);
  const reason = expect.stringMatching(/^policy p permits approvals only in its windows: /);
  expect(await reconcile(name)).toMatchObject({ requeueAfter: 3_600_000, reason });
  expect(lifecycle(name)).toBe('Proposed');
  expect((await world.events(name)).at(-1)).toBe(
    'ApprovalBlocked: policy p permits approvals only in its windows: "0 9 * * 1-5" Europe/Berlin for 1h; blocked since 2026-01-14T09:00:00Z until 2026-01-15T08:00:00Z; it is resolved by users who may change PackagePolicy p, or whom its spec.approval.breakGlass lists',
  );
  clock.advance(22 * 3_600_000);
  await reconcile(name);
  expect(world.store.get(name)).toMatchObject({ lifecycle: 'Published' });
});

test('a missing quorum is reported, also without a rule about time: since when, and who can resolve it', async () => {
  await policy({ quorum: { required: 2, from: ['group:sre'] } });
  const name = await proposed();
  await reconcile(name);
  await reconcile(name);
  const end = 'blocked since 2026-01-14T10:00:00Z; it is resolved by group:sre, without the proposer and contributors';
  const first = `ApprovalBlocked: policy p requires 2 approvals, of which 0 are recorded; ${end}`;
  expect(await world.events(name)).toEqual([first]);
  await approve(name, BEN);
  await reconcile(name);
  expect((await world.events(name)).slice(1)).toEqual([
    `ApprovalBlocked: policy p requires 2 approvals, of which 1 are recorded (ben at 2026-01-14T10:00:00Z); ${end}`,
  ]);
});

test('a policy that forbids self-approval is reported as a rule that blocks', async () => {
  await policy({ forbidSelfApproval: true });
  const name = await proposed();
  await reconcile(name);
  expect(await world.events(name)).toEqual([
    'ApprovalBlocked: 0 of 1 approvals recorded; another user must approve it, since a policy forbids self-approval; blocked since 2026-01-14T10:00:00Z; it is resolved by users who may approve, without anna',
  ]);
});

test('the hold of a plan is reported once, and in the same words by what is shown and by the decision', async () => {
  const { client, store } = world;
  const plan = await client.create(wavePlanKind, {
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: {}, waves: [{ name: 'all', percent: 100 }] },
  });
  await policy({ automatic: true });
  const name = await proposed();
  let isShown = false;
  const controller = approvalController({
    ...{ client, store, clock, recorder: world.recorder('controller:approval') },
    holds: {
      mayHold: () => isShown,
      holdOf: async (revision) => (isShown ? holdRule(plan, revision) : undefined),
      readHold: async (revision) => holdRule(plan, revision),
    },
  });
  for (const shown of [true, false, true]) {
    isShown = shown;
    await controller.reconcile({ namespace: 'default', name }, CONTEXT);
  }
  expect(lifecycle(name)).toBe('Proposed');
  expect(new Set(await world.events(name))).toEqual(
    new Set([
      'ApprovalBlocked: WavePlan web holds it, and approves what it selects in its waves; blocked since 2026-01-14T10:00:00Z; it is resolved by WavePlan web in its waves, users who may change or end it, or users who may approve the revision ahead of its wave',
    ]),
  );
});

test('of a revision without rules, the hold of a plan is reported without reading the package', async () => {
  const name = await proposed();
  const rule = { rule: 'Wave', message: 'WavePlan web holds it', resolvedBy: 'WavePlan web' } as const;
  const { client, store } = world;
  const evaluate = vi.spyOn(store, 'evaluate');
  const controller = approvalController({
    ...{ client, store, clock, recorder: world.recorder('controller:approval') },
    holds: { mayHold: () => true, holdOf: async () => rule, readHold: async () => rule },
  });
  await controller.reconcile({ namespace: 'default', name }, CONTEXT);
  expect(await world.events(name)).toEqual(['ApprovalBlocked: WavePlan web holds it; it is resolved by WavePlan web']);
  expect(evaluate).not.toHaveBeenCalled();
});

test('approvals do not survive a change of the content', async () => {
  await policy({ automatic: true, quorum: { required: 2 } });
  const name = await proposed();
  await approve(name, BEN);
  await world.store.update(name, { action: 'reject' }, CLEO);
  await world.store.change(name, { files: new Map([['more.yaml', Buffer.from('a: 1\n')]]) }, ANNA);
  await world.settle(name);
  await world.store.update(name, { action: 'propose' }, ANNA);
  await approve(name, CLEO);
  await reconcile(name);
  expect(lifecycle(name)).toBe('Proposed');
  await approve(name, BEN);
  expect(lifecycle(name)).toBe('Published');
});

test('a member of the quorum who contributed or approves under the same name twice is not two users', async () => {
  await policy({ quorum: { required: 2 } });
  const name = await proposed();
  await approve(name, BEN);
  await approve(name, { ...BEN, face: 'api' });
  expect(lifecycle(name)).toBe('Proposed');
  await expect(world.store.update(name, { action: 'approve' }, ANNA)).rejects.toThrow(/anna .* and policy p excludes/);
});

test('a policy that is deleted while a revision waits blocks it no longer, and approves it no longer', async () => {
  const freezes = [{ cron: '0 0 * * 3', duration: '24h' }];
  await policy({ automatic: true, freezes });
  await policy({ freezes }, {}, 'other');
  const name = await proposed();
  expect(await reconcile(name)).toMatchObject({ requeueAfter: expect.any(Number) });
  await world.client.delete(packagePolicyKind, { name: 'p' });
  await settle();
  await world.client.delete(packagePolicyKind, { name: 'other' });
  await settle();
  await reconcile(name);
  expect(lifecycle(name)).toBe('Proposed');
  await approve(name, BEN);
  expect(lifecycle(name)).toBe('Published');
});

test('a Freeze stops users and controllers, until its time or its end', async () => {
  await policy({ automatic: true, breakGlass: ['ben'] });
  const until = '2026-01-14T12:00:00Z';
  await world.client.create(freezeKind, {
    metadata: { name: 'stop', namespace: 'sluice-system' },
    spec: { reason: 'repair', until },
  });
  await settle();
  const [one, two] = [await proposed(), await proposed('apps/web/w1')];
  expect(await reconcile(one)).toMatchObject({
    requeueAfter: 3_600_000,
    reason: expect.stringMatching(
      /^all namespaces are frozen by Freeze sluice-system\/stop .*\(repair\).*; it is looked at again then, if it does not end before$/,
    ),
  });
  await expect(approve(one, CLEO)).rejects.toThrow(
    /^all namespaces are frozen by Freeze sluice-system\/stop since .* until 2026-01-14T12:00:00Z \(repair\)/,
  );
  await world.store.update(two, { action: 'approve', breakGlass: true }, { ...BEN, reason: 'the fix itself' });
  expect(world.store.get(two).tip.facts.statement?.statement.record).toMatchObject({
    breakGlass: { by: 'ben', reason: 'the fix itself' },
    rulesBypassed: [expect.stringContaining('sluice-system/stop')],
  });
  clock.advance(2 * 3_600_000);
  await reconcile(one);
  expect(lifecycle(one)).toBe('Published');
});

test('what ends at a time does not because the wall clock is ahead for some seconds, which an event says', async () => {
  const hour = 3_600_000;
  await policy({ automatic: true, soak: { proposed: '24h' } });
  const until = new Date(clock.now() + 20 * hour).toISOString().replace('.000', '');
  await world.client.create(freezeKind, { metadata: { name: 'stop' }, spec: { reason: 'incident', until } });
  const name = await proposed();
  await reconcile(name);
  clock.setBy(25 * hour);
  clock.advance(30_000);
  await reconcile(name);
  expect(lifecycle(name)).toBe('Proposed');
  expect((await world.events(name)).at(-1)).toMatch(/^ClockAhead: the clock of this machine was set ahead/);
  clock.setBy(-25 * hour);
  await reconcile(name);
  expect(lifecycle(name)).toBe('Proposed');
  // A correction that lasts.
  clock.setBy(25 * hour);
  await reconcile(name);
  clock.advance(600_000);
  await reconcile(name);
  expect(lifecycle(name)).toBe('Published');
});
