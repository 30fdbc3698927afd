import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { APP, GitHubServer } from '../../../test/support/github/github-server.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import { GitHubForge } from './github-forge.ts';

const NO_SIGNAL = new AbortController().signal;
const server = new GitHubServer();
let repositories = 0;
const forges: GitHubForge[] = [];

beforeAll(() => server.listen());
afterEach(() => {
  server.fault = () => undefined;
});
afterAll(async () => {
  for (const forge of forges) await forge.close();
  await server.close();
  expect(server.problems).toEqual([]);
});

function connect(name: string, mayMerge = true): GitHubForge {
  const app = { id: APP.id, privateKey: server.privateKey };
  const forge = new GitHubForge({
    ...{ api: server.api, owner: 'acme', name, network: DEFAULT_NETWORK, mayMerge },
    ...{ credentials: async () => ({ app }), tokenName: 'Secret default/github' },
  });
  forges.push(forge);
  return forge;
}

async function open() {
  repositories += 1;
  const name = `merging-${repositories}`;
  const repository = server.createRepository('acme', name, ['acme']);
  const forge = connect(name);
  const head = repository.commit('sluice/delivery/edge');
  const wanted = { head: 'sluice/delivery/edge', base: 'main', title: 'Deliver shop', body: '' };
  const { number } = await forge.open(wanted, NO_SIGNAL);
  const merge = (headCommit = head, method: 'merge' | 'squash' = 'merge') =>
    forge.merge(number, { headCommit, method, title: 'Deliver shop', message: 'text' }, NO_SIGNAL);
  return { name, repository, forge, head, number, merge };
}

test('where the branch has a merge queue the pull request is put there once, with its head', async () => {
  const { repository, forge, head, number, merge } = await open();
  repository.protections.set('main', { hasQueue: true });
  expect(await forge.mergeability(number, NO_SIGNAL)).toBe('mergeable');
  expect((await forge.state(number, NO_SIGNAL)).isQueued).toBe(false);
  expect(await merge()).toEqual({ state: 'queued' });
  expect([...repository.queue]).toEqual([number]);
  expect((await forge.state(number, NO_SIGNAL)).isQueued).toBe(true);
  expect(await forge.mergeability(number, NO_SIGNAL)).toBe('queued');
  expect(await merge()).toEqual({ state: 'queued' });
  await expect(merge('f'.repeat(40))).rejects.toMatchObject({ code: 'Conflict' });
  // The queue merges it.
  const [pull] = repository.pulls;
  const commit = pull && repository.merge(pull, head, 'github-merge-queue[bot]', { method: 'squash' });
  expect(await merge()).toEqual({ state: 'merged', commit });
});

test('a pull request leaves the merge queue if this account has put it there', async () => {
  const { repository, forge, number, merge } = await open();
  repository.protections.set('main', { hasQueue: true });
  expect(await forge.dequeue(number, NO_SIGNAL)).toBe('absent');
  expect(await forge.dequeue(999, NO_SIGNAL)).toBe('absent');
  expect(await merge()).toEqual({ state: 'queued' });
  repository.queuedBy.set(number, 'anna');
  expect(await forge.dequeue(number, NO_SIGNAL)).toBe('other');
  expect([...repository.queue]).toEqual([number]);
  repository.queuedBy.clear();
  expect(await forge.dequeue(number, NO_SIGNAL)).toBe('removed');
  expect([...repository.queue]).toEqual([]);
  expect(await forge.dequeue(number, NO_SIGNAL)).toBe('absent');
  expect(await merge()).toEqual({ state: 'queued' });
});

test('a head that moves on the way to the queue is not put there', async () => {
  const { repository, merge } = await open();
  repository.protections.set('main', { hasQueue: true });
  server.fault = ({ url }) => {
    if (url.endsWith('/graphql')) repository.commit('sluice/delivery/edge');
    return undefined;
  };
  // The server sees the push with the next request of its REST API.
  const first = await merge().catch((error: unknown) => error);
  repository.queue.clear();
  server.fault = () => undefined;
  await expect(merge()).rejects.toMatchObject({ code: 'Conflict' });
  expect(first).toBeDefined();
  expect(repository.queue.size).toBe(0);
});

test('a pull request that the queue does not accept is blocked, with the reason of GitHub', async () => {
  const { repository, merge } = await open();
  repository.protections.set('main', { hasQueue: true, check: 'sluice/ready' });
  expect(await merge()).toEqual({
    ...{
      state: 'refused',
      obstacle: 'blocked',
      message: expect.stringContaining('cannot be added to the merge queue'),
    },
  });
});

