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

/** A repository with a pull request that is proposed. */
async function open(name: string) {
  const repository = server.createRepository('acme', name, ['anna']);
  const token = server.createToken('anna');
  const forge = new GitHubForge({
    ...{ api: server.api, owner: 'acme', name, network: DEFAULT_NETWORK },
    ...{ credentials: async () => ({ token }), tokenName: 'Secret default/github' },
  });
  const head = repository.commit('proposed/shop/v1');
  const { number } = await forge.open({ head: 'proposed/shop/v1', base: 'main', title: 't', body: '' }, NO_SIGNAL);
  const pull = repository.pulls.find((one) => one.number === number);
  if (pull === undefined) throw new Error('it was not opened');
  const state = () => forge.mergeQueue.waiting('main', NO_SIGNAL);
  return { ...{ repository, forge, head, number, pull }, waiting: async () => (await state()).merges, state };
}

test('finds what a merge queue waits for, and the folders of its commits', async () => {
  const { repository, forge, head, number, pull, waiting } = await open('queued');
  try {
    const before = server.requests.length;
    expect(await waiting()).toEqual([]);
    // Without entries in it the branches are not read.
    expect(server.requests.length - before).toBe(1);
    const commit = repository.enqueue(pull);
    expect(await waiting()).toEqual([
      { number, commit, branch: expect.stringMatching(`^gh-readonly-queue/main/pr-${number}-[0-9a-f]{40}$`) },
    ]);
    expect(await forge.mergeQueue.waiting('other', NO_SIGNAL)).toEqual({ merges: [], isComplete: true });
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

test('an entry for which GitHub has made no commit yet is awaited, also if it is the first one', async () => {
  const { repository, forge, number, pull, state } = await open('first');
  try {
    repository.protections.set('main', { hasQueue: true });
    repository.queue.add(number);
    expect(await state()).toEqual({ merges: [], isComplete: false });
    const commit = repository.enqueue(pull);
    expect(await state()).toMatchObject({ merges: [{ number, commit }], isComplete: true });
  } finally {
    await forge.close();
  }
});

test.each([
  ['refuses to state', { type: 'FORBIDDEN', message: 'Resource not accessible by integration' }],
  ['does not know', { message: 'no such field', extensions: { code: 'undefinedField' } }],
])('a queue that GitHub %s is a failure only where there are branches of one', async (how, failure) => {
  const { repository, forge, pull, state } = await open(`no-${how.length}`);
  const body = JSON.stringify({ data: { repository: { mergeQueue: null } }, errors: [failure] });
  server.fault = ({ url }) => (url.endsWith('/graphql') ? { status: 200, body } : undefined);
  try {
    expect(await state()).toEqual({ merges: [], isComplete: true });
    repository.enqueue(pull);
    await expect(state()).rejects.toThrow(failure.message);
  } finally {
    server.fault = () => undefined;
    await forge.close();
  }
});

test('branches that users push with the names of a merge queue are not in it', async () => {
  const { repository, forge, head, number, pull, waiting, state } = await open('forged');
  try {
    const evil = repository.commit('evil');
    const name = `gh-readonly-queue/main/pr-${number}-${head}`;
    repository.branch(name, evil);
    // The branch has no queue; it has one, which is empty; the pull request is in it, without a commit; and with another commit.
    expect(await waiting()).toEqual([]);
    repository.protections.set('main', { hasQueue: true });
    expect(await state()).toEqual({ merges: [], isComplete: true });
    repository.queue.add(number);
    expect(await state()).toEqual({ merges: [], isComplete: false });
    const commit = repository.enqueue(pull);
    expect(await state()).toMatchObject({ merges: [{ number, commit }], isComplete: true });
    // The queue has replaced its commit since: what can be fetched is the former one.
    repository.queueCommits.set(number, evil);
    repository.deleteBranch(name);
    expect(await state()).toEqual({ merges: [], isComplete: false });
  } finally {
    await forge.close();
  }
});

test('a commit of the queue that is the head of an open pull request is left out, to whichever branch that is', async () => {
  const { repository, forge, number, pull, waiting } = await open('heads');
  try {
    const main = repository.head('main') ?? '';
    repository.branch('release', main);
    const commit = repository.enqueue(pull);
    repository.branch('copy', commit);
    const other = await forge.open({ head: 'copy', base: 'release', title: 't', body: '' }, NO_SIGNAL);
    expect(await waiting()).toEqual([]);
    await forge.update(other.number, { state: 'closed' }, NO_SIGNAL);
    expect(await waiting()).toMatchObject([{ number, commit }]);
    // It may be the head of one that is not listed.
    for (let count = 0; count < 11; count += 1) {
      repository.branch(`copy-${count}`, commit);
      repository.commit(`copy-${count}`);
      await forge.open({ head: `copy-${count}`, base: 'release', title: 't', body: '' }, NO_SIGNAL);
      expect(await waiting()).toHaveLength(count < 10 ? 1 : 0);
    }
  } finally {
    await forge.close();
  }
});
