import { beforeEach, expect, test, vi } from 'vitest';
import { headOf, hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import { decideRebuild, type RebuildFacts } from './rebuild-branch.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

/** A proposal with a pull request. */
async function shown(): Promise<string> {
  const name = await at.propose();
  await at.reconcile(name);
  return name;
}

/** The host refuses to merge a branch that does not contain the main branch. */
function requireUpToDate(obstacle: 'behind' | 'conflict'): void {
  at.forge.before = (method) => {
    const [main, proposed] = ['main', 'proposed/app/w1'].map((branch) => headOf(at.path, branch) ?? '');
    if (method !== 'merge') return;
    const isBehind = git(at.path, ['merge-base', main ?? '', proposed ?? '']) !== main;
    at.forge.outcome = isBehind ? { state: 'refused', obstacle, message: 'no' } : undefined;
  };
}

/** The main branch moves on outside of the package. Returns its head. */
async function moveMain(name: string, text: string): Promise<string> {
  const head = await at.world.push(at.path, { 'other.yaml': text });
  await at.world.store.repositoryOf(at.revision(name)).refresh();
  return head;
}

test('the branch is rebuilt on the main branch when the host requires it, with the same package and its approvals', async () => {
  await at.policy({ publishOn: 'merge' });
  const name = await shown();
  const { commit, tip } = at.revision(name);
  const head = await moveMain(name, 'a: 1\n');
  at.forge.mergeable = 'behind';
  await at.reconcile(name);
  const rebuilt = at.revision(name);
  expect(rebuilt.lifecycle).toBe('Proposed');
  expect(rebuilt.tip.parents).toEqual([commit, head]);
  expect(rebuilt.tip.tree).toBe(tip.tree);
  expect(rebuilt.record?.steps.at(-1)?.action).toBe('propose');
  expect(await git(at.path, ['show', `${rebuilt.commit}:other.yaml`])).toContain('a: 1');
  expect(rebuilt.record?.contributors?.map((one) => one.name)).toEqual([ANNA.actor.name]);
  // It is up to date, whatever the host states.
  at.forge.calls.length = 0;
  await at.reconcile(name);
  expect(at.revision(name).commit).toBe(rebuilt.commit);
  expect(at.forge.calls).not.toContain('mergeability');
});

test('it is left while the host can merge it, for each publication, and while its gates are closed', async () => {
  await at.policy({ publishOn: 'merge' }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
  const name = await shown();
  await moveMain(name, 'a: 1\n');
  at.forge.mergeable = 'behind';
  await at.reconcile(name);
  expect(at.forge.calls).not.toContain('mergeability');
  await at.set(name, 'True');
  const { commit } = at.revision(name);
  at.forge.mergeable = 'mergeable';
  await at.reconcile(name);
  await at.reconcile(name);
  expect(at.forge.calls.filter((call) => call === 'mergeability')).toHaveLength(1);
  expect(at.revision(name).commit).toBe(commit);
});

const OBSTACLES = ['behind', 'conflict'] as const;
test.each(
  (['review', 'approval'] as const).flatMap((publishOn) => OBSTACLES.map((obstacle) => ({ publishOn, obstacle }))),
)(
  'a proposal that Sluice has the host merge is rebuilt when the host requires it: %j',
  async ({ publishOn, obstacle }) => {
    await at.policy({ publishOn });
    const name = await shown();
    protectMain(at.world.store.repository('apps'));
    hostRepository(at.forge, at.path);
    requireUpToDate(obstacle);
    const head = await moveMain(name, 'a: 1\n');
    const { commit } = at.revision(name);
    if (publishOn === 'approval') await at.world.store.update(name, { action: 'approve' }, ANNA);
    else await at.review(1, 'bob', 'approved', commit);
    for (let turn = 0; turn < 3; turn += 1) await at.reconcile(name);
    const rebuilt = at.forge.pulls[0]?.head.commit ?? '';
    expect(git(at.path, ['log', '-1', '--format=%P', rebuilt]).split(' ')).toEqual([commit, head]);
    await at.world.store.repository('apps').sync();
    await at.reconcile(name);
    const { merged } = at.forge.pulls[0] ?? {};
    expect(at.revision(name)).toMatchObject({
      ...{ lifecycle: 'Published', revision: 1, commit: merged?.commit, outOfBand: undefined },
    });
    expect(at.forge.calls.filter((call) => call === 'merge')).toHaveLength(2);
    expect(at.forge.calls).not.toContain('mergeability');
    const { record } = at.revision(name).tip.facts.statement?.statement ?? {};
    expect(record?.approvals?.at(-1)?.subject).toBe(publishOn === 'review' ? 'bob@example.com' : 'anna');
  },
);

test('without a decision that a merge of the host publishes, the branch is left', async () => {
  await at.policy({ publishOn: 'review' });
  const name = await shown();
  await moveMain(name, 'a: 1\n');
  at.forge.mergeable = 'behind';
  const { commit } = at.revision(name);
  await at.reconcile(name);
  expect(at.revision(name).commit).toBe(commit);
});

test('it is left with a file that the main branch had alike, if that changes while the host is read', async () => {
  await at.policy({ publishOn: 'merge' });
  const { name, ref } = await at.world.draft('apps/app/w1', { 'a.yaml': 'kind: A\n' });
  await at.world.push(at.path, { 'other.yaml': 'a: 1\n' }, ref.slice('refs/heads/'.length));
  await at.world.push(at.path, { 'other.yaml': 'a: 1\n' });
  await at.world.store.repository('apps').sync();
  await at.world.store.update(name, { action: 'propose' }, ANNA);
  await at.reconcile(name);
  const { commit } = at.revision(name);
  await moveMain(name, 'a: 1\n');
  at.restart();
  vi.spyOn(at.forge, 'mergeability').mockImplementation(async () => {
    await moveMain(name, 'a: 2\n');
    return 'behind';
  });
  await at.reconcile(name);
  expect(at.forge.mergeability).toHaveBeenCalled();
  expect(at.revision(name).commit).toBe(commit);
  await at.reconcile(name);
  expect(at.forge.checks.get(commit)?.get('sluice/ready')?.title).toContain('other.yaml');
  expect(git(at.path, ['show', 'proposed/app/w1:other.yaml'])).toBe('a: 1');
});

test('a main branch that the mirror does not have yet is read before the branch is rebuilt', async () => {
  await at.policy({ publishOn: 'approval' });
  const name = await shown();
  const requested: string[] = [];
  const requests = {
    subscribe: () => () => undefined,
    onCheck: () => () => undefined,
    takeReview: () => undefined,
    isAsWritten: () => undefined,
    addOwn: () => void requested.push(''),
  };
  at.restart({ requests });
  await at.sync();
  protectMain(at.world.store.repository('apps'));
  hostRepository(at.forge, at.path);
  requireUpToDate('behind');
  await at.world.push(at.path, { 'other.yaml': 'a: 1\n' });
  const { commit } = at.revision(name);
  await at.world.store.update(name, { action: 'approve' }, ANNA);
  await at.reconcile(name);
  expect(at.revision(name).commit).toBe(commit);
  expect(requested).toHaveLength(1);
  expect((await at.world.events(name)).at(-1)).toMatch(/^NotMerged: .*as soon as it has read the main branch/);
  at.woken = [];
  await at.sync();
  await expect.poll(() => at.woken).toContain(name);
  // No time has passed.
  await at.reconcile(name);
  await at.reconcile(name);
  expect(at.forge.pulls[0]?.state).toBe('merged');
});

test.each([true, false])(
  'a move of the main branch wakes for what waits for a merge, if the host requires up-to-date branches: %s',
  async (requiresUpToDate) => {
    await at.policy({ publishOn: 'merge' }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await shown();
    await at.set(name, 'True');
    await at.reconcile(name);
    const { name: closed } = await at.world.draft('apps/web/w1', { 'a.yaml': 'kind: A\n' });
    await at.world.store.update(closed, { action: 'propose' }, ANNA);
    await at.reconcile(closed);
    await at.sync();
    const moves = async (text: string) => {
      at.woken = [];
      at.forge.calls.length = 0;
      await moveMain(name, text);
      await at.sync();
    };
    // One request for the repository, and none for a pull request.
    at.forge.rules = { requiresUpToDate };
    await moves('a: 1\n');
    await expect.poll(() => at.forge.calls).toEqual(['branchRules']);
    if (!requiresUpToDate) return expect(at.woken).toEqual([]);
    await expect.poll(() => at.woken).toEqual([name]);
    // The rules are not read again for each commit.
    await moves('a: 2\n');
    await expect.poll(() => at.woken).toEqual([name]);
    expect(at.forge.calls).toEqual([]);
    at.forge.mergeable = 'behind';
    await at.reconcile(name);
    expect(git(at.path, ['show', `${at.revision(name).commit}:other.yaml`])).toContain('a: 2');
  },
);

test('a merge that the host computes is read again soon, and one that it computes for a minute counts as a conflict', async () => {
  await at.policy({ publishOn: 'merge' });
  const name = await shown();
  const head = await moveMain(name, 'a: 1\n');
  at.forge.mergeable = 'unknown';
  for (let turn = 0; turn < 2; turn += 1) {
    expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 5000 });
    at.clock.advance(30_000);
  }
  await at.reconcile(name);
  expect(at.revision(name).tip.parents).toContain(head);
});

test('a merge that the host of Sluice computes for a minute counts as a conflict there too', async () => {
  await at.policy({ publishOn: 'review' });
  const name = await shown();
  protectMain(at.world.store.repository('apps'));
  hostRepository(at.forge, at.path);
  const head = await moveMain(name, 'a: 1\n');
  at.forge.before = (method) => {
    const [main, proposed] = ['main', 'proposed/app/w1'].map((branch) => headOf(at.path, branch) ?? '');
    if (method !== 'merge') return;
    const isBehind = git(at.path, ['merge-base', main ?? '', proposed ?? '']) !== main;
    at.forge.outcome = isBehind ? { state: 'refused', obstacle: 'unknown', message: 'try again later' } : undefined;
  };
  const { commit } = at.revision(name);
  await at.review(1, 'bob', 'approved', commit);
  for (let second = 0; second < 55; second += 5) {
    await at.reconcile(name);
    expect(at.revision(name).commit).toBe(commit);
    at.clock.advance(5000);
  }
  at.clock.advance(60_000);
  for (let turn = 0; turn < 3; turn += 1) await at.reconcile(name);
  const rebuilt = at.forge.pulls[0]?.head.commit ?? '';
  expect(git(at.path, ['log', '-1', '--format=%P', rebuilt]).split(' ')).toEqual([commit, head]);
  await at.world.store.repository('apps').sync();
  await at.reconcile(name);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});

test('a false report that it can be merged is read once more a minute later, and no more often', async () => {
  await at.policy({ publishOn: 'merge' });
  const name = await shown();
  const head = await moveMain(name, 'a: 1\n');
  at.forge.mergeable = 'mergeable';
  const { commit } = at.revision(name);
  expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 60_000 });
  at.forge.mergeable = 'behind';
  at.clock.advance(30_000);
  expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 30_000 });
  expect(at.revision(name).commit).toBe(commit);
  at.clock.advance(30_000);
  await at.reconcile(name);
  expect(at.revision(name).tip.parents).toEqual([commit, head]);
  const reads = () => at.forge.calls.filter((call) => call === 'mergeability').length;
  expect(reads()).toBe(2);
  await moveMain(name, 'a: 2\n');
  at.forge.mergeable = 'mergeable';
  await at.reconcile(name);
  at.clock.advance(60_000);
  await at.reconcile(name);
  at.clock.advance(60_000);
  await at.reconcile(name);
  expect(reads()).toBe(4);
});

