import { beforeEach, describe, expect, test } from 'vitest';
import { timestamp } from '../../src/foundation/time/clock.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../../src/package/model/policy/review-policy.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { git, readRef } from '../../test/support/git/git-cli.ts';
import { eachUserPulls, GATES, KPTFILE, MAP, type UserPullBench } from '../../test/support/user-pull-bench.ts';
import { updateBatchBranch } from '../pull-request/batch/batch-branch.ts';
import { batchBranch } from '../pull-request/batch/batch-name.ts';
import { proposalId, withSection } from '../pull-request/text/section.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  await at.poll();
});

const merges = () =>
  at.world.store
    .list()
    .flatMap(({ name, outOfBand }) => (name.includes('.merge-') ? `${name} ${outOfBand?.reason}` : []));

describe('a branch of a user with a name as that of Sluice', () => {
  test.each(['proposed/zzz/w1', 'proposed/x', 'sluice/batch/x'])(
    '%s is checked, and its merge is published',
    async (branch) => {
      const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES), 'web/a.yaml': MAP }, { branch });
      await at.poll();
      expect(at.titles(commit)).toMatchObject({ 'sluice/ready': expect.stringContaining('pending') });
      await at.merge(1, 'bob');
      for (let turn = 0; turn < 2; turn += 1) await at.poll();
      expect(merges()).toEqual(['apps.web.merge-1 GateUnmet']);
      expect(await at.world.events('apps')).toEqual([expect.stringContaining('OutOfBand')]);
    },
  );

  test('that of an ended proposal is checked, once it is there with other packages', async () => {
    const name = await propose();
    await publish(name);
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'web/a.yaml': MAP }, { branch: 'proposed/app/w1' });
    await at.poll();
    expect(Object.keys(at.titles(commit))).toContain('sluice/ready');
  });

  test.each([false, true])(
    'that of a published proposal which is removed with the merge is published, after a restart: %s',
    async (restarts) => {
      const name = await propose();
      await openFor('proposed/app/w1');
      await publish(name);
      showMerged();
      await at.poll();
      const files = { 'web/Kptfile': KPTFILE(), 'web/a.yaml': MAP };
      await at.pull(files, { branch: 'proposed/app/w1' });
      if (restarts) at.restart();
      else await at.poll();
      await at.merge(2, 'bob');
      for (let turn = 0; turn < 2; turn += 1) await at.poll();
      expect(merges()).toEqual(['apps.web.merge-2 undefined']);
      expect((await at.world.events('apps')).filter((one) => one.startsWith('MergeNotPublished'))).toEqual([]);
    },
  );
});

/** Proposes a package. Returns the name of the revision. */
async function propose(of = 'app'): Promise<string> {
  const { name } = await at.world.draft(`apps/${of}/w1`, { 'a.yaml': MAP });
  await at.world.store.update(name, { action: 'propose' }, ANNA);
  return name;
}

async function publish(name: string): Promise<void> {
  await noteReviewed(name);
  await approve(name);
}

async function noteReviewed(name: string): Promise<void> {
  const reviewed = { type: REVIEWED_TYPE, status: 'True' } as const;
  await at.world.store.change(name, { conditions: [reviewed] }, { actor: { name: REVIEW_ACTOR }, face: 'controller' });
}

async function approve(name: string): Promise<void> {
  await at.world.store.update(name, { action: 'approve' }, ANNA);
}

async function openFor(branch: string): Promise<void> {
  const { number } = await at.forge.open({ head: branch, base: 'main', title: 'Publish', body: '' });
  const commit = readRef(at.path, `refs/heads/${branch}`) ?? '';
  at.forge.change(number, { head: { branch, commit, isSameRepository: true } });
}

/** The host merged it, at the head of the main branch. */
function showMerged(): void {
  const commit = readRef(at.path, 'refs/heads/main') ?? '';
  const { updatedAt: closedAt } = at.forge.change(1, { state: 'merged', merged: { commit, by: 'bob' } });
  at.forge.change(1, { closedAt });
}

