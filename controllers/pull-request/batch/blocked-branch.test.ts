import { beforeEach, expect, test } from 'vitest';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { writeRef } from '../../../test/support/git/write-objects.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

test.each(['refs/heads/sluice', 'refs/heads/sluice/batch'])(
  'a branch %s of a user is reported, and the shared pull request is opened once it is gone',
  async (ref) => {
    at.serveBranches();
    await at.policy({ batch: {} });
    writeRef(at.path, ref, readRef(at.path, 'refs/heads/main') ?? '');
    await at.world.store.repository('apps').refresh();
    const names = await at.proposeAll('a', 'b');
    await at.settle(120_000);
    expect(at.forge.pulls).toEqual([]);
    for (const name of names) {
      const blocked = expect.stringMatching(
        `refs/heads/sluice/batch/\\S+ cannot exist beside ${ref}: .* remove ${ref} first`,
      );
      expect(await at.world.events(name)).toEqual([expect.stringMatching(/^PullRequestFailed: /)]);
      const [note, ...others] = at.world.store.repository('apps').refusals.of(name);
      expect([note?.message, others]).toEqual([blocked, []]);
    }

    git(at.path, ['update-ref', '-d', ref]);
    await at.settle(120_000);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    for (const name of names) expect(at.world.store.repository('apps').refusals.of(name)).toEqual([]);
  },
);
