import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { DEFAULT_POLICY } from '../../../src/package/model/policy/policy.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { readingsOf } from './testing-batches.ts';

describe('what is left of shared pull requests', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });
  const { branches, lifecycles } = readingsOf(() => at);

  test('without spec.review the pull request says so, stays open, and continues when there is one again', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    const key = { namespace: 'default', name: 'review' };
    const { spec } = await at.world.client.get(packagePolicyKind, key);
    const set = async (review: object | null) => {
      await at.world.client.patch(packagePolicyKind, key, { spec: { review } });
      await expect
        .poll(() => at.world.policyFor(at.revision(names[0] ?? '')).review === undefined)
        .toBe(review === null);
      await at.settle();
    };
    await set(null);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    expect(at.forge.pulls[0]?.body).toContain('No policy has the packages of this pull request reviewed here any more');
    expect(lifecycles(names)).toEqual(['Proposed', 'Proposed']);
    await set({ ...spec.review });
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    expect(at.forge.pulls[0]?.body).not.toContain('No policy');
    for (const name of names) expect(at.forge.pulls[0]?.body).toContain(`### \`${name}\``);
  });

  test('where the text cannot be written that there is no spec.review any more, left branches are removed all the same', async () => {
    await at.policy({ batch: {} });
    const [name = ''] = await at.proposeAll('api');
    await at.settle();
    const { branch, commit } = (await at.forge.get(1)).head;
    const left = `${branch.slice(0, -1)}x0`;
    git(at.path, ['update-ref', `refs/heads/${left}`, commit]);
    await at.world.store.repository('apps').sync();
    await at.world.client.patch(
      packagePolicyKind,
      { namespace: 'default', name: 'review' },
      { spec: { review: null } },
    );
    await expect.poll(() => at.world.policyFor(at.revision(name)).review).toBeUndefined();
    at.forge.before = (method) => {
      if (method === 'update') throw new SluiceError('Refused', 'the pull request is locked');
    };
    await at.settle(700_000);
    expect(branches()).toBe(branch);
    at.forge.before = () => undefined;
    await at.settle(60_000);
    expect(at.forge.pulls[0]?.body).toContain('No policy has the packages of this pull request reviewed here any more');
  });

  test('the policies are read again before a pull request says that none has its packages reviewed', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api');
    await at.settle();
    const repository = at.world.store.repository('apps');
    const policyFor = repository.policyFor.bind(repository);
    let isCurrent = true;
    repository.policyFor = (subject) => (isCurrent ? policyFor(subject) : DEFAULT_POLICY);
    repository.refreshPolicies = async () => {
      isCurrent = true;
    };
    at.restart();
    await at.reconcile('apps:batches');
    isCurrent = false;
    at.clock.advance(2000);
    await at.reconcile('apps:batches');
    expect(at.forge.pulls[0]?.body).not.toContain('No policy');
  });

  test('a branch for which another process has just opened a pull request, or will do so, stays', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api');
    await at.settle();
    const { branch, commit } = (await at.forge.get(1)).head;
    const [opened, pushed] = ['0', '1'].map((end) => `${branch.slice(0, -1)}x${end}`);
    for (const one of [opened, pushed]) git(at.path, ['update-ref', `refs/heads/${one}`, commit]);
    await at.world.store.repository('apps').sync();
    await at.forge.open({ head: opened ?? '', base: 'main', title: '', body: '' });
    at.clock.advance(2000);
    await at.reconcile('apps:batches');
    expect(branches().split('\n')).toEqual([branch, opened, pushed].sort());
    at.clock.advance(600_000);
    await at.reconcile('apps:batches');
    expect(branches().split('\n')).toEqual([branch, opened].sort());
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }, { state: 'open' }]);
  });
});