/** Neither checked nor published as one of a user, also by a new process. */
async function expectUntouched(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
  at.restart();
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
  expect(at.forge.checks.size).toBe(0);
  expect(at.forge.calls).not.toContain('setComment');
  expect(merges()).toEqual([]);
  expect(await at.world.events('apps')).toEqual([]);
}

describe('that of a published proposal', () => {
  const branch = 'proposed/app/w1';
  let name: string;
  let marker: string;
  beforeEach(async () => {
    name = await propose();
    await openFor(branch);
    const { uid, record } = at.world.store.get(name);
    marker = withSection('', [proposalId(uid, record?.steps ?? [])], 'text');
    at.forge.change(1, { body: marker });
    await at.poll();
  });

  test('which is opened again is checked at another head, and its merge is published', async () => {
    await publish(name);
    at.forge.change(1, { state: 'closed' });
    await at.poll();
    at.forge.change(1, { state: 'open' });
    await pushBroken(branch, { 'db/Kptfile': KPTFILE(GATES) });
    expect(merges()).toEqual(['apps.app.merge-1 GateUnmet', 'apps.db.merge-1 GateUnmet']);
  });

  test('which a user has merged unseen is published', async () => {
    await publish(name);
    await pushHead(branch, { 'db/Kptfile': KPTFILE() });
    await at.merge(1, 'bob');
    at.restart();
    await at.poll();
    expect(merges()).toEqual(['apps.db.merge-1 undefined']);
  });

  test('keeps the checks of the proposal while the host has not closed it, and is checked if it stays open', async () => {
    await publish(name);
    const [, commit = ''] = at.world.store.get(name).tip.parents;
    git(at.path, ['update-ref', 'refs/pull/1/head', commit]);
    at.forge.change(1, { head: { branch, commit, isSameRepository: true } });
    await expectCheckedLate(commit);
  });

  test('whose text another pull request of the branch has is checked', async () => {
    await publish(name);
    at.forge.change(1, { state: 'closed' });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'web/a.yaml': MAP }, { branch });
    at.forge.change(2, { body: marker });
    await at.poll();
    expect(Object.keys(at.titles(commit))).toContain('sluice/ready');
    await at.merge(2, 'bob');
    await at.poll();
    expect(merges()).toEqual(['apps.web.merge-2 undefined']);
  });
});

describe('the pull request of a proposal is none of a user', () => {
  let name: string;
  beforeEach(async () => {
    name = await propose();
    await openFor('proposed/app/w1');
  });

  test('while it is open', () => expectUntouched());

  test('after it was published, and after its revision was deleted', async () => {
    await publish(name);
    await expectUntouched();
    showMerged();
    await expectUntouched();
    await at.delete(name);
    at.forge.change(1, {});
    await expectUntouched();
  });

  test('after it was rejected, and after its draft was deleted', async () => {
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    await expectUntouched();
    await at.world.store.update(name, { action: 'delete' }, ANNA);
    at.forge.change(1, { state: 'closed' });
    await expectUntouched();
  });

  test('after it was rejected, but not if it is merged a week later', async () => {
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    const { commit = '' } = at.forge.pulls[0]?.head ?? {};
    git(at.path, ['update-ref', 'refs/pull/1/head', commit]);
    at.clock.advance(8 * 86_400_000);
    await at.merge(1, 'bob');
    at.forge.change(1, { closedAt: timestamp(at.clock.now()) });
    await at.poll();
    expect(merges()).toEqual(['apps.app.merge-1 undefined']);
  });

  test('after it was merged, and a user removed its branch', async () => {
    await at.merge(1, 'bob');
    await expectUntouched();
  });
});

test('the pull request of a proposal that a user has pushed is none of a user, also while its branch is not fetched', async () => {
  const branch = 'proposed/app/w1';
  const commit = await at.world.push(at.path, { 'app/Kptfile': KPTFILE() }, branch, 'refs/heads/main');
  git(at.path, ['update-ref', 'refs/pull/1/head', commit]);
  await openFor(branch);
  await at.poll();
  expect(at.world.store.list().map(({ name, lifecycle }) => [name, lifecycle])).toEqual([['apps.app.w1', 'Proposed']]);
  await expectUntouched();
});

