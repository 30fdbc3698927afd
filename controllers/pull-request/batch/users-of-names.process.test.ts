import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('a pull request of a user from a branch with the name of a shared one is left alone', () => {
  const open = eachProposals();
  let at: Proposals;
  let names: string[];
  let branch: string;
  let head: string;
  beforeEach(async () => {
    at = open();
    at.serveBranches();
    await at.policy({ publishOn: 'merge', batch: {} });
    names = await at.proposeAll('web', 'db');
    await at.settle(60_000);
    ({ branch, commit: head } = (await at.forge.get(1)).head);
  });

  /** Pushes a commit of a user to a branch that begins at another one. */
  async function push(to: string, from: string): Promise<string> {
    git(at.path, ['update-ref', `refs/heads/${to}`, from]);
    const commit = await at.world.push(at.path, { 'zoo/a.yaml': 'a: 1\n' }, to);
    await at.world.store.repository('apps').sync();
    return commit;
  }

  async function expectLeft(number: number, commit: string): Promise<void> {
    await at.settle(120_000);
    expect(await at.forge.get(number)).toMatchObject({ state: 'open', head: { commit } });
    expect(readRef(at.path, `refs/heads/${(await at.forge.get(number)).head.branch}`)).toBe(commit);
  }

  test.each([false, true])('which was opened again after the publication; restart: %s', async (restarts) => {
    for (const name of names) await at.world.store.update(name, { action: 'approve' }, ANNA);
    await at.settle(60_000);
    await at.proposeAll('api');
    await at.settle(60_000);
    expect(at.forge.pulls).toMatchObject([{ state: 'closed' }, { state: 'open' }]);
    const commit = await push(branch, head);
    at.forge.change(1, { state: 'open', head: { branch, commit, isSameRepository: true } });
    if (restarts) at.restart();
    await expectLeft(1, commit);
  });

  test('which is another one', async () => {
    const mine = `${branch}x`;
    const commit = await push(mine, 'refs/heads/main');
    const { number } = await at.forge.open({ head: mine, base: 'main', title: 'mine', body: '' });
    at.forge.change(number, { head: { branch: mine, commit, isSameRepository: true } });
    await expectLeft(number, commit);
  });
});
