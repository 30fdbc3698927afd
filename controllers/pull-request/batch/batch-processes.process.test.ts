import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { readingsOf } from './testing-batches.ts';

const CARLA = { actor: { name: 'carla' }, face: 'cli' } as const;

describe('a pull request of several proposals, with several processes', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });
  const { branches, creations, headOf, lifecycles, treeAt } = readingsOf(() => at);

  test('a new process finds the pull request; a user who removed the marker changes nothing', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api', 'web');
    await at.settle();
    at.restart();
    await at.settle();
    expect(at.forge.pulls).toHaveLength(1);
    at.forge.change(1, { body: 'mine' });
    at.restart();
    await at.settle();
    expect(at.forge.pulls).toHaveLength(1);
    expect(at.forge.pulls[0]?.body).toMatch(
      /^mine\n\n<!-- sluice:begin proposal=[0-9a-f]{16},[0-9a-f]{16} prepared -->/,
    );
  });

  test('what ends while no process runs is finished by the next one', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    for (const name of names) await at.world.store.update(name, { action: 'approve' }, CARLA);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    at.restart();
    await at.settle();
    expect(at.forge.pulls).toMatchObject([{ state: 'closed' }]);
    expect(at.forge.pulls[0]?.body).toContain('- `apps.api.w1`: Published, `approve` by `carla`');
    expect(branches()).toBe('');
  });

  test('packages that a process publishes before it has looked at their pull request leave none open', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.review(1, 'bob', 'approved', await headOf(1));
    at.restart();
    for (const name of names) await at.reconcile(name);
    expect(lifecycles(names)).toEqual(['Published', 'Published']);
    for (const name of names) await at.reconcile(name);
    await at.reconcile('apps:batches');
    expect(at.forge.pulls).toMatchObject([{ state: 'closed' }]);
  });

  test('an end of the process before or after any call makes no second pull request, and loses nothing', async () => {
    await at.policy({ batch: {}, labels: ['packages'], publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    for (const when of ['before', 'after'] as const)
      for (const method of ['open', 'setChecks', 'addLabels', 'update', 'reviews', 'get']) {
        at.restart();
        let isLost = false;
        at.forge[when] = (called) => {
          isLost ||= called === method;
          if (isLost) throw new SluiceError('Unavailable', 'the process has ended');
        };
        await at.settle(8000);
        at.forge[when] = () => undefined;
      }
    at.restart();
    await at.settle();
    expect(at.forge.pulls).toHaveLength(1);
    expect(at.forge.pulls[0]?.body.match(/sluice:begin/g)).toHaveLength(1);
    await at.mergeAs(1, 'bob');
    at.restart();
    await at.settle();
    expect(lifecycles(names)).toEqual(['Published', 'Published']);
    expect(branches()).toBe('');
  });

  test('what the repository has is read before a pull request is closed, since another process may have proposed it', async () => {
    await at.policy({ batch: {} });
    const [api = ''] = await at.proposeAll('api');
    await at.settle();
    const ref = 'refs/heads/proposed/api/w1';
    const oid = git(at.path, ['rev-parse', ref]).trim();
    git(at.path, ['update-ref', '-d', ref]);
    await at.world.store.repository('apps').sync();
    git(at.path, ['update-ref', ref, oid]);
    at.clock.advance(60_000);
    await at.reconcile('apps:batches');
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    await at.settle();
    expect(lifecycles([api])).toEqual(['Proposed']);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
  });

  test('a process that has not read a member yet, which another one has added, does not write the pull request without it', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api');
    await at.settle();
    at.clock.advance(600_000);
    const back = at.beside();
    const [web = ''] = await at.proposeAll('web');
    await at.settle();
    expect(at.forge.pulls[0]?.body).toContain(`### \`${web}\``);
    back();
    await at.reconcile('apps');
    // Something of the member that it knows has changed.
    await at.set('apps.api.w1', 'True');
    await at.reconcile('apps.api.w1');
    await at.reconcile('apps:batches');
    expect(at.forge.pulls[0]?.body).toContain(`### \`${web}\``);
    await at.settle();
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    for (const name of ['apps.api.w1', web]) expect(at.forge.pulls[0]?.body).toContain(`### \`${name}\``);
    expect(treeAt(await headOf(1), 'web')).toBe(treeAt('proposed/web/w1', 'web'));
  });

  test('a pull request that another process opened and a user merged meanwhile is not opened a second time', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    // This process has read the pull requests, and waits for further proposals.
    for (const name of names) await at.reconcile(name);
    await at.reconcile('apps:batches');
    const back = at.beside();
    await at.settle();
    const commit = await at.mergeAs(1, 'bob');
    back();
    at.clock.advance(60_000);
    await at.reconcile('apps:batches');
    await at.settle();
    expect(creations()).toBe(1);
    for (const name of names)
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
    expect(branches()).toBe('');
  });
});
