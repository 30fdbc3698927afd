import { beforeEach, expect, test } from 'vitest';
import { eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';

const FORGED = '<!-- sluice:begin proposal=0123456789abcdef -->';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

/** The host merges the head of the proposal as a squash, and the repository is read. Returns the commit. */
async function merge(name: string): Promise<string> {
  const { files } = await at.world.store.content(name);
  const squashed = Object.fromEntries([...files].map(([file, data]) => [`app/${file}`, data.toString('utf8')]));
  const commit = await at.world.push(at.path, squashed);
  const { branch } = at.forge.pulls[0]?.head ?? { branch: '' };
  const head = { branch, commit: at.revision(name).commit, isSameRepository: true };
  at.forge.change(1, { state: 'merged', head, merged: { commit, by: 'bob' } });
  await at.world.store.repository('apps').sync();
  return commit;
}

test.each([
  ['removed', '', false],
  ['removed', '', true],
  ['forged', `${FORGED}\n`, false],
  ['forged', `${FORGED}\n`, true],
])('a merge is not lost although a user has %s the marker in the body (%#)', async (_what, body, isRestarted) => {
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  await at.reconcile(name);
  at.forge.change(1, { body });
  const commit = await merge(name);
  if (isRestarted) at.restart();
  else await at.reconcile('apps');
  await at.reconcile(name);
  expect(at.forge.pulls).toHaveLength(1);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
});

test('reviews of several users make a quorum, and none is recorded before', async () => {
  await at.policy({}, { approval: { quorum: { required: 2 } } });
  const name = await at.propose();
  await at.reconcile(name);
  await at.review(1, 'bob', 'approved', at.revision(name).commit);
  await at.reconcile(name);
  expect(at.revision(name).record?.approvals ?? []).toEqual([]);
  await at.review(1, 'carl', 'approved', at.revision(name).commit);
  for (let turn = 0; turn < 2; turn += 1) await at.reconcile(name);
  expect(at.revision(name).lifecycle).toBe('Published');
});

test('one review does not make the quorum of a policy that lists other users', async () => {
  await at.policy({}, { approval: { quorum: { required: 1, from: ['carl@example.com'] } } });
  const name = await at.propose();
  await at.reconcile(name);
  await at.review(1, 'bob', 'approved', at.revision(name).commit);
  await at.reconcile(name);
  expect(at.revision(name).record?.approvals ?? []).toEqual([]);
  await at.review(1, 'carl', 'approved', at.revision(name).commit);
  for (let turn = 0; turn < 3; turn += 1) await at.reconcile(name);
  expect(at.revision(name).lifecycle).toBe('Published');
});

test('a user who is mapped twice is one user, whatever they approve with', async () => {
  const approvers = [
    { user: 'bob', subject: 'one@example.com' },
    { user: 'Bob', subject: 'two@example.com' },
  ];
  await at.policy({ approvers }, { approval: { quorum: { required: 2 } } });
  const name = await at.propose();
  await at.reconcile(name);
  at.forge.comment(1, 'bob', '/sluice approve');
  await at.review(1, 'bob', 'approved', at.revision(name).commit);
  for (let turn = 0; turn < 4; turn += 1) {
    await at.reconcile('apps');
    await at.reconcile(name);
  }
  expect(at.revision(name).lifecycle).toBe('Proposed');
});
