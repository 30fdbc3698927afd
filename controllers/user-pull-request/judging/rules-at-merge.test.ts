import { beforeEach, describe, expect, test } from 'vitest';
import { revisionName } from '../../../src/package/model/identity/identity.ts';
import { freezesAt } from '../../../src/package/model/policy/approval-rules.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { eachUserPulls, GATES, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';
import { REREAD_MS } from '../../pull-request/reviews/withdraw-reviews.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';

const DAY_MS = 86_400_000;

describe('the check of a pull request of a user that a rule blocks', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(() => {
    at = open();
  });
  const ready = (commit: string) => at.forge.checks.get(commit)?.get('sluice/ready');
  /** In force for the package `web`. */
  const policy = () => {
    const key = { repository: 'apps', package: 'web', workspace: 'pr-1' };
    const name = revisionName(key);
    return at.world.store
      .repository('apps')
      .policyFor({ key, name, path: 'web', namespace: 'default', kptfile: undefined, record: undefined });
  };
  const untilHour = (hour: number) => (hour * 3_600_000 + DAY_MS - (at.clock.now() % DAY_MS)) % DAY_MS;
  const writes = () => at.forge.calls.filter((call) => call === 'setChecks' || call === 'setComment').length;

  test.each(['merge', 'review', 'approval'])('follows a time window by itself: %s', async (publishOn) => {
    await at.policy({ publishOn }, { approval: { windows: [{ cron: '0 9 * * *', duration: '1h' }] } });
    at.clock.advance(untilHour(8));
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
    if (publishOn === 'review') at.forge.review(1, 'bob', 'approved', commit);
    await at.poll(0);
    const next = new Date(at.clock.now() + untilHour(9)).toISOString().slice(0, 16);
    expect(ready(commit)).toMatchObject({
      state: 'pending',
      title: expect.stringContaining(`Blocked by Window of policy review until ${next}`),
      text: expect.stringMatching(/\| `Window \(review\)` \| .*Z \| .*Z \| `users who may change PackagePolicy review/),
    });
    expect(at.comment(1)).toContain('| `Window (review)` |');
    // Time that passes changes nothing that is shown.
    const written = writes();
    await at.poll(untilHour(9) - 60_000);
    expect(writes()).toBe(written);
    await at.poll(60_000);
    expect(ready(commit)).toMatchObject({ state: 'success', title: expect.stringMatching(/^2 packages checked/) });
    expect(at.comment(1)).not.toContain('Window');
    await at.poll(untilHour(10));
    expect(ready(commit)?.state).toBe('pending');
  });

  test('is pending in a scheduled freeze, and a merge then is out of band', async () => {
    await at.policy({ publishOn: 'merge' }, { approval: { freezes: [{ cron: '0 9 * * *', duration: '1h' }] } });
    at.clock.advance(untilHour(8));
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    expect(ready(commit)?.state).toBe('success');
    await at.poll(untilHour(9));
    expect(ready(commit)).toMatchObject({
      state: 'pending',
      title: expect.stringContaining('Blocked by ScheduledFreeze of policy review until '),
    });
    expect(at.comment(1)).toContain('a merge now would be out of band');
    await at.merge(1, 'bob');
    await at.poll();
    expect(at.world.store.get('apps.web.merge-1').outOfBand?.message).toContain('forbids approvals in its freeze');
  });

  test('is pending while a Freeze is in force, which no list of the host reports', async () => {
    await at.policy({ publishOn: 'merge' });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    const other = await at.pull({ 'docs/page.md': 'text' }, { branch: 'docs' });
    const gated = await at.pull({ 'api/Kptfile': KPTFILE(GATES) }, { branch: 'api' });
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    at.forge.calls.length = 0;
    const until = new Date(at.clock.now() + 600_000).toISOString().replace(/\.\d+/, '');
    const metadata = { name: 'stop' };
    await at.world.client.create(freezeKind, { metadata, spec: { reason: 'core repair', until } });
    await expect.poll(() => freezesAt(policy().freezes, at.clock.now())).toHaveLength(1);
    await at.poll(1000);
    expect(at.forge.calls).not.toContain('listUpdated');
    expect(ready(commit)).toMatchObject({
      state: 'pending',
      title: expect.stringContaining(`Blocked by Freeze until ${until}: namespace default is frozen`),
    });
    expect(ready(other)?.state).toBe('success');
    // A closed gate is what the title names; the page has the rules too.
    expect(ready(gated)).toMatchObject({
      title: expect.stringContaining('1 gate closed'),
      text: expect.stringContaining('| `Freeze` |'),
    });
    await at.poll(600_000);
    expect(ready(commit)?.state).toBe('success');
  });

  test('waits for the time since the last publication', async () => {
    await at.policy({ publishOn: 'merge' }, { approval: { soak: { sincePublished: '1h' } } });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    await at.merge(1, 'bob', 'fast-forward');
    await at.poll();
    expect(at.world.store.get('apps.web.merge-1').outOfBand).toBeUndefined();
    const commit = await at.pull({ 'web/map.yaml': MAP }, { branch: 'second' });
    await at.poll();
    expect(ready(commit)).toMatchObject({
      state: 'pending',
      title: expect.stringMatching(/^Blocked by Soak of policy review until .*Z/),
    });
    await at.poll(3_600_000);
    expect(ready(commit)?.state).toBe('success');
    await at.merge(2, 'bob');
    await at.poll();
    expect(at.world.store.get('apps.web.merge-2').outOfBand).toBeUndefined();
  });

  test('is looked at again when the rule ends, without a poll of the host, also of a pull request that was just opened', async () => {
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    await at.policy({ publishOn: 'merge' }, { approval: { windows: [{ cron: '0 9 * * *', duration: '1h' }] } });
    at.clock.advance(untilHour(9) - 5000);
    await at.poll(0);
    expect(await at.poll(0)).toMatchObject({ requeueAfter: expect.any(Number) });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    requests.add({ namespace: 'default', name: 'apps' }, undefined);
    const { requeueAfter = 0 } = (await at.poll(1000)) as { requeueAfter?: number };
    expect(ready(commit)?.state).toBe('pending');
    expect(requeueAfter).toBe(4000);
    at.forge.calls.length = 0;
    await at.poll(requeueAfter);
    expect(ready(commit)?.state).toBe('success');
    expect(at.forge.calls).not.toContain('listUpdated');
  });

  test.each([
    ['quorum', { quorum: { required: 1 } }],
    ['forbidSelfApproval', { forbidSelfApproval: true }],
  ])('waits for approvals that a merge does not complete, by reviews: %s', async (_, approval) => {
    const approvers = ['bob', 'carl'].map((user) => ({ user, subject: user }));
    await at.policy({ publishOn: 'merge', approvers }, { approval });
    const first = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    // Who pushed the branch is unknown, so that it needs two.
    expect(ready(first)).toMatchObject({
      state: 'pending',
      title: expect.stringMatching(
        /^Blocked by (Quorum of policy review|SelfApproval): .*(requires 2|0 of 2) approvals/,
      ),
    });
    at.forge.review(1, 'carl', 'approved', first);
    await at.poll();
    expect(ready(first)?.state).toBe('success');
    // A review of other content counts for nothing.
    const second = await at.pull({ 'web/map.yaml': MAP }, { onTop: true });
    await at.poll();
    expect(ready(second)?.state).toBe('pending');
    at.forge.review(1, 'carl', 'approved', second);
    await at.poll();
    expect(ready(second)?.state).toBe('success');
    await at.merge(1, 'bob');
    await at.poll();
    expect(at.world.store.get('apps.web.merge-1').outOfBand).toBeUndefined();
  });

  test('is pending again some time after a review that it needs was deleted, which the host does not show', async () => {
    const approvers = ['bob', 'carl'].map((user) => ({ user, subject: user }));
    await at.policy({ publishOn: 'merge', approvers }, { approval: { quorum: { required: 1 } } });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    expect(ready(commit)?.state).toBe('pending');
    // A review that is added shows.
    expect(await at.check(1)).toBeUndefined();
    at.forge.review(1, 'carl', 'approved', commit);
    await at.poll();
    expect(ready(commit)?.state).toBe('success');
    expect(await at.check(1)).toMatchObject({ requeueAfter: REREAD_MS });
    at.forge.reviewsOf.set(1, []);
    await at.check(1);
    expect(ready(commit)?.state).toBe('pending');
    at.forge.review(1, 'carl', 'approved', commit);
    at.forge.batchesReads = true;
    expect(await at.check(1)).toBeUndefined();
    expect(ready(commit)?.state).toBe('success');
  });

  test('follows the right of the users whom the policy maps to approve', async () => {
    let isGranted = false;
    at.restart({ mayApprove: async () => isGranted });
    const approvers = ['bob', 'carl'].map((user) => ({ user, subject: user }));
    await at.policy({ publishOn: 'merge', approvers }, { approval: { quorum: { required: 1 } } });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    at.forge.review(1, 'carl', 'approved', commit);
    await at.poll();
    expect(ready(commit)?.state).toBe('pending');
    at.forge.calls.length = 0;
    await at.lookAtRights();
    expect(at.forge.calls).toEqual([]);
    isGranted = true;
    await at.lookAtRights();
    expect(ready(commit)?.state).toBe('success');
    isGranted = false;
    await at.lookAtRights();
    expect(ready(commit)?.state).toBe('pending');
  });

  test.each(['merge', 'review'])('waits while no mapped user may approve, without any rule: %s', async (publishOn) => {
    let isGranted = false;
    at.restart({ mayApprove: async () => isGranted });
    const approvers = [{ user: 'bob', subject: 'bob@example.com' }];
    await at.policy({ publishOn, approvers });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    at.forge.review(1, 'bob', 'approved', commit);
    await at.poll();
    expect(ready(commit)).toMatchObject({ state: 'pending', title: expect.stringMatching(/^Blocked by NotPermitted/) });
    expect(ready(commit)?.text).toContain('--clusterrole=sluice:approver --user=bob@example.com');
    isGranted = true;
    await at.lookAtRights();
    expect(ready(commit)?.state).toBe('success');
  });

  test('asks for the rights of mapped users to each package once for several checks', async () => {
    const asked: string[] = [];
    at.restart({
      mayApprove: async ({ name: user }, { name }) => {
        asked.push(`${user} ${name}`);
        return true;
      },
    });
    const approvers = ['bob', 'carl'].map((user) => ({ user, subject: user }));
    await at.policy({ publishOn: 'merge', approvers });
    await at.pull({ 'app/Kptfile': KPTFILE('app'), 'web/Kptfile': KPTFILE() });
    await at.poll();
    expect(new Set(asked).size).toBe(4);
    asked.length = 0;
    await at.check(1);
    expect(asked).toEqual([]);
  });

  test('asks for no rights and teams of a Repository that was deleted', async () => {
    let asked = 0;
    const mayApprove = async () => {
      asked += 1;
      return true;
    };
    at.restart({ mayApprove });
    const teams = [{ team: 'acme/sre', groups: ['sre'] }];
    await at.policy({ publishOn: 'merge', teams }, { approval: { quorum: { required: 2 } } });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    at.forge.review(1, 'bob', 'approved', commit);
    await at.poll();
    asked = 0;
    await at.lookAtRights();
    expect(asked).toBeGreaterThan(0);
    expect(at.forge.calls).toContain('isTeamMember');
    await at.world.client.delete(repositoryKind, { namespace: 'default', name: 'apps' });
    await at.world.store.remove('default/apps');
    await at.poll();
    asked = 0;
    at.forge.calls.length = 0;
    expect(await at.lookAtRights()).toBeUndefined();
    expect(asked).toBe(0);
    expect(at.forge.calls).toEqual([]);
  });

  test('waits for a review where the merge is no approval, and for all that a quorum requires', async () => {
    const approvers = ['bob', 'carl', 'dora'].map((user) => ({ user, subject: user }));
    await at.policy({ publishOn: 'review', approvers }, { approval: { quorum: { required: 1 } } });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    expect(ready(commit)).toMatchObject({ state: 'pending', title: expect.stringMatching(/^Blocked by Quorum/) });
    // It is unknown who pushed, so that one more is required.
    for (const user of ['bob', 'carl']) {
      expect(ready(commit)?.state).toBe('pending');
      at.forge.review(1, user, 'approved', commit);
      await at.poll();
    }
    expect(ready(commit)?.state).toBe('success');
  });

  test('waits for a review where the policy requires none, as it publishes by reviews', async () => {
    await at.policy({ publishOn: 'review' });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    expect(ready(commit)).toMatchObject({
      ...{ state: 'pending', title: expect.stringMatching(/no user whom its spec.review.approvers lists approves/) },
    });
    at.forge.review(1, 'bob', 'approved', commit);
    await at.poll();
    expect(ready(commit)?.state).toBe('success');
  });

  test('fails while a mapped user requests changes', async () => {
    await at.policy({ publishOn: 'merge' });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    at.forge.review(1, 'mallory', 'changes-requested', commit);
    await at.poll();
    expect(ready(commit)?.state).toBe('success');
    at.forge.review(1, 'bob', 'changes-requested', commit);
    await at.poll();
    expect(ready(commit)).toMatchObject({ state: 'failure', title: '1 gate closed: sluice.dev/Reviewed of web' });
    at.forge.review(1, 'bob', 'approved', commit);
    await at.poll();
    expect(ready(commit)?.state).toBe('success');
  });

  test('fails for a package that no merge publishes', async () => {
    await at.policy({ publishOn: 'merge' });
    const commit = await at.pull({ 'Web_1/Kptfile': KPTFILE() });
    await at.poll();
    expect(ready(commit)).toMatchObject({
      ...{ state: 'failure', title: expect.stringMatching(/^The merge will not publish the package Web_1: /) },
    });
  });

  test('says that a time since the proposal is met by no merge, and how it is', async () => {
    await at.policy({ publishOn: 'merge' }, { approval: { soak: { proposed: '1h' } } });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    expect(ready(commit)).toMatchObject({
      state: 'pending',
      title: expect.stringMatching(
        /^Blocked by Soak of policy review: policy review requires that web was proposed for 1h/,
      ),
      text: expect.stringContaining('this pull request is no proposal; adopt the package as a draft, and propose that'),
    });
  });

  test('is about what a merge publishes: a removed package waits for no rule', async () => {
    await at.policy({ publishOn: 'merge' }, { approval: { soak: { proposed: '1h' } } });
    await at.world.push(at.path, { 'web/Kptfile': KPTFILE() });
    await at.world.store.repository('apps').refresh();
    const commit = await at.pull({ 'web/Kptfile': null });
    await at.poll();
    expect(ready(commit)?.state).toBe('success');
  });

  test('follows a changed policy, also one that reviews nothing', async () => {
    await at.policy({ publishOn: 'merge' });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    const windows = [{ cron: '0 9 29 2 *', duration: '1h' }];
    await at.world.client.create(packagePolicyKind, { metadata: { name: 'limits' }, spec: { approval: { windows } } });
    await expect.poll(() => policy().approvalRules).toHaveLength(1);
    await at.poll(1000);
    expect(ready(commit)?.title).toContain('Blocked by Window of policy limits');
  });
});
