import { beforeEach, describe, expect, test } from 'vitest';
import { DEFAULT_POLICY } from '../../../src/package/model/policy/policy.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import {
  eachUserPulls,
  GATES,
  KPTFILE,
  LABELS,
  MAP,
  TESTED,
  type UserPullBench,
} from '../../../test/support/user-pull-bench.ts';
import { type HostMerge, hostMerges } from '../../pull-request/merged/host-merges.ts';

describe('merges of pull requests that users open, rare cases', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(async () => {
    at = open();
  });
  const revision = (name: string) => at.world.store.find(name);

  test.each(['squash', 'rebase', 'fast-forward'] as const)('end in the same revision as a %s', async (style) => {
    await at.policy({ publishOn: 'merge' });
    if (style !== 'fast-forward') await at.world.push(at.path, { 'README.md': 'before' });
    await at.pull({ 'db/Kptfile': KPTFILE() });
    await at.pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() }, { onTop: true });
    await at.poll();
    if (style !== 'fast-forward') {
      await at.world.push(at.path, { 'README.md': 'after' });
      await at.world.store.repository('apps').refresh();
    }
    const commit = await at.merge(1, 'bob', style);
    await at.poll();
    for (const name of ['apps.web.merge-1', 'apps.db.merge-1'])
      expect(revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
  });

  describe('whose name another user has taken', () => {
    const squat = (workspace: string) => at.world.draft(`apps/web/${workspace}`, { 'evil.yaml': MAP });
    const plants: readonly [string, () => Promise<unknown>][] = [
      ['by a draft', () => squat('merge-1')],
      [
        'by a push',
        async () => {
          await at.world.push(at.path, { 'web/Kptfile': KPTFILE(), 'web/evil.yaml': MAP }, 'drafts/web/merge-1');
          await at.world.store.repository('apps').refresh();
        },
      ],
      [
        'by a proposal',
        async () => {
          const { name } = await squat('merge-1');
          await at.world.settle(name);
          await at.world.store.update(name, { action: 'propose' }, ANNA);
        },
      ],
    ];
    test.each(plants)('publish under the next one: %s', async (_, plant) => {
      await at.policy({ publishOn: 'merge' });
      await plant();
      const before = revision('apps.web.merge-1')?.etag;
      await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP, 'db/Kptfile': KPTFILE() });
      await at.poll();
      const commit = await at.merge(1, 'bob');
      for (let turn = 0; turn < 2; turn += 1) await at.poll();
      for (const name of ['apps.web.merge-1-2', 'apps.db.merge-1'])
        expect(revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
      expect(revision('apps.web.merge-1')?.etag).toBe(before);
      expect(at.comment(1, 'merged')).toContain('`web` is published as `apps.web.merge-1-2`');
      const names = at.world.store.list().map(({ name }) => name);
      at.restart();
      for (let turn = 0; turn < 2; turn += 1) await at.poll();
      expect(at.world.store.list().map(({ name }) => name)).toEqual(names);
      expect((await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'))).toEqual([]);
    });

    test('do not come back under a free one once they were deleted', async () => {
      await at.policy({ publishOn: 'merge' });
      await squat('merge-1');
      await at.pull({ 'web/Kptfile': KPTFILE() });
      await at.merge(1, 'bob');
      await at.poll();
      expect(revision('apps.web.merge-1-2')?.lifecycle).toBe('Published');
      await at.world.store.update('apps.web.merge-1', { action: 'delete' }, ANNA);
      await at.delete('apps.web.merge-1-2');
      at.restart();
      for (let turn = 0; turn < 2; turn += 1) await at.poll();
      expect(at.world.store.list().map(({ name }) => name)).toEqual(['apps.web.main']);
    });

    test('publish where the draft with its name was removed by a push, with its record', async () => {
      await at.policy({ publishOn: 'merge' });
      await squat('merge-1');
      for (const ref of [...(await at.refs()), ...(await at.refs('refs/sluice/records/'))])
        git(at.path, ['update-ref', '-d', ref]);
      await at.world.store.repository('apps').refresh();
      await at.pull({ 'web/Kptfile': KPTFILE() });
      const commit = await at.merge(1, 'bob');
      await at.poll();
      expect(revision('apps.web.merge-1-2')).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
    });
  });

  test('of which labels in the Kptfile leave the policy unknown are reported: event, comment and metric', async () => {
    const absent = { matchExpressions: [{ key: 'x', operator: 'DoesNotExist' }] };
    await at.policy({ publishOn: 'merge' }, { selector: { packageSelector: absent } });
    const labelled = KPTFILE().replace('name: web\n', 'name: web\n  labels:\n    x: y\n');
    await at.pull({ 'web/Kptfile': labelled, 'db/Kptfile': KPTFILE() });
    await at.poll();
    await at.merge(1, 'bob');
    const counted: HostMerge[] = [];
    const stop = hostMerges.subscribe((one) => void counted.push(one));
    await at.poll().finally(stop);
    expect(counted).toEqual([
      { origin: 'user', result: 'published' },
      { origin: 'user', result: 'not_published' },
    ]);
    const why = 'whether spec.review of the policies review applies depends on labels in the Kptfile';
    expect(at.comment(1, 'merged')).toContain('`web` is **not published**');
    expect(at.comment(1, 'merged')).toContain(why);
    const events = async () => (await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'));
    expect(await events()).toEqual([expect.stringContaining(why)]);
    at.restart();
    for (let turn = 0; turn < 2; turn += 1) await at.poll();
    expect(await events()).toHaveLength(1);
    // What is merged without any policy for merges is no bypass.
    await at.setPublishOn('approval');
    await at.pull({ 'web/map.yaml': MAP }, { branch: 'second' });
    await at.poll();
    await at.merge(2, 'bob');
    await at.poll();
    expect(await events()).toHaveLength(1);
  });

  test('count reviews: of the merged content as approvals, and requests for changes as a closed gate', async () => {
    await at.policy({ publishOn: 'review' });
    const head = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    at.forge.review(1, 'bob', 'approved', head);
    await at.merge(1, 'eve');
    await at.poll();
    expect(revision('apps.web.merge-1')?.outOfBand).toBeUndefined();
    expect(revision('apps.web.merge-1')?.tip.facts.statement?.statement.record.approvals).toMatchObject([
      { subject: 'bob@example.com', evidence: expect.stringContaining('#review-1') },
    ]);
    const second = await at.pull({ 'web/a.yaml': MAP }, { branch: 'second' });
    at.forge.review(2, 'bob', 'changes-requested', second);
    await at.merge(2, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-2')?.outOfBand?.reason).toBe('GateUnmet');
    expect(at.comment(2, 'merged')).toContain('sluice.dev/Reviewed');
    // With that kind of policy the merge itself is no approval.
    await at.pull({ 'web/b.yaml': MAP }, { branch: 'third' });
    await at.merge(3, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-3')?.outOfBand?.reason).toBe('NotApproved');
  });

  test('of mistakes, of packages that are not rendered, and of conditions of a fork are flagged', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({
      'bad/Kptfile': KPTFILE(),
      'bad/a.yaml': 'a: [\n',
      'raw/Kptfile': KPTFILE(LABELS),
      'raw/map.yaml': MAP,
    });
    await at.merge(1, 'bob');
    await at.poll();
    expect(revision('apps.bad.merge-1')?.outOfBand?.message).toContain('Rendered');
    expect(await at.world.events('apps.raw.merge-1')).toEqual([
      expect.stringContaining('the pipeline changes map.yaml'),
    ]);
    await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED) }, { branch: 'own' });
    await at.merge(2, 'bob');
    await at.pull({ 'api/Kptfile': KPTFILE(GATES, TESTED) }, { branch: 'foreign', isFork: true });
    await at.merge(3, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-2')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(revision('apps.api.merge-3')?.outOfBand?.reason).toBe('GateUnmet');
  });

  test('while no process ran are found and published in their order; earlier ones than the policy are not', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.pull({ 'old/Kptfile': KPTFILE() }, { branch: 'old' });
    await at.merge(1, 'bob');
    await at.merge(2, 'bob', 'squash');
    at.forge.change(2, { closedAt: '2020-01-01T00:00:00Z' });
    await at.pull({ 'web/a.yaml': MAP }, { branch: 'third' });
    const last = await at.merge(3, 'bob');
    at.forge.change(1, { title: 'changed last' });
    at.restart();
    await at.poll();
    expect(revision('apps.web.merge-1')).toMatchObject({ revision: 1 });
    expect(revision('apps.web.merge-3')).toMatchObject({ revision: 2, commit: last, outOfBand: undefined });
    expect(revision('apps.old.merge-2')).toBeUndefined();
    expect(revision('apps.web.main')?.outOfBand).toBeUndefined();
  });

  test('of the same second, as those of a merge queue, are published in the order of the main branch', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.world.push(at.path, { 'web/Kptfile': KPTFILE() });
    await at.world.store.repository('apps').refresh();
    for (const number of [1, 2, 3]) await at.pull({ [`web/${number}.yaml`]: MAP }, { branch: `branch-${number}` });
    const commits = new Map<number, string>();
    for (const number of [2, 3, 1]) commits.set(number, await at.merge(number, 'bob'));
    for (const number of [2, 1]) at.forge.change(number, { closedAt: at.forge.pulls[2]?.closedAt ?? '' });
    await at.poll();
    for (const [number, of] of [
      [2, 1],
      [3, 2],
      [1, 3],
    ] as const)
      expect(revision(`apps.web.merge-${number}`)).toMatchObject({ revision: of, commit: commits.get(number) });
  });

  test('that another process has published are known as that, also where its tag was not fetched yet', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    const back = at.beside();
    await at.merge(1, 'bob');
    await at.poll();
    const said = at.comment(1, 'merged');
    expect(said).toContain('is published as');
    // As a process with a mirror of its own: the ledger that both share has the publication, its refs come with the next fetch.
    const tag = git(at.path, ['rev-parse', 'refs/tags/web/v1']);
    git(at.path, ['update-ref', '-d', 'refs/tags/web/v1']);
    await at.world.store.repository('apps').sync();
    expect(revision('apps.web.merge-1')).toBeUndefined();
    git(at.path, ['update-ref', 'refs/tags/web/v1', tag]);
    back();
    await at.poll();
    expect(revision('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(at.comment(1, 'merged')).toBe(said);
    expect((await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'))).toEqual([]);
  });

  test('of many packages that cannot be published read the refs once for all of them', async () => {
    await at.policy({ publishOn: 'merge' });
    const filesOf = (file: string, text: string) =>
      Object.fromEntries(['api', 'db', 'web'].map((name) => [`${name}/${file}`, text]));
    await at.world.push(at.path, filesOf('Kptfile', KPTFILE()));
    await at.world.store.repository('apps').refresh();
    await at.pull(filesOf('a.yaml', MAP), { branch: 'first' });
    await at.pull(filesOf('b.yaml', MAP), { branch: 'second' });
    await at.poll();
    for (const number of [1, 2]) await at.merge(number, 'bob');
    // By the times of the host the other one is published first, at a later commit.
    at.forge.change(1, { closedAt: '2100-01-01T00:00:00Z' });
    const repository = at.world.store.repository('apps');
    const sync = repository.sync.bind(repository);
    let syncs = 0;
    repository.sync = (...args) => {
      syncs += 1;
      return sync(...args);
    };
    await at.poll();
    expect(revision('apps.web.merge-2')?.lifecycle).toBe('Published');
    for (const name of ['api', 'db', 'web'])
      expect(at.comment(1, 'merged')).toContain(`\`${name}\` is **not published**`);
    expect(syncs).toBe(1);
  });

  test('that publish nothing are reported by the next process where none has reported them, once', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.world.push(at.path, { 'web/Kptfile': KPTFILE() });
    await at.world.store.repository('apps').refresh();
    for (const number of [1, 2]) await at.pull({ [`web/${number}.yaml`]: MAP }, { branch: `branch-${number}` });
    for (const number of [1, 2]) await at.merge(number, 'bob');
    // By the times of the host the other one is published first, at a later commit.
    at.forge.change(1, { closedAt: '2100-01-01T00:00:00Z' });
    for (let times = 0; times < 2; times += 1) {
      at.restart();
      await at.poll();
      expect(revision('apps.web.merge-2')?.lifecycle).toBe('Published');
      expect(at.comment(1, 'merged')).toContain('`web` is **not published**');
      expect((await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'))).toHaveLength(1);
    }
    // What a process said that had published it stays.
    const said = at.comment(2, 'merged');
    at.forge.change(2, { title: 'another title' });
    at.restart();
    await at.poll();
    expect(at.comment(2, 'merged')).toBe(said);
  });

  test('that publish nothing are reported, although a user has edited a comment of Sluice to be that report', async () => {
    await at.policy({ publishOn: 'merge' });
    await at.world.push(at.path, { 'web/Kptfile': KPTFILE() });
    await at.world.store.repository('apps').refresh();
    for (const number of [1, 2]) await at.pull({ [`web/${number}.yaml`]: MAP }, { branch: `branch-${number}` });
    for (const number of [1, 2]) await at.merge(number, 'bob');
    at.forge.change(1, { closedAt: '2100-01-01T00:00:00Z' });
    await at.forge.setComment(1, 'merged', 'thanks');
    at.restart();
    await at.poll();
    expect((await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'))).toHaveLength(1);
    expect(at.comment(1, 'merged')).toContain('`web` is **not published**');
  });

  test('and checks read the policies again, so that a slow watch of them loses no publication', async () => {
    await at.policy({ publishOn: 'merge' });
    const repository = at.world.store.repository('apps');
    const policyFor = repository.policyFor.bind(repository);
    let isCurrent = false;
    repository.policyFor = (subject) => (isCurrent ? policyFor(subject) : DEFAULT_POLICY);
    repository.refreshPolicies = async () => {
      isCurrent = true;
    };
    const commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    expect(at.titles(commit)['sluice/ready']).toBe('success: 1 package checked: no errors, no closed gates');
    isCurrent = false;
    await at.merge(1, 'bob');
    await at.poll();
    expect(revision('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });
});
