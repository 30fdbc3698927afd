import { expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { writeRef } from '../../../test/support/git/write-objects.ts';
import { eachProposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();

test('a shared pull request that a user opens again after its packages were rejected through the API stays open, also for a new process', async () => {
  const at = open();
  at.serveBranches();
  await at.policy({ batch: {} });
  const names = await at.proposeAll('api', 'web');
  await at.settle();
  const { branch, commit } = (await at.forge.get(1)).head;
  for (const name of names) await at.world.store.update(name, { action: 'reject' }, ANNA);
  await at.settle(60_000);
  expect(at.forge.pulls).toMatchObject([{ state: 'closed' }]);
  writeRef(at.path, `refs/heads/${branch}`, commit);
  await at.sync();
  at.forge.change(1, { state: 'open' });
  const { body } = await at.forge.get(1);
  for (const restarts of [false, true]) {
    if (restarts) at.restart();
    for (let turn = 0; turn < 3; turn += 1) {
      await at.reconcile('apps:batches');
      await at.settle(300_000);
    }
    expect(at.forge.pulls).toMatchObject([{ state: 'open', body }]);
  }
  for (const name of names) expect(at.revision(name).lifecycle).toBe('Draft');
});
