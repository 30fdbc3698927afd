import { afterAll, beforeAll, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { GitHubServer } from '../../../test/support/github/github-server.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import { GitHubForge } from './github-forge.ts';

const NO_SIGNAL = new AbortController().signal;
const server = new GitHubServer();
beforeAll(() => server.listen());
afterAll(async () => {
  await server.close();
  expect(server.problems).toEqual([]);
});

test('finds what a merge queue waits for, and the folders of its commits', async () => {
  const repository = server.createRepository('acme', 'queued', ['anna']);
  const token = server.createToken('anna');
  const forge = new GitHubForge({
    ...{ api: server.api, owner: 'acme', name: 'queued', network: DEFAULT_NETWORK },
    ...{ credentials: async () => ({ token }), tokenName: 'Secret default/github' },
  });
  try {
    expect(await forge.mergeQueue.waiting('main', NO_SIGNAL)).toEqual([]);
    const head = repository.commit('proposed/shop/v1');
    const { number } = await forge.open({ head: 'proposed/shop/v1', base: 'main', title: 't', body: '' }, NO_SIGNAL);
    const pull = repository.pulls.find((one) => one.number === number);
    if (pull === undefined) throw new Error('it was not opened');
    const commit = repository.enqueue(pull);
    repository.branch(`gh-readonly-queue/main/next/pr-7-${head}`, head);
    repository.branch('gh-readonly-queue/main/other', head);
    expect(await forge.mergeQueue.waiting('main', NO_SIGNAL)).toEqual([
      { number, commit, branch: expect.stringMatching(`^gh-readonly-queue/main/pr-${number}-[0-9a-f]{40}$`) },
    ]);
    const root = await forge.mergeQueue.treeOf(commit, '', NO_SIGNAL);
    expect(root).toMatch(/^[0-9a-f]{40}$/);
    expect(await forge.mergeQueue.treeOf(head, '', NO_SIGNAL)).toBe(root);
    const inner = git(repository.gitDir, ['mktree'], `040000 tree ${root}\tshop\n`);
    const outer = git(repository.gitDir, ['mktree'], `040000 tree ${inner}\tteam\n`);
    const nested = git(repository.gitDir, ['commit-tree', outer, '-m', 'nested']);
    expect(await forge.mergeQueue.treeOf(nested, 'team/shop', NO_SIGNAL)).toBe(root);
    expect(await forge.mergeQueue.treeOf(nested, 'team', NO_SIGNAL)).toBe(inner);
    expect(await forge.mergeQueue.treeOf(commit, 'no/such/folder', NO_SIGNAL)).toBeUndefined();
  } finally {
    await forge.close();
  }
});