test('as long as GitHub has not found out, nothing is a conflict', async () => {
  const { repository, forge, number, merge } = await open();
  repository.isComputing = true;
  expect(await forge.mergeability(number, NO_SIGNAL)).toBe('unknown');
  expect(await merge()).toMatchObject({ state: 'refused', obstacle: 'unknown' });
  repository.isComputing = false;
  expect(await forge.mergeability(number, NO_SIGNAL)).toBe('mergeable');
  expect(await merge()).toMatchObject({ state: 'merged' });
});

test('a method that the repository does not permit, and a base that moved, are told apart', async () => {
  const { repository, forge, number, merge } = await open();
  repository.methods = ['squash'];
  expect(await merge()).toMatchObject({ state: 'refused', obstacle: 'method' });
  const body = JSON.stringify({ message: 'Base branch was modified. Review and try the merge again.' });
  server.fault = ({ method }) => (method === 'PUT' ? { status: 405, body } : undefined);
  expect(await merge()).toMatchObject({ state: 'refused', obstacle: 'unknown' });
  expect((await forge.get(number, NO_SIGNAL)).state).toBe('open');
});

test('what classic protection requires is left out of the rules, and is found by the merge', async () => {
  const { repository, forge, head, number, merge } = await open();
  const rules = { check: 'sluice/ready', isStrict: true };
  repository.protections.set('main', { ...rules, isClassic: true });
  expect(await forge.branchRules('main', NO_SIGNAL)).toEqual({});
  expect(await merge()).toMatchObject({
    state: 'refused',
    obstacle: 'blocked',
    message: expect.stringContaining('sluice/ready'),
  });
  const moved = repository.commit('main');
  expect(await forge.mergeability(number, NO_SIGNAL)).toBe('behind');
  expect(await merge()).toMatchObject({ state: 'refused', obstacle: 'behind' });
  repository.protections.set('main', rules);
  expect(await forge.branchRules('main', NO_SIGNAL)).toEqual({ requiresUpToDate: true });
  repository.protections.set('main', { check: 'sluice/ready', isClassic: true });
  await forge.setChecks(head, [{ name: 'sluice/ready', state: 'success', title: 'ready' }], NO_SIGNAL);
  expect(await merge()).toMatchObject({ state: 'merged' });
  expect(repository.head('main')).not.toBe(moved);
});

test('rules can permit fewer methods than the repository, and GitHub states them only to users who may push', async () => {
  const { repository, forge, merge } = await open();
  repository.protections.set('main', { methods: ['squash', 'rebase'] });
  repository.methods = ['merge', 'squash'];
  expect(await forge.mergeMethods('main', NO_SIGNAL)).toEqual(['squash']);
  expect(await merge()).toMatchObject({ state: 'refused', obstacle: 'method' });
  repository.statesMethods = false;
  expect(await forge.mergeMethods('main', NO_SIGNAL)).toBeUndefined();
});

test('a merge that is refused although GitHub states that it is possible is tried again', async () => {
  const { forge, number, merge } = await open();
  const body = JSON.stringify({ message: 'Pull Request is not mergeable' });
  server.fault = ({ method }) => (method === 'PUT' ? { status: 405, body } : undefined);
  expect(await forge.mergeability(number, NO_SIGNAL)).toBe('mergeable');
  expect(await merge()).toMatchObject({ state: 'refused', obstacle: 'unknown' });
  server.fault = () => undefined;
  expect(await merge()).toMatchObject({ state: 'merged' });
});

test('a merge whose response was lost is found by the next call', async () => {
  const { repository, forge, number, merge } = await open();
  for (const fault of [{ status: 502, afterEffect: true }, 'cut'] as const) {
    server.fault = ({ method }) => (method === 'PUT' ? fault : undefined);
    await expect(merge()).rejects.toMatchObject({ code: 'Unavailable' });
  }
  server.fault = () => undefined;
  const commit = repository.head('main');
  expect(await merge()).toEqual({ state: 'merged', commit });
  expect((await forge.get(number, NO_SIGNAL)).merged?.commit).toBe(commit);
});

test('an App has no right to write content unless it merges', async () => {
  const { name, number, head } = await open();
  const wanted = { headCommit: head, method: 'merge', title: 'x', message: 'y' } as const;
  await expect(connect(name, false).merge(number, wanted, NO_SIGNAL)).rejects.toMatchObject({ code: 'Refused' });
});

test('the user who merged is sure for a commit that GitHub made, not for the head that a push brought to the branch', async () => {
  const { repository, forge, head, number, merge } = await open();
  expect(await merge()).toMatchObject({ state: 'merged' });
  const state = async () => forge.mergedState(await forge.get(number, NO_SIGNAL), NO_SIGNAL);
  expect((await state()).unsureMerger).toBeUndefined();
  const [pull] = repository.pulls;
  if (pull?.merged !== undefined) pull.merged = { ...pull.merged, commit: head };
  expect((await state()).unsureMerger).toContain('by a push, or by the merge of another pull request');
});
