import { beforeEach, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
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
