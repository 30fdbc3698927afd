import { beforeEach, describe, expect, test } from 'vitest';
import type { QueuedMerge } from '../../src/forge/merge-queue.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { commitFiles } from '../../test/support/scratch-repository.ts';
import { eachUserPulls, GATE, KPTFILE, type UserPullBench } from '../../test/support/user-pull-bench.ts';

const PROBE = 'apps/probe/w2';
const FILES = { 'web/Kptfile': KPTFILE() };

describe('after a lost response, although it is as before', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  let probe: string;
  beforeEach(async () => {
    at = open();
    await at.policy();
    ({ name: probe } = await at.world.draft(PROBE));
    await requireGate('web', 'probe');
  });

  /** Requires the gate of these packages by a policy. */
  async function requireGate(...packages: string[]): Promise<void> {
    const spec = { selector: { repositories: ['apps'], packages }, requiredGates: [{ conditionType: GATE }] };
    const key = { namespace: 'default', name: 'strict' };
    if ((await at.world.client.find(packagePolicyKind, key)) === undefined)
      await at.world.client.create(packagePolicyKind, { metadata: { name: 'strict' }, spec });
    else await at.world.client.patch(packagePolicyKind, key, { spec });
    await expect
      .poll(() => at.world.policyFor(at.world.store.get(probe)).requiredGates.some((one) => one.conditionType === GATE))
      .toBe(packages.includes('probe'));
  }
  /** The gate is not required any more; the response to this call is lost, after its effect, as the gate is required again. */
  async function loseResponse(lost: string, call = 1): Promise<void> {
    await requireGate('other');
    let calls = 0;
    at.forge.after = (method) => {
      if (method !== lost) return;
      calls += 1;
      if (calls === call) throw new SluiceError('Unavailable', 'status 502');
    };
    await expect(at.check(1)).rejects.toThrow('502');
    at.forge.after = () => undefined;
    await requireGate('web', 'probe');
  }
  async function settle(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    await at.check(1);
  }
  const stateOf = (commit: string) => at.forge.checksOf(commit)['sluice/ready'];

  test('a check is written again', async () => {
    const commit = await at.pull(FILES);
    await settle();
    expect(stateOf(commit)).toBe('pending');
    await loseResponse('setChecks');
    expect(stateOf(commit)).toBe('success');
    await settle();
    expect(stateOf(commit)).toBe('pending');
  });

  test('a check at a commit of the merge queue is written again, which the host would merge by it', async () => {
    const waiting: QueuedMerge[] = [];
    Object.assign(at.forge, {
      mergeQueue: { waiting: async () => ({ merges: waiting, isComplete: true }), treeOf: async () => undefined },
    });
    await at.pull(FILES);
    await settle();
    const branch = `gh-readonly-queue/main/pr-1-${'a'.repeat(40)}`;
    const git = await initRepository(at.path);
    const commit = await commitFiles(git, FILES, at.clock.now(), { branch, from: 'refs/heads/main' });
    await git.close();
    waiting.push({ number: 1, commit, branch });
    at.forge.change(1, { title: 'queued' });
    await settle();
    expect(stateOf(commit)).toBe('pending');
    await loseResponse('setChecks', 2);
    expect(stateOf(commit)).toBe('success');
    await settle();
    expect(stateOf(commit)).toBe('pending');
  });

  test('a comment is written again', async () => {
    await at.pull(FILES);
    await settle();
    const before = at.comment(1);
    await loseResponse('setComment');
    expect(at.comment(1)).not.toBe(before);
    await settle();
    expect(at.comment(1)).toBe(before);
  });
});

describe('a comment that may have been written', () => {
  const open = eachUserPulls();

  test('is replaced although the pull request has no package any more', async () => {
    const at = open();
    await at.policy();
    await at.pull(FILES);
    await at.poll();
    at.forge.after = (method) => {
      if (method === 'setComment') throw new SluiceError('Unavailable', 'status 502');
    };
    await at.pull({ 'web/Kptfile': KPTFILE(), 'api/Kptfile': KPTFILE() });
    await expect(at.poll()).rejects.toThrow('502');
    at.forge.after = () => undefined;
    await at.pull({ 'notes.txt': 'none' });
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(at.comment(1)).not.toContain('api');
  });

  test('by an earlier process is replaced too, and searched for once', async () => {
    const at = open();
    await at.policy();
    await at.pull(FILES);
    await at.poll();
    expect(at.comment(1)).toContain('web');
    at.restart();
    await at.pull({ 'web/Kptfile': null, 'notes.txt': 'none' }, { onTop: true });
    await at.pull({ 'notes.txt': 'of another one' }, { branch: 'other' });
    at.forge.calls.length = 0;
    for (let turn = 0; turn < 3; turn += 1) {
      await at.poll();
      for (const number of [1, 2]) await at.check(number);
    }
    expect(at.comment(1)).not.toContain('web');
    expect(at.comment(2)).toBeUndefined();
    expect(at.forge.calls.filter((call) => call === 'findComment').length).toBeLessThanOrEqual(2);
  });
});
