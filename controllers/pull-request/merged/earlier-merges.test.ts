import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { mergeOnHost } from '../../../test/support/git/merge-on-host.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('merges of one package', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(async () => {
    at = open();
    await at.world.publish((await at.world.draft('apps/app/w0')).name);
    await at.policy({ publishOn: 'merge' });
  });

  const fileOf = (number: number) => `kind: A\napiVersion: v1\nmetadata: {name: a${number}}\n`;

  /** Proposes another workspace of the published package, with these files and more. Returns the name of the revision. */
  async function propose(workspace: string, count: number): Promise<string> {
    const source = { type: 'copy', source: 'apps.app.w0' } as const;
    const { name } = await at.world.store.create('apps', { package: 'app', workspace, source }, ANNA);
    const numbers = Array.from({ length: count }, (_, index) => index + 1);
    const files = new Map(numbers.map((number) => [`${number}.yaml`, Buffer.from(fileOf(number))]));
    await at.world.store.change(name, { files }, ANNA);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    await at.reconcile(name);
    return name;
  }

  /** Each has what the ones before have; the first one has the pull request 1. */
  async function proposeEach(count: number): Promise<string[]> {
    const names: string[] = [];
    for (let number = 1; number <= count; number += 1) names.push(await propose(`w${number}`, number));
    return names;
  }

  /** A user has merged a branch that changes the package, which is not published for two minutes. */
  async function mergeOfUser(head = { branch: 'fix', isSameRepository: true }): Promise<void> {
    const commit = await at.world.push(at.path, { 'app/1.yaml': fileOf(1) });
    await at.forge.open({ head: head.branch, base: 'main', title: '', body: '' });
    at.forge.change(1, { state: 'merged', head: { ...head, commit }, merged: { commit, by: 'bob' } });
  }

  const numbers = (names: readonly string[]) => names.map((name) => at.revision(name).revision);

  test.each([[[2, 1, 0]], [[1, 2, 0]], [[2, 0, 1]]])(
    'are published in the order of the main branch if they are read as %j',
    async (order) => {
      const names = await proposeEach(3);
      for (const [index, name] of names.entries()) await at.mergeHead(name, 'bob', 'squash', index + 1);
      await at.world.store.repository('apps').sync();
      at.restart();
      for (const one of order) await at.reconcile(names[one] ?? '');
      await at.settle(300_000);
      expect(numbers(names)).toEqual([2, 3, 4]);
    },
  );

  test.each([
    ['changes it', false],
    ['changes another folder', true],
  ])('wait for one of a user that is not published for minutes alone; its last commit %s', async (_, isRebase) => {
    const changed = await at.world.push(at.path, { 'app/1.yaml': fileOf(1) });
    const commit = isRebase ? await at.world.push(at.path, { 'docs/a.md': 'a' }) : changed;
    const head = { branch: 'fix', commit, isSameRepository: true };
    await at.forge.open({ head: 'fix', base: 'main', title: '', body: '' });
    at.forge.change(1, { state: 'merged', head, merged: { commit, by: 'bob' } });
    const name = await propose('w1', 2);
    await at.mergeHead(name, 'bob', 'squash', 2);
    await at.readMerge(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    await at.settle(300_000);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 2, outOfBand: undefined });
  });

  test.each(['fix', 'proposed/app/w1'])('wait for one of a fork, whatever its branch is called: %s', async (branch) => {
    await mergeOfUser({ branch, isSameRepository: false });
    const name = await propose('w1', 2);
    await at.mergeHead(name, 'bob', 'squash', 2);
    await at.readMerge(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
  });

  test('are published after an earlier one although another pull request of their branch is open', async () => {
    await mergeOfUser();
    const name = await propose('w1', 2);
    const commit = await at.mergeHead(name, 'bob', 'squash', 2);
    await at.readMerge(name);
    expect(at.world.store.repository('apps').refusals.of(name)).toMatchObject([
      {
        reason: 'MergeWaits',
        message: expect.stringMatching(/pulls\/2 was merged, .* two minutes at most: \S+pulls\/1$/),
      },
    ]);
    await at.forge.open({ head: 'proposed/app/w1', base: 'main', title: 'more', body: '' });
    await at.sync();
    await at.settle(300_000);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 2, commit });
  });

  test.each([1, 180, 1500])('wait for an earlier one that arrives with them after %i seconds', async (seconds) => {
    const names = await proposeEach(2);
    const host = `${at.path}-host`;
    git(at.path, ['clone', '-q', '--mirror', at.path, host]);
    for (const [index, name] of names.entries()) await at.mergeHead(name, 'bob', 'squash', index + 1, host);
    await at.settle(seconds * 1000);
    expect(names.map((name) => at.revision(name).lifecycle)).toEqual(['Proposed', 'Proposed']);
    git(at.path, ['fetch', '-q', host, '+refs/heads/main:refs/heads/main']);
    await at.sync();
    for (const name of [...names].reverse()) await at.reconcile(name);
    await at.settle(300_000);
    expect(numbers(names)).toEqual([2, 3]);
  });

  test('of which the host shows an earlier one too late: it gets no number, and is reported', async () => {
    const [first = '', second = ''] = await proposeEach(2);
    const { commit } = mergeOnHost(at.path, at.revision(first).commit, 'squash', 1);
    await at.mergeHead(second, 'bob', 'squash', 2);
    await at.readMerge(second);
    expect(numbers([first, second])).toEqual([0, 2]);
    at.forge.change(1, { state: 'merged', merged: { commit, by: 'bob' } });
    await at.settle(60_000);
    expect(at.revision(first).lifecycle).toBe('Proposed');
    expect(await at.world.events(first)).toContainEqual(
      expect.stringMatching(
        /^MergeNotPublished: .*apps.app.w2 was published at a later commit of the main branch, as v2/,
      ),
    );
  });
});