test('a false conflict costs one commit: the package, its reviews and its publication stay', async () => {
  await at.policy({ publishOn: 'merge' });
  const name = await shown();
  at.forge.mergeable = 'conflict';
  // Up to date.
  const { commit, tip } = at.revision(name);
  await at.reconcile(name);
  expect(at.revision(name).commit).toBe(commit);
  await moveMain(name, 'a: 1\n');
  for (let turn = 0; turn < 4; turn += 1) {
    await at.reconcile(name);
    at.clock.advance(30_000);
  }
  const rebuilt = at.revision(name);
  expect(rebuilt.tip.parents[0]).toBe(commit);
  expect(rebuilt.tip.tree).toBe(tip.tree);
  at.serveBranches();
  await at.mergeAs(1, 'bob');
  await at.reconcile('apps');
  await at.reconcile(name);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  expect(at.forge.pulls).toHaveLength(1);
});

test('each of the facts alone keeps the branch as it is', () => {
  const needed = { isReady: true, isQueued: false, isOpen: true, isUpToDate: false } as const;
  expect(decideRebuild(needed)).toBe('ask');
  for (const mergeability of ['conflict', 'behind'] as const)
    expect(decideRebuild({ ...needed, mergeability })).toBe('rebuild');
  for (const mergeability of ['mergeable', 'blocked', 'draft', 'queued', 'unknown'] as const)
    expect(decideRebuild({ ...needed, mergeability })).toBe('leave');
  const against: readonly Partial<RebuildFacts>[] = [
    ...[{ isReady: false }, { isQueued: true }, { isOpen: false }, { isUpToDate: true }],
  ];
  for (const fact of against) expect(decideRebuild({ ...needed, ...fact, mergeability: 'behind' })).toBe('leave');
});
