import { beforeEach, describe, expect, test, vi } from 'vitest';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { mergeOnHost } from '../../../test/support/git/merge-on-host.ts';
import { eachUserPulls, GATE, GATES, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';
import { type HostMerge, hostMerges } from '../../pull-request/merged/host-merges.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';

describe('merges of pull requests that users open', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(async () => {
    at = open();
  });
  const revision = (name: string) => at.world.store.find(name);
  const tags = async () => (await at.refs('refs/tags/')).map((name) => name.slice('refs/tags/'.length));

  test('publish each package at the commit of the merge, in the name of the user who merged, and say so once', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE(), 'README.md': 'text' });
    await at.poll();
    const commit = await at.merge(1, 'Bob');
    // A push before the merge is read is not judged, and not published.
    await at.world.push(at.path, { 'web/extra.yaml': MAP });
    await at.world.store.repository('apps').refresh();
    await at.poll();
    for (const name of ['apps.web.merge-1', 'apps.db.merge-1'])
      expect(revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, commit, outOfBand: undefined });
    const { record } = await at.world.store.evaluate('apps.web.merge-1');
    expect(record.steps.at(-1)).toMatchObject({ action: 'approve', by: 'bob@example.com' });
    expect(at.comment(1, 'merged')).toContain('- `web` is published as `apps.web.merge-1`');
    expect(await at.world.events('apps.web.merge-1')).toEqual([expect.stringMatching(/^Approved: published at /)]);
    expect(await at.refs()).toEqual([]);
    at.forge.calls.length = 0;
    await at.poll();
    await at.poll();
    const said = at.forge.commentsOf.get(1);
    at.restart();
    await at.poll();
    expect(await tags()).toEqual(['db/v1', 'web/v1']);
    // What an earlier process can have missed.
    expect(at.forge.calls.filter((call) => call !== 'listUpdated' && call !== 'listOpen')).toEqual(['setComment']);
    expect(at.forge.commentsOf.get(1)).toEqual(said);
    expect(await at.world.events('apps.web.merge-1')).toHaveLength(1);
  });

  test('are reported by the next process where one ended before its comment: the last one, and none from before', async () => {
    await at.policy({ publishOn: 'merge' });
    for (const [number, name] of [
      [1, 'api'],
      [2, 'db'],
      [3, 'web'],
    ] as const) {
      await at.pull({ [`${name}/Kptfile`]: KPTFILE() }, { branch: name });
      await at.merge(number, 'bob');
    }
    await at.poll();
    at.forge.commentsOf.clear();
    at.restart();
    await at.poll();
    expect([1, 2, 3].map((number) => at.comment(number, 'merged') !== undefined)).toEqual([false, false, true]);
    expect(at.comment(3, 'merged')).toContain('- `web` is published as `apps.web.merge-3`');
  });

  test('with a closed gate of one package flag that one, with an event, a comment and the reason', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE(GATES), 'db/Kptfile': KPTFILE() });
    await at.poll();
    await at.merge(1, 'bob');
    const counted: HostMerge[] = [];
    const stop = hostMerges.subscribe((one) => void counted.push(one));
    await at.poll().finally(stop);
    expect(counted).toEqual([
      { origin: 'user', result: 'published' },
      { origin: 'user', result: 'out_of_band' },
    ]);
    expect(revision('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'GateUnmet' } });
    expect(revision('apps.db.merge-1')?.outOfBand).toBeUndefined();
    const reported = expect.stringMatching(new RegExp(`^OutOfBand: the merge of web by .* gate ${GATE} is closed`));
    expect(await at.world.events('apps.web.merge-1')).toEqual([reported]);
    expect(await at.world.events('apps')).toContainEqual(reported);
    expect(at.comment(1, 'merged')).toContain('`web` is **out of band** as `apps.web.merge-1`');
    // Where the process ended before the comment, the next one writes it.
    at.forge.commentsOf.delete(1);
    at.restart();
    await at.poll();
    expect(at.comment(1, 'merged')).toContain('`web` is **out of band** as `apps.web.merge-1`');
    expect(await tags()).toEqual(['db/v1', 'web/v1']);
  });

  test('by a user whom the policy does not map, or who may not approve, flag its packages', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    await at.merge(1, 'eve');
    await at.poll();
    expect(revision('apps.web.merge-1')?.outOfBand).toMatchObject({ reason: 'NotApproved' });
    expect(revision('apps.web.merge-1')?.outOfBand?.message).toContain('does not list');
    await at.pull({ 'web/a.yaml': MAP }, { branch: 'second' });
    at.restart({ mayApprove: async () => false });
    await at.poll();
    await at.merge(2, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-2')?.outOfBand?.message).toContain('may not update packagerevisions/approval');
  });

  test('that the host may only have detected are no approval of the user whom it reports', async () => {
    await at.policy({ publishOn: 'merge' });
    at.forge.unsureMerger = 'the host names the last user who pushed';
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    await at.merge(1, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-1')?.outOfBand).toMatchObject({
      ...{ reason: 'NotApproved', message: expect.stringContaining('the host names the last user who pushed') },
    });
  });

  test('that were scheduled are an approval of each package that is as it was then, and of no other', async () => {
    await at.policy({ publishOn: 'merge' });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
    await at.poll();
    at.forge.schedules.set(1, { by: 'bob', at: '2030-01-01T00:00:01Z', commit });
    await at.pull({ 'db/a.yaml': MAP, 'cache/Kptfile': KPTFILE() }, { onTop: true });
    await at.poll();
    await at.merge(1, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    for (const name of ['apps.db.merge-1', 'apps.cache.merge-1'])
      expect(revision(name)?.outOfBand).toMatchObject({
        reason: 'NotApproved',
        message: expect.stringMatching(/as bob had scheduled at .*the package has changed since/),
      });
  });

  test('count for the quorum of a group by the groups of the mapped users who merged and who approved', async () => {
    const approvers = ['bob', 'carl', 'dora'].map((user) => ({ user, subject: user, groups: ['sre'] }));
    const quorum = { required: 2, from: ['group:sre'], excludeProposer: false, excludeContributors: false };
    await at.policy(
      {
        publishOn: 'merge',
        teams: [{ team: 'acme/sre', groups: ['sre'] }],
        approvers: [...approvers.slice(0, 2), { user: 'dora', subject: 'dora' }],
      },
      { approval: { quorum } },
    );
    const review = async (number: number, user: string) => {
      const commit = await at.pull({ 'web/Kptfile': KPTFILE(), [`web/${number}.yaml`]: MAP }, { branch: `b${number}` });
      at.forge.review(number, user, 'approved', commit);
      await at.poll();
      await at.merge(number, 'bob');
      await at.poll();
    };
    await review(1, 'dora');
    expect(revision('apps.web.merge-1')?.outOfBand).toMatchObject({ reason: 'NotApproved' });
    at.forge.teams.set('acme/sre', new Set(['dora']));
    for (const [number, user] of [
      [2, 'carl'],
      [3, 'dora'],
    ] as const) {
      await review(number, user);
      expect(revision(`apps.web.merge-${number}`)?.lifecycle).toBe('Published');
      expect(revision(`apps.web.merge-${number}`)?.outOfBand).toBeUndefined();
    }
  });

  test('that are not fetched yet wait; removals, deleted revisions, and policies without merges publish nothing', async () => {
    await at.policy({ publishOn: 'merge' });
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    const commit = await at.merge(1, 'bob');
    at.forge.change(1, { merged: { commit: 'f'.repeat(40), by: 'bob' } });
    expect(await at.poll()).toMatchObject({ requeueAfter: 1000 });
    expect(requests.has({ namespace: 'default', name: 'apps' })).toBe(true);
    expect(await tags()).toEqual([]);
    at.forge.change(1, { merged: { commit, by: 'bob' } });
    at.restart();
    await at.poll();
    expect(revision('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published' });
    await at.delete('apps.web.merge-1');
    await at.pull({ 'web/Kptfile': null }, { branch: 'removal' });
    await at.merge(2, 'bob');
    at.restart();
    await at.poll();
    expect(await tags()).toEqual([]);
    expect((await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'))).toEqual([]);
    at.forge.calls.length = 0;
    await at.poll();
    expect(at.forge.calls).toEqual(['listUpdated']);
  });

  test('while the first lists are read are published, although another one changes later', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'other' });
    // The clock of the host is not ahead.
    at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
    at.restart();
    let merged: Promise<string> | undefined;
    at.forge.after = (method) => {
      if (method !== 'listUpdated' || merged !== undefined) return;
      merged = at.merge(1, 'bob');
      at.forge.change(2, { title: 'later' });
    };
    await at.poll();
    await merged;
    for (let turn = 0; turn < 2; turn += 1) await at.poll();
    expect(await tags()).toEqual(['web/v1']);
    expect(await at.world.events('apps.web.merge-1')).toEqual([expect.stringMatching(/^Approved: /)]);
  });

  test('that are fetched after a long time are published; meanwhile later ones are, and an event reports it once', async () => {
    await at.policy({ publishOn: 'merge' });
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    const commit = await at.merge(1, 'bob');
    at.forge.change(1, { merged: { commit: 'f'.repeat(40), by: 'bob' } });
    await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'other' });
    await at.merge(2, 'bob');
    await at.poll();
    expect(await tags()).toEqual([]);
    const events = async () =>
      (await at.world.events('apps')).filter((text) => /^MergeNotPublished: .*does not arrive/.test(text)).length;
    for (let turn = 0; turn < 60; turn += 1) await at.poll();
    expect(await tags()).toEqual(['db/v1']);
    expect(await events()).toBe(1);
    // Later ones do not wait for it any more.
    await at.pull({ 'cache/Kptfile': KPTFILE() }, { branch: 'third' });
    await at.merge(3, 'bob');
    await at.poll();
    expect(await tags()).toEqual(['cache/v1', 'db/v1']);
    at.forge.change(1, { merged: { commit, by: 'bob' } });
    await at.poll();
    expect(await tags()).toEqual(['cache/v1', 'db/v1', 'web/v1']);
    expect(await events()).toBe(1);
    expect(at.comment(1, 'merged')).toContain('- `web` is published as `apps.web.merge-1`');
  });

  test('are published when Git can be fetched again, however long it could not', async () => {
    await at.policy({ publishOn: 'merge' });
    const head = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    const { base, commit } = mergeOnHost(at.path, head, 'merge', 1);
    const { updatedAt: closedAt } = at.forge.change(1, { state: 'merged', merged: { commit, by: 'bob', base } });
    at.forge.change(1, { closedAt });
    for (let turn = 0; turn < 30; turn += 1) await at.poll();
    expect(await tags()).toEqual([]);
    await at.world.store.repository('apps').refresh();
    for (let turn = 0; turn < 20; turn += 1) await at.poll();
    expect(revision('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', commit });
  });

  test('that are in the repository and not on its main branch are looked for ever more seldom', async () => {
    await at.policy({ publishOn: 'merge' });
    const head = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    at.forge.change(1, { state: 'merged', closedAt: '2030-01-01T01:00:00Z', merged: { commit: head, by: 'bob' } });
    const { index } = at.world.store.repository('apps');
    const searches = vi.spyOn(index, 'isOnMain');
    for (let turn = 0; turn < 100; turn += 1) await at.poll();
    searches.mockClear();
    for (let turn = 0; turn < 20; turn += 1) await at.poll();
    expect(searches.mock.calls.length).toBeLessThanOrEqual(1);
    const commit = await at.merge(1, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', commit });
  });

  test('from before a policy lets merges publish publish nothing, also after a restart; later ones do', async () => {
    await at.policy();
    const merge = async (number: number, name: string) => {
      await at.pull({ [`${name}/Kptfile`]: KPTFILE() }, { branch: name });
      await at.poll();
      await at.merge(number, 'bob');
    };
    await merge(1, 'web');
    await at.setPublishOn('merge');
    for (let turn = 0; turn < 2; turn += 1) {
      at.restart();
      await at.poll();
    }
    expect(await tags()).toEqual([]);
    await merge(2, 'db');
    at.restart();
    await at.poll();
    expect(await tags()).toEqual(['db/v1']);
    // What is merged in between, and not looked at then, does not count later either.
    await at.setPublishOn('approval');
    await at.poll();
    await merge(3, 'cache');
    await at.setPublishOn('merge');
    at.restart();
    await at.poll();
    expect(await tags()).toEqual(['db/v1']);
  });

  test('wait for the earlier merge of a proposal of the same package, which gets the lower number', async () => {
    await at.policy({ publishOn: 'merge' });
    const { name } = await at.world.draft('apps/web/w1');
    await at.world.store.update(name, { action: 'propose' }, ANNA);
    const { commit: tip } = at.world.store.get(name);
    const branch = 'proposed/web/w1';
    await at.forge.open({ head: branch, base: 'main', title: '', body: '' });
    const { commit } = mergeOnHost(at.path, tip, 'squash', 1);
    const head = { branch, commit: tip, isSameRepository: true };
    at.forge.change(1, { state: 'merged', head, merged: { commit, by: 'bob' } });
    await at.world.store.repository('apps').refresh();
    await at.pull({ 'web/a.yaml': MAP });
    await at.merge(2, 'bob');
    await at.poll();
    await at.poll();
    expect(await tags()).toEqual([]);
    await at.world.store.update(name, { action: 'approve', merged: { commit, recordBypass: true } }, ANNA);
    await at.poll();
    expect([name, 'apps.web.merge-2'].map((one) => revision(one)?.revision)).toEqual([1, 2]);
  });

  test('since the creation of the policy count, although it is read later', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.merge(1, 'bob');
    await at.poll();
    expect(await tags()).toEqual(['web/v1']);
    const { metadata } = await at.world.client.get(packagePolicyKind, { namespace: 'default', name: 'review' });
    const { status } = await at.world.client.get(repositoryKind, { namespace: 'default', name: 'apps' });
    expect(status?.mergePublication).toMatchObject([{ policy: 'review', uid: metadata.uid, publishOn: 'merge' }]);
  });

  test('with publishOn: approval publish nothing', async () => {
    await at.policy();
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    await at.merge(1, 'bob');
    await at.poll();
    expect(await tags()).toEqual([]);
    expect(at.comment(1, 'merged')).toBeUndefined();
  });
});
