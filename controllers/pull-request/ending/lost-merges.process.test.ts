import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

const REF = 'refs/heads/proposed/app/w1';

/** Proposes `app`, whose pull request is read. Returns the name of the revision. */
async function propose(review: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Promise<string> {
  await at.policy({ publishOn: 'merge', ...review }, spec);
  at.serveBranches();
  const name = await at.propose();
  await at.reconcile(name);
  return name;
}

/** A user merges it, and removes its branch, before Sluice reads either. */
async function mergeAndRemove(name: string, style?: 'merge' | 'squash' | 'rebase'): Promise<string> {
  const commit = await at.mergeHead(name, 'bob', style);
  git(at.path, ['update-ref', '-d', REF]);
  return commit;
}

/** Reads the repository and the host, as often as needed. */
async function read(name: string): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    at.clock.advance(60_000);
    await at.sync();
    await at.reconcile('apps');
    await at.reconcile(name);
  }
}

const eventsOf = (name: string) => at.world.events(name);

describe('a merge of which the branch is removed before Sluice reads it', () => {
  test.each([
    ['merge', false],
    ['squash', false],
    ['rebase', false],
    ['merge', true],
    ['squash', true],
    ['rebase', true],
  ] as const)('is published: %s, after a restart: %s', async (style, restarts) => {
    const name = await propose();
    const commit = await mergeAndRemove(name, style);
    if (restarts) {
      await at.sync();
      expect(at.world.store.find(name)).toBeUndefined();
      at.restart();
      await at.reconcile('apps');
      // The record that is left shows what to look for.
      expect(at.woken).toContain(name);
    }
    await read(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
    expect(await eventsOf(name)).toContainEqual(expect.stringContaining(`Approved: published at ${commit}`));
    expect(await eventsOf('apps')).toEqual([]);
    expect(readRef(at.path, REF)).toBeUndefined();
    expect(at.forge.pulls[0]?.body).toContain('is Published now');
  });

  test('is out of band with a closed gate', async () => {
    const name = await propose({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    await mergeAndRemove(name);
    await read(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'GateUnmet' } });
  });

  test('is reported where the policy does not let merges publish, with what a merged pull request permits', async () => {
    const name = await propose({ publishOn: 'approval' });
    const { commit } = at.revision(name);
    await mergeAndRemove(name);
    await read(name);
    expect(at.world.store.find(name)).toBeUndefined();
    expect(await eventsOf('apps')).toEqual([
      expect.stringMatching(
        `MergeNotPublished: .* does not let merges publish; .* push .${commit}. to .proposed/app/w1`,
      ),
    ]);
    expect(at.forge.pulls[0]?.body).toContain(`push \`${commit}\` to \`proposed/app/w1\``);
    expect(at.forge.pulls[0]?.body).not.toContain('open it again');
  });

  test('is reported where its record is gone too', async () => {
    const name = await propose();
    git(at.path, ['update-ref', '-d', 'refs/sluice/records/app/w1']);
    await mergeAndRemove(name);
    await read(name);
    expect(await eventsOf('apps')).toEqual([expect.stringMatching('MergeNotPublished: .* its record is gone too')]);
  });

  test('is restored once: a user who removes it again does so on purpose', async () => {
    const name = await propose();
    const commit = await mergeAndRemove(name);
    // The merge does not publish as long as the main branch does not have it.
    git(at.path, ['update-ref', 'refs/heads/main', `${commit}^`]);
    await read(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    git(at.path, ['update-ref', '-d', REF]);
    await read(name);
    expect(at.world.store.find(name)).toBeUndefined();
    expect(await eventsOf('apps')).toEqual([expect.stringMatching('MergeNotPublished: .* was removed again')]);
  });
});

test.each(['open', 'closed'] as const)(
  'a proposal of which the branch is removed without a merge stays deleted: %s',
  async (state) => {
    const name = await propose();
    at.forge.change(1, { state });
    git(at.path, ['update-ref', '-d', REF]);
    await read(name);
    at.restart();
    await read(name);
    expect(at.world.store.find(name)).toBeUndefined();
    expect(await eventsOf('apps')).toEqual([]);
  },
);

test('a merged proposal that a user deletes through Sluice stays deleted', async () => {
  const name = await propose();
  await at.mergeHead(name, 'bob');
  for (const action of ['reject', 'delete'] as const) await at.world.store.update(name, { action }, ANNA);
  await read(name);
  at.restart();
  await read(name);
  expect(at.world.store.find(name)).toBeUndefined();
  expect(await eventsOf('apps')).toEqual([]);
});
