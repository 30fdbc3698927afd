import { beforeEach, describe, expect, test } from 'vitest';
import type { QueuedMerge } from '../../../src/forge/merge-queue.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';

describe('the checks of a proposal', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  test('a request to run a check again evaluates it and sets all checks of this commit, and of no other', async () => {
    await at.policy();
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    const name = await at.propose();
    await at.reconcile(name);
    const { commit } = at.revision(name);
    // It reads changes of the same second once more.
    for (let turn = 0; turn < 2; turn += 1) await at.reconcile('apps');
    at.forge.checks.clear();
    requests.addReview({ namespace: 'default', name: 'apps' }, { rerun: 'f'.repeat(40) });
    at.woken.length = 0;
    await at.reconcile('apps');
    expect(at.woken).toEqual([]);
    requests.addReview({ namespace: 'default', name: 'apps' }, { rerun: commit });
    await at.reconcile('apps');
    expect(at.woken).toEqual([name]);
    await at.reconcile(name);
    expect(at.forge.checksOf(commit)).toEqual({ 'sluice/ready': 'success' });
    expect(requests.takeReview({ namespace: 'default', name: 'apps' }, 'proposals')).toBeUndefined();
  });

  test('the commit of a merge queue gets the checks of its proposal, and a failure where the merge has other content', async () => {
    await at.policy();
    const requests = new SyncRequests(at.clock);
    const waiting: QueuedMerge[] = [];
    const trees = new Map<string, string>();
    let reads = 0;
    const mergeQueue = {
      waiting: async () => {
        reads += 1;
        return { merges: waiting, isComplete: true };
      },
      treeOf: async (commit: string) => trees.get(commit),
    };
    at.restart({ requests, openForge: () => Object.assign(at.forge, { mergeQueue }) });
    const name = await at.propose();
    await at.reconcile(name);
    await at.reconcile('apps');
    await at.reconcile('apps');
    const before = reads;
    await at.reconcile('apps');
    expect(reads).toBe(before);

    const { commit, path: folder } = at.revision(name);
    const [own] = await at.world.store.repositoryOf(at.revision(name)).git.statObjects([`${commit}:${folder}`]);
    const [same, other] = ['1'.repeat(40), '2'.repeat(40)];
    trees.set(same, own?.oid ?? '').set(other, '3'.repeat(40));
    const number = at.forge.pulls[0]?.number ?? 0;
    const branch = 'gh-readonly-queue/main';
    waiting.push(
      ...[same, other].map((commit) => ({ number, commit, branch })),
      ...[{ number: 99, commit: '4'.repeat(40), branch }],
    );
    requests.addReview({ namespace: 'default', name: 'apps' }, 'merge-queue');
    at.woken.length = 0;
    await at.reconcile('apps');
    expect(at.woken).toEqual([name]);
    await at.reconcile(name);
    expect(at.forge.checksOf(same)).toEqual({ 'sluice/ready': 'success' });
    expect(at.forge.checksOf(other)).toEqual({ 'sluice/ready': 'failure' });
    expect(at.forge.checks.get(other)?.get('sluice/ready')?.title).toMatch(
      /merge changes the package.*remove it from the queue/,
    );
    expect(at.forge.checks.has('4'.repeat(40))).toBe(false);
    // It is read until it is empty, without a further request.
    waiting.length = 0;
    at.woken.length = 0;
    await at.reconcile('apps');
    const emptied = reads;
    // Commits may have waited for its end.
    expect(at.woken).toEqual([name]);
    await at.reconcile('apps');
    expect([reads, at.woken]).toEqual([emptied, [name]]);
  });

  test('a check follows its gate: pending, failed, open', async () => {
    await at.policy({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await at.propose();
    await at.set(name, 'False');
    await at.reconcile(name);
    expect(at.forge.checksOf(at.revision(name).commit)).toEqual({ 'sluice/ready': 'failure' });
    await at.set(name, 'True');
    await at.reconcile(name);
    expect(at.forge.checksOf(at.revision(name).commit)).toEqual({ 'sluice/ready': 'success' });
    expect(at.forge.pulls[0]?.body).toContain(`| \`${GATE}\` | Open |`);
  });
});
