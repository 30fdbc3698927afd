import { beforeEach, expect, test } from 'vitest';
import { BERTA, eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});
for (const way of ['closed', 'rejected'] as const)
  test(`the pull request before has a link to the next one, without a restart, if it was ${way}`, async () => {
    await at.policy();
    const name = await at.propose();
    await at.reconcile(name);
    const poll = async () => {
      for (let turn = 0; turn < 4; turn += 1) {
        at.clock.advance(10_000);
        await at.reconcile('apps');
        await at.reconcile(name);
      }
    };
    await poll();
    if (way === 'rejected') {
      await at.world.store.update(name, { action: 'reject' }, BERTA);
      await at.reconcile(name);
    }
    at.forge.change(1, { state: 'closed' });
    // Of the rejected one, the user proposes the draft again before the next poll.
    if (way === 'closed') await poll();
    expect(at.revision(name).lifecycle).toBe('Draft');
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    await poll();
    expect(at.forge.pulls).toHaveLength(2);
    expect(
      at.forge.commentsOf
        .get(1)
        ?.map(({ body }) => body)
        .join(),
    ).toContain(`The proposal continues in ${at.forge.pulls[1]?.url}`);
  });
