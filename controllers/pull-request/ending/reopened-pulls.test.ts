import { beforeEach, describe, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('a closed pull request that is opened again', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  /** Closed by a user, and its branch restored on the host as it was. */
  async function restored(): Promise<string> {
    const name = await at.propose();
    await at.reconcile(name);
    const { commit } = at.revision(name);
    at.forge.review(1, 'bob', 'approved', commit);
    // The clock of the host is ahead of the one of the test.
    at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
    at.forge.change(1, { state: 'closed' });
    at.restart();
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Draft');
    await at.reconcile(name);
    git(at.path, ['update-ref', 'refs/heads/proposed/app/w1', commit]);
    await at.world.store.repository('apps').sync();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Proposed', commit });
    return name;
  }

  test('is proposed again in the same pull request, and earlier approvals do not count', async () => {
    await at.policy();
    const name = await restored();
    for (let turn = 0; turn < 2; turn += 1) {
      // Its end is applied once.
      at.restart();
      await at.reconcile(name);
      expect(at.revision(name).lifecycle).toBe('Proposed');
      expect(forgePulls()).toEqual(['closed']);
    }
    expect((await at.world.events(name)).at(-1)).toMatch(/^PullRequestClosed: .*open it again on the host/);
    at.forge.change(1, { state: 'open' });
    await at.reconcile('apps');
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(forgePulls()).toEqual(['open']);
    const events = await at.world.events(name);
    expect(events).toContainEqual(expect.stringMatching(/^PullRequestReopened: .*\/1 was opened again/));
    expect(events).toContainEqual(expect.stringMatching(/^ReviewNotCounted: .*rejected since; a new review is needed/));
    at.forge.skip(2 * 365 * 86_400);
    await at.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  test('is rejected when it is closed again', async () => {
    await at.policy();
    const name = await restored();
    at.restart();
    await at.reconcile(name);
    at.forge.change(1, { state: 'open' });
    await at.reconcile('apps');
    await at.reconcile(name);
    expect(forgePulls()).toEqual(['open']);
    expect(at.revision(name).record?.steps.at(-1)).toMatchObject({ action: 'propose', by: 'berta' });
    expect(branches()).toEqual(['proposed/app/w1']);
    at.forge.skip(60);
    at.forge.change(1, { state: 'closed' });
    await at.reconcile('apps');
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Draft');
    expect(branches()).toEqual(['drafts/app/w1']);
  });

  test('can be rejected through Sluice, unless its draft has changed', async () => {
    await at.policy();
    const name = await restored();
    await at.world.store.update(name, { action: 'reject' }, BERTA);
    expect(at.revision(name).lifecycle).toBe('Draft');
    expect(branches()).toEqual(['drafts/app/w1']);
    const { commit } = at.revision(name);
    git(at.path, ['update-ref', 'refs/heads/proposed/app/w1', commit]);
    git(at.path, ['update-ref', 'refs/heads/drafts/app/w1', 'refs/heads/main']);
    await at.world.store.repository('apps').sync();
    await expect(at.world.store.update(name, { action: 'reject' }, BERTA)).rejects.toThrow(
      /drafts\/app\/w1, which is there with another commit, .*; remove refs\/heads\/proposed\/app\/w1 to keep/,
    );
  });

  const branches = () =>
    git(at.path, ['for-each-ref', '--format=%(refname:lstrip=2)', 'refs/heads/drafts', 'refs/heads/proposed'])
      .trim()
      .split('\n');
  const forgePulls = () => at.forge.pulls.map(({ state }) => state);
});