describe('a shared pull request', () => {
  let names: string[];
  let branch: string;
  beforeEach(async () => {
    await at.shareProposals();
    names = [await propose(), await propose('db')];
    for (const one of names) await noteReviewed(one);
    branch = await pushShared(names);
  });

  test('of proposals is none of a user, also when its branch is gone', async () => {
    await openFor(branch);
    await expectUntouched();
    git(at.path, ['update-ref', 'refs/pull/1/head', `refs/heads/${branch}`]);
    await at.merge(1, 'bob');
    await expectUntouched();
  });

  test('of published proposals is none of a user where it was merged before they were published', async () => {
    await openFor(branch);
    const commit = readRef(at.path, 'refs/heads/main') ?? '';
    for (const one of names) await approve(one);
    at.forge.change(1, { state: 'merged', merged: { commit, by: 'bob' } });
    await expectUntouched();
  });

  test('of published proposals which is opened again is checked at another head, and its merge is published', async () => {
    await openFor(branch);
    await at.poll();
    for (const one of names) await approve(one);
    await pushBroken(branch, { 'zoo/Kptfile': KPTFILE() });
    expect(merges()).toEqual(['apps.app.merge-1 GateUnmet', 'apps.zoo.merge-1 NotApproved']);
  });

  test('that stays open after its proposals were published keeps its checks for a while, and is checked then', async () => {
    await openFor(branch);
    await at.poll();
    const { commit } = at.forge.pulls[0]?.head ?? { commit: '' };
    for (const one of names) await approve(one);
    await expectCheckedLate(commit);
  });

  test('of proposals is none of a user where its policy has no batch since the merge', async () => {
    await openFor(branch);
    await at.poll();
    git(at.path, ['update-ref', 'refs/pull/1/head', `refs/heads/${branch}`]);
    await at.merge(1, 'bob');
    await at.shareProposals(null);
    at.restart();
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(merges()).toEqual([]);
  });

  test('of proposals that no policy reviews any more keeps its checks', async () => {
    await openFor(branch);
    await at.poll();
    const { commit } = at.forge.pulls[0]?.head ?? { commit: '' };
    const spec = { selector: { repositories: ['apps'], packages: ['web'] } };
    await at.world.client.patch(packagePolicyKind, { namespace: 'default', name: 'review' }, { spec });
    await expect.poll(() => at.world.policyFor(at.world.store.get(names[0] ?? '')).review).toBe(undefined);
    for (let turn = 0; turn < 14; turn += 1) await at.poll();
    expect(at.titles(commit)).toEqual({});
  });

  test('of rejected proposals is one of a user once that has changed their packages, and its merge is published', async () => {
    await openFor(branch);
    await at.poll();
    for (const one of names) await at.world.store.update(one, { action: 'reject' }, ANNA);
    const commit = await pushHead(branch, { 'app/new.yaml': MAP });
    await at.poll();
    expect(at.titles(commit)).toMatchObject({ 'sluice/ready': expect.stringMatching(/^success/) });
    git(at.path, ['update-ref', 'refs/pull/1/head', commit]);
    await at.merge(1, 'bob');
    at.forge.change(1, { closedAt: timestamp(at.clock.now()) });
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(merges()).toEqual(['apps.app.merge-1 undefined', 'apps.db.merge-1 undefined']);
  });

  test('of proposals which a user has brought up to date is none of a user once it is merged', async () => {
    await at.world.push(at.path, { 'other/a.yaml': MAP });
    const tree = git(at.path, ['merge-tree', '--write-tree', branch, 'main']).trim();
    const commit = git(at.path, ['commit-tree', tree, '-p', branch, '-p', 'main', '-m', 'Merge main']).trim();
    git(at.path, ['update-ref', `refs/heads/${branch}`, commit]);
    await at.world.store.repository('apps').refresh();
    await openFor(branch);
    await at.merge(1, 'bob');
    await expectUntouched();
  });

  test('with a package of a user is one of a user once that has merged it', async () => {
    const commit = await forge(`${branch}x`, branch);
    await at.merge(2, 'bob');
    await at.poll();
    expect(at.titles(commit)).toEqual({});
    expect(merges()).toEqual(['apps.zoo.merge-2 GateUnmet']);
  });

  test.each([
    ['another name', 'sluice/batch/0123456789ab-x'],
    ['a name of the repository, where no policy shares pull requests', undefined],
  ])('of a user with commits as those of Sluice is checked, and its merge is published: %s', async (_, other) => {
    await at.shareProposals(null);
    const commit = await forge(other ?? `${branch}x`, branch);
    await at.poll();
    expect(at.titles(commit)).toMatchObject({ 'sluice/ready': expect.stringContaining('pending') });
    await at.merge(2, 'bob');
    await at.poll();
    expect(merges()).toEqual(['apps.zoo.merge-2 GateUnmet']);
  });
});

