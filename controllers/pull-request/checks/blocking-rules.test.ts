import { beforeEach, describe, expect, test } from 'vitest';
import type { BlockingRule } from '../../../src/package/model/revision/revision-state.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { checksOf } from './checks.ts';
import { lasting } from './unmet-publication.ts';

describe('the check of a proposal that a rule blocks', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });
  const ready = (name: string) => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
  const body = (number = 1) => at.forge.pulls[number - 1]?.body ?? '';

  test.each(['merge', 'review', 'approval'])('waits for a soak time and ends by itself: %s', async (publishOn) => {
    await at.policy({ publishOn }, { approval: { soak: { proposed: '1h' } } });
    const name = await at.propose();
    const result = await at.reconcile(name);
    const due = new Date(at.clock.now() + 3_600_000).toISOString().slice(0, 16);
    expect(ready(name)).toMatchObject({
      state: 'pending',
      title: expect.stringContaining(`Blocked by Soak of policy review until ${due}`),
      text: expect.stringMatching(/\| `Soak \(review\)` \| .*Z \| .*Z \| `users who may change PackagePolicy review/),
    });
    expect(body()).toContain('| `Soak (review)` |');
    expect(body().includes('so that a merge now would be out of band')).toBe(publishOn === 'merge');
    const { requeueAfter = 0 } = result as { requeueAfter?: number };
    expect(requeueAfter).toBeGreaterThan(3_590_000);
    // Time that passes changes nothing that is shown.
    const writes = () => at.forge.calls.filter((call) => call === 'setChecks' || call === 'update').length;
    const written = writes();
    at.clock.advance(1_800_000);
    await at.reconcile(name);
    expect(writes()).toBe(written);
    at.clock.advance(1_800_000);
    await at.reconcile(name);
    expect(ready(name)).toMatchObject({ state: 'success', title: 'It has no gates' });
    expect(body()).not.toContain('Soak');
  });

  test('follows a time window, without a message of the host', async () => {
    await at.policy({ publishOn: 'merge' }, { approval: { windows: [{ cron: '0 9 * * *', duration: '1h' }] } });
    const name = await at.propose();
    const untilHour = (hour: number) => {
      const day = 86_400_000;
      return (hour * 3_600_000 + day - (at.clock.now() % day)) % day;
    };
    await at.settle(untilHour(8));
    expect(ready(name)).toMatchObject({ state: 'pending', title: expect.stringContaining('Window of policy review') });
    await at.settle(untilHour(9) + 60_000);
    expect(ready(name)?.state).toBe('success');
    await at.settle(untilHour(10) + 60_000);
    expect(ready(name)?.state).toBe('pending');
  });

  test('waits for the wave of a plan', async () => {
    const hold: BlockingRule = { rule: 'Wave', message: 'WavePlan web holds it', resolvedBy: 'WavePlan web' };
    at.restart({ holds: { mayHold: () => true, holdOf: async () => hold, readHold: async () => hold } });
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.reconcile(name);
    expect(ready(name)).toMatchObject({ state: 'pending', title: 'Blocked by Wave: WavePlan web holds it' });
    // A user may approve ahead of the wave, in band.
    expect(body()).not.toContain('out of band:**');
  });

  test('waits for approvals that a merge cannot complete, and counts reviews', async () => {
    await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 2 } } });
    const name = await at.propose();
    await at.reconcile(name);
    expect(ready(name)).toMatchObject({ state: 'pending', title: expect.stringContaining('Quorum of policy review') });
    await at.review(1, 'carl', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    // The merge is the second one, of another user.
    const progress = '1 of 2 approvals, by carl@example.com; another mapped user has to merge';
    expect(ready(name)).toMatchObject({ state: 'success', title: `It has no gates; ${progress}` });
    expect(body()).toContain(progress);
    const notes = () => at.world.store.repository('apps').refusals.of(name);
    expect(notes()).toMatchObject([{ reason: 'ReviewsCounted', message: expect.stringContaining(progress) }]);
    await at.mergeHead(name, 'bob');
    await at.readMerge(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  const bob = { user: 'bob', subject: 'bob@example.com' };
  test.each([
    ['has approved already', [bob], undefined],
    ['may not approve', [bob, { user: 'carl', subject: 'carl@example.com' }], 'bob@example.com'],
    ['is a second time the same one', [bob, { user: 'bobby', subject: 'bob@example.com' }], undefined],
  ])('waits where each mapped user who could merge %s', async (_, approvers, permitted) => {
    if (permitted !== undefined) at.restart({ mayApprove: async ({ name }) => name === permitted });
    await at.policy({ publishOn: 'merge', approvers }, { approval: { quorum: { required: 2 } } });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    const text = expect.stringContaining('of which 1 are given, reviews included (bob@example.com');
    expect(ready(name)).toMatchObject({ state: 'pending', text });
    const message = expect.stringContaining('1 of 2 approvals, by bob@example.com; no merge by another mapped user');
    expect(at.world.store.repository('apps').refusals.of(name)).toMatchObject([{ reason: 'ReviewsCounted', message }]);
  });

  test('names mapped users whose reviews do not count without the right to approve', async () => {
    at.restart({ mayApprove: async ({ name }) => name !== 'carl@example.com' });
    await at.policy({ publishOn: 'merge' }, { approval: { quorum: { required: 2 } } });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'carl', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(ready(name)?.state).toBe('pending');
    const message = expect.stringMatching(
      / of carl does not count: User "carl@example.com" .* ClusterRole sluice:approver/,
    );
    expect(at.world.store.repository('apps').refusals.of(name)).toMatchObject([
      { reason: 'ReviewNotCounted', message },
    ]);
    expect(body()).toMatch(/\*\*Reviews that do not count:\*\* `.* of carl does not count: User/);
  });

  test('counts users of teams as possible, whose members are known when they act', async () => {
    const teams = [{ team: 'org/sre', groups: ['sre'] }];
    const quorum = { required: 2, from: ['group:sre', 'bob@example.com'] };
    await at.policy({ publishOn: 'merge', teams }, { approval: { quorum } });
    const name = await at.propose();
    await at.reconcile(name);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(ready(name)?.state).toBe('success');
  });

  test('is not held up by the approvals that reviews publish', async () => {
    await at.policy({}, { approval: { quorum: { required: 2 } } });
    const name = await at.propose();
    await at.reconcile(name);
    expect(ready(name)?.state).toBe('success');
  });

  test('is that of all packages where they share a pull request', async () => {
    await at.policy({ publishOn: 'merge', batch: {} }, { approval: { soak: { proposed: '1h' } } });
    at.serveBranches();
    await at.proposeAll('db', 'web');
    await at.settle(60_000);
    const headOf = () => at.forge.get(1).then(({ head }) => head.commit);
    expect(at.forge.checks.get(await headOf())?.get('sluice/ready')).toMatchObject({
      state: 'pending',
      title: '2 of 2 packages are not ready: apps.db.w1, apps.web.w1',
      text: expect.stringContaining('Blocked by Soak of policy review until'),
    });
    expect(body()).toContain('| `Soak (review)` |');
    await at.settle(3_600_000);
    expect(at.forge.checksOf(await headOf())).toEqual({ 'sluice/ready': 'success' });
  });
});

test('says the same however what is in flight changes, so that a waiting fleet is not written again with each delivery', () => {
  const checkWith = (names: string) => {
    const message = `policy flow permits 2 packages in flight, and 2 are published and not yet delivered and healthy: ${names}`;
    const policy = { rule: 'InFlight', policy: 'flow', since: `2026-01-01T00:00:0${names.length}Z` } as const;
    const rules = [lasting({ ...policy, message, resolvedBy: `the targets that deliver ${names}: see why they wait` })];
    const next = [`sluice why ${names}`, 'wait until no rule blocks it, then: sluice rpkg approve apps.app.w1'];
    return checksOf(
      { explanation: { gates: [], enforcement: 'enforce', next, reasons: [] }, rules },
      [],
      'https://host/1',
    );
  };
  expect(checkWith('apps.a.v1')).toEqual(checkWith('apps.other.v1'));
  expect(checkWith('apps.a.v1')).toMatchObject([
    {
      ...{ state: 'pending', title: expect.stringContaining('Blocked by InFlight of policy flow: ') },
      text: expect.stringContaining('- `wait until no rule blocks it'),
    },
  ]);
});
