import { beforeEach, describe, expect, test } from 'vitest';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../../src/package/model/policy/review-policy.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { git, readRef } from '../../test/support/git/git-cli.ts';
import { eachUserPulls, GATES, KPTFILE, MAP, type UserPullBench } from '../../test/support/user-pull-bench.ts';
import { updateBatchBranch } from '../pull-request/batch/batch-branch.ts';

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
});

/** Proposes `app`, with a pull request. Returns the name of the revision. */
async function propose(): Promise<string> {
  const { name } = await at.world.draft('apps/app/w1', { 'a.yaml': MAP });
  await at.world.store.update(name, { action: 'propose' }, ANNA);
  return name;
}

async function publish(name: string): Promise<void> {
  const reviewed = { type: REVIEWED_TYPE, status: 'True' } as const;
  await at.world.store.change(name, { conditions: [reviewed] }, { actor: { name: REVIEW_ACTOR }, face: 'controller' });
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

test('the shared pull request of proposals is none of a user, also when its branch is gone', async () => {
  const name = await propose();
  const repository = at.world.store.repository('apps');
  const { path, tip } = at.world.store.get(name);
  const member = { proposal: '0123456789abcdef', name, path, tree: tip.tree ?? '' };
  const branch = 'sluice/batch/shared';
  const { head } = await updateBatchBranch(repository, branch, [member], new AbortController().signal);
  await openFor(branch);
  await expectUntouched();
  git(at.path, ['update-ref', 'refs/pull/1/head', head]);
  await at.merge(1, 'bob');
  await expectUntouched();
});