/** A user opens a pull request with one commit, which has the message of that of a shared branch for another package. Returns the commit. */
async function forge(branch: string, shared: string): Promise<string> {
  await at.pull({ 'zoo/Kptfile': KPTFILE(GATES), 'zoo/a.yaml': MAP }, { branch: 'made' });
  const tree = git(at.path, ['rev-parse', 'made^{tree}']).trim();
  const message = git(at.path, ['log', '-1', '--format=%B', shared]).replace(/(?<=Tree: ).*/, tree);
  const commit = git(at.path, ['commit-tree', tree, '-p', 'main', '-m', message]).trim();
  git(at.path, ['update-ref', `refs/heads/${branch}`, commit]);
  await at.world.store.repository('apps').refresh();
  await openFor(branch);
  return commit;
}

/** Pushes the branch that proposals share, as Sluice does. */
async function pushShared(names: readonly string[]): Promise<string> {
  const repository = at.world.store.repository('apps');
  const members = names.map((name) => {
    const { path, tip, uid, record } = at.world.store.get(name);
    return { proposal: proposalId(uid, record?.steps ?? []), name, path, tree: tip.tree ?? '' };
  });
  const branch = batchBranch(repository.id, members[0]?.proposal ?? '');
  await updateBatchBranch(repository, branch, members, new AbortController().signal);
  return branch;
}

/** A user pushes a commit onto what the pull request 1 had, also where its branch is gone. Returns the commit, which is its head. */
async function pushHead(branch: string, files: Readonly<Record<string, string>>): Promise<string> {
  const { commit } = at.forge.pulls.findLast(({ head }) => head.branch === branch)?.head ?? { commit: '' };
  const ref = `refs/heads/${branch}`;
  if (readRef(at.path, ref) === undefined) git(at.path, ['update-ref', ref, commit]);
  const pushed = await at.world.push(at.path, files, branch);
  await at.world.store.repository('apps').refresh();
  at.forge.change(1, { head: { branch, commit: pushed, isSameRepository: true } });
  return pushed;
}

/** A user pushes a mistake in `app` with these files, of which the check fails, and the owner of the repository merges it all the same. */
async function pushBroken(branch: string, files: Readonly<Record<string, string>>): Promise<void> {
  const commit = await pushHead(branch, { 'app/new.yaml': 'a: [broken\n', ...files });
  await at.poll();
  expect(at.titles(commit)).toMatchObject({
    'sluice/ready': expect.stringMatching(/^failure: 1 error: app\/new.yaml/),
  });
  await at.merge(1, 'owner');
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
}

/** The host may still close it: it gets no check for five minutes. */
async function expectCheckedLate(commit: string): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await at.poll();
  expect(at.titles(commit)).toEqual({});
  await at.poll();
  expect(Object.keys(at.titles(commit))).toContain('sluice/ready');
}
