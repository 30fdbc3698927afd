import { beforeEach, describe, expect, test } from 'vitest';
import { DEFAULT_POLICY } from '../../../src/package/model/policy/policy.ts';
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
