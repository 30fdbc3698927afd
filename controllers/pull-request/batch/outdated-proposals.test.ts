import { beforeEach, describe, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('proposals that another process has published', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });

  const refs = (...prefixes: string[]) =>
    git(at.path, ['for-each-ref', '--format=%(refname)', ...prefixes])
      .split('\n')
      .filter((ref) => ref !== '');
  const remove = (names: readonly string[]) => {
    for (const ref of names) git(at.path, ['update-ref', '-d', ref]);
  };
  const opened = () => at.forge.calls.filter((call) => call === 'open').length;

  test.each([false, true])('get no shared pull request; read while their records were removed: %s', async (isTorn) => {
    await at.policy({ publishOn: 'merge', batch: {} });
    const names = await at.proposeAll('api', 'web');
    for (const name of names) await at.reconcile(name);
    if (isTorn) {
      remove(refs('refs/sluice/records/'));
      await at.world.store.repository('apps').refresh();
      for (const name of names) await at.reconcile(name);
    }
    for (const name of ['api', 'web']) git(at.path, ['update-ref', `refs/tags/${name}/v1`, `proposed/${name}/w1`]);
    remove(refs('refs/sluice/records/', 'refs/heads/proposed/'));
    at.clock.advance(10_000);
    await at.reconcile('apps:batches');
    expect(opened()).toBe(0);
    await at.settle(60_000);
    expect(opened()).toBe(0);
    expect(refs('refs/heads/sluice')).toEqual([]);
  });

  test('are opened with the present proposals, where only their records were missing when they were read', async () => {
    await at.policy({ publishOn: 'merge', batch: {} });
    const names = await at.proposeAll('api', 'web');
    const records = refs('refs/sluice/records/').map((ref) => [ref, git(at.path, ['rev-parse', ref]).trim()] as const);
    remove(records.map(([ref]) => ref));
    await at.world.store.repository('apps').refresh();
    for (const name of names) await at.reconcile(name);
    for (const [ref, oid] of records) git(at.path, ['update-ref', ref, oid]);
    at.clock.advance(10_000);
    await at.reconcile('apps:batches');
    expect(opened()).toBe(0);
    await at.settle(60_000);
    expect(opened()).toBe(1);
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
  });
});
