import { beforeEach, describe, expect, test } from 'vitest';
import type { QueuedMerge } from '../../src/forge/merge-queue.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { commitFiles } from '../../test/support/scratch-repository.ts';
import {
  eachUserPulls,
  GATE,
  GATES,
  KPTFILE,
  MAP,
  TESTED,
  type UserPullBench,
} from '../../test/support/user-pull-bench.ts';
import { SyncRequests } from '../repository/sync-requests.ts';

describe('pull requests of users in a merge queue of the host', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  let waiting: QueuedMerge[];
  let reads: number;
  let isComplete: boolean;
  beforeEach(() => {
    at = open();
    waiting = [];
    reads = 0;
    isComplete = true;
    const read = async () => {
      reads += 1;
      return { merges: waiting, isComplete };
    };
    Object.assign(at.forge, { mergeQueue: { waiting: read, treeOf: async () => undefined } });
  });

  /** The host puts a pull request into the queue, with a commit that has these files. Returns the commit. */
  async function queue(number: number, files: Readonly<Record<string, string | null>>): Promise<string> {
    const branch = `gh-readonly-queue/main/pr-${number}-${'a'.repeat(40)}`;
    const repository = await initRepository(at.path);
    const commit = await commitFiles(repository, files, at.clock.now(), { branch, from: 'refs/heads/main' });
    await repository.close();
    waiting.push({ number, commit, branch });
    return commit;
  }
  async function settle(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
  }
  const files = { 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP };

  test('get their checks at the commit that the queue would merge, by its event, and once', async () => {
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    await at.policy();
    const head = await at.pull(files);
    await settle();
    const commit = await queue(1, files);
    at.forge.calls.length = 0;
    requests.addReview({ namespace: 'default', name: 'apps' }, 'merge-queue');
    await at.poll(0);
    expect(at.titles(commit)).toEqual(at.titles(head));
    expect(at.titles(commit)['sluice/ready']).toBe('success: 1 package checked: no errors, no closed gates');
    await settle();
    expect(at.forge.calls.filter((call) => call === 'setChecks')).toHaveLength(1);
    // With nothing in the queue, it is read only once something has changed.
    waiting.length = 0;
    await at.poll();
    reads = 0;
    await settle();
    expect(reads).toBe(0);
  });

  test('get them there too where the host has the commit only after its event', async () => {
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    await at.policy();
    const head = await at.pull(files);
    await settle();
    isComplete = false;
    requests.addReview({ namespace: 'default', name: 'apps' }, 'merge-queue');
    await at.poll(0);
    await settle();
    const commit = await queue(1, files);
    await settle();
    expect(at.titles(commit)).toEqual(at.titles(head));
  });

  test('are judged as the merge has their packages, with the policy of the pull request', async () => {
    await at.policy({ gateChecks: [GATE] });
    const head = await at.pull({ ...files, 'web/Kptfile': KPTFILE(GATES, TESTED) });
    await at.pull({ 'README.md': 'text' }, { branch: 'docs' });
    await settle();
    expect(at.titles(head)['sluice/ready']).toMatch(/^success/);
    // Another pull request before it in the queue has changed the package, and one that is not of it.
    const merged = { ...files, 'web/Kptfile': KPTFILE(GATES), 'db/Kptfile': 'kind: [' };
    const commit = await queue(1, merged);
    const other = await queue(2, { ...merged, 'README.md': 'text' });
    // The host reports the change to pull requests alone.
    for (const number of [1, 2]) at.forge.change(number, {});
    await settle();
    expect(at.titles(commit)).toEqual({
      'sluice/ready': `pending: 1 gate closed: ${GATE} of web`,
      [`sluice/gate/${GATE}`]: 'pending: web: the condition has not been set yet',
    });
    expect(at.titles(other)).toEqual({ 'sluice/ready': 'success: It changes no package' });
  });

  test('of forks issue no conditions there either', async () => {
    await at.policy();
    await at.pull({ ...files, 'web/Kptfile': KPTFILE(GATES, TESTED) }, { isFork: true });
    const commit = await queue(1, { ...files, 'web/Kptfile': KPTFILE(GATES, TESTED) });
    await settle();
    expect(at.titles(commit)['sluice/ready']).toMatch(/^pending: 1 gate closed/);
  });

  test('fail there where a change went into a package with a file that an earlier one has moved', async () => {
    await at.policy();
    await at.world.push(at.path, { ...files, 'lib/x.yaml': MAP });
    await at.world.store.repository('apps').refresh();
    const head = await at.pull({ 'lib/x.yaml': `${MAP}# changed\n` });
    const commit = await queue(1, { 'lib/x.yaml': null, 'web/x.yaml': `${MAP}# changed\n` });
    await settle();
    expect(at.titles(head)).toEqual({ 'sluice/ready': 'success: It changes no package' });
    expect(at.titles(commit)['sluice/ready']).toMatch(/^failure: The main branch has removed or moved lib\/x.yaml/);
  });

  test('leave the checks of a commit alone that is the head of another one by now', async () => {
    await at.policy();
    await at.pull(files);
    const shared = { ...files, 'db/Kptfile': KPTFILE(GATES), 'db/map.yaml': MAP };
    const head = await at.pull(shared, { branch: 'other' });
    await settle();
    const checks = at.titles(head);
    expect(checks['sluice/ready']).toMatch(/^pending: 1 gate closed/);
    const branch = `gh-readonly-queue/main/pr-1-${'a'.repeat(40)}`;
    git(at.path, ['branch', branch, head]);
    waiting.push({ number: 1, commit: head, branch });
    at.forge.change(1, {});
    await settle();
    expect(at.titles(head)).toEqual(checks);
  });

  test('wait there for the rules of policies too', async () => {
    await at.policy({}, { approval: { windows: [{ cron: '0 9 29 2 *', duration: '1h' }] } });
    await at.pull(files);
    const commit = await queue(1, files);
    await settle();
    expect(at.titles(commit)['sluice/ready']).toMatch(/^pending: Blocked by Window of policy review until /);
  });
});
