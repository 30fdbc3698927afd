import { beforeEach, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const CARLA = { actor: { name: 'carla' }, face: 'cli' } as const;

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
  at.serveBranches();
});

/** A proposal that a user merged when a merge did not publish, and that was withdrawn and proposed again since. */
async function proposedAgain(): Promise<string> {
  await at.policy({ publishOn: 'approval' });
  const name = await at.propose();
  await at.settle(60_000);
  await at.mergeAs(1, 'bob');
  await at.settle(60_000);
  await at.world.store.update(name, { action: 'reject' }, CARLA);
  await at.settle(60_000);
  await at.world.store.update(name, { action: 'propose' }, BERTA);
  await at.settle(60_000);
  return name;
}

test('what was merged before and is proposed again has a commit of its own in its pull request', async () => {
  const name = await proposedAgain();
  const { commit, tip, lifecycle } = at.revision(name);
  expect(lifecycle).toBe('Proposed');
  expect(at.forge.pulls.filter(({ state }) => state === 'open')).toMatchObject([{ head: { commit } }]);
  expect(git(at.path, ['rev-list', '--count', `main..${commit}`])).toBe('1');
  expect(git(at.path, ['rev-parse', 'main:app'])).toBe(tip.tree);
});

test('an approval publishes it', async () => {
  const name = await proposedAgain();
  await at.world.store.update(name, { action: 'approve' }, CARLA);
  await at.settle(60_000);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
});
