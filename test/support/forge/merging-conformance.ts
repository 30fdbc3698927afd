import { execFileSync } from 'node:child_process';
import { expect, test, vi } from 'vitest';
import type { MergeOutcome, MergeRequest } from '../../../src/forge/forge-merging.ts';
import { GIT_ENVIRONMENT } from '../git/git-cli.ts';
import type { StartedHost } from './forge-host.ts';

const NO_SIGNAL = new AbortController().signal;
const WAIT = { timeout: 20_000, interval: 200 };

/** Messages of the last commits of a branch, newest first, without the names of those who made them. */
export function messagesOf(gitDir: string, branch: string, count: number): readonly string[] {
  const args = ['-c', 'safe.directory=*', `--git-dir=${gitDir}`, 'log', '-z', '--format=%B', `-${count}`, branch];
  const text = execFileSync('git', args, { env: GIT_ENVIRONMENT }).toString('utf8');
  return text.split('\0').map((message) => message.trim());
}

/** What every implementation of `ForgeMerging` has to do. */
export function describeMerging(start: () => Promise<StartedHost>): void {
  const wanted = (headCommit: string, method: MergeRequest['method'] = 'merge'): MergeRequest => ({
    ...{ headCommit, method, title: 'Deliver shop v1', message: 'Sluice-Target: edge\nSluice-Package: apps/shop' },
  });

  /** Merges once the host knows whether that is possible. */
  async function merge(host: StartedHost, request: MergeRequest): Promise<MergeOutcome> {
    return vi.waitFor(async () => {
      const outcome = await host.forge.merge(host.pull.number, request, NO_SIGNAL);
      if (outcome.state === 'refused') expect(outcome.obstacle).not.toBe('unknown');
      return outcome;
    }, WAIT);
  }

  test('merges the given head by each method, once, and keeps the texts', async () => {
    for (const method of ['merge', 'squash', 'rebase'] as const) {
      const host = await start();
      const { forge, pull, head, log } = host;
      await host.commit('main');
      const outcome = await merge(host, wanted(head, method));
      const merged = await forge.get(pull.number, NO_SIGNAL);
      expect(merged).toMatchObject({ state: 'merged', head: { commit: head } });
      expect(outcome).toEqual({ state: 'merged', commit: merged.merged?.commit });
      // A caller that did not get the response calls again.
      expect(await forge.merge(pull.number, wanted(head, method), NO_SIGNAL)).toEqual(outcome);
      const [last = ''] = await log('main', 1);
      if (method === 'rebase') expect(last).not.toContain('Sluice-Target');
      else expect(last).toMatch(/^Deliver shop v1\n\nSluice-Target: edge\nSluice-Package: apps\/shop/);
    }
  });

  test('merges nothing else than the given head', async () => {
    const host = await start();
    const { forge, pull, head, commit } = host;
    const next = await commit('proposed/shop/v1');
    await vi.waitFor(async () => expect((await forge.get(pull.number, NO_SIGNAL)).head.commit).toBe(next), WAIT);
    const late = forge.merge(pull.number, wanted(head), NO_SIGNAL);
    await expect(late).rejects.toMatchObject({ code: 'Conflict' });
    expect((await forge.get(pull.number, NO_SIGNAL)).state).toBe('open');
    expect((await merge(host, wanted(next))).state).toBe('merged');
    await expect(forge.merge(pull.number, wanted(head), NO_SIGNAL)).rejects.toMatchObject({ code: 'Conflict' });
  });

  test('two callers merge once', async () => {
    const host = await start();
    const { forge, pull, head, log } = host;
    const before = await log('main', 20);
    const attempts = await Promise.allSettled([merge(host, wanted(head)), merge(host, wanted(head))]);
    // One of them may be refused while the other one is executed; repeated, both have the same.
    expect(attempts.some(({ status }) => status === 'fulfilled')).toBe(true);
    const last = await forge.merge(pull.number, wanted(head), NO_SIGNAL);
    expect(last.state).toBe('merged');
    for (const attempt of attempts) if (attempt.status === 'fulfilled') expect(attempt.value).toEqual(last);
    // The merge and the commit that it merges.
    expect(await log('main', 20)).toHaveLength(before.length + 2);
  });

  test('a conflict is refused, and is never reported as mergeable', async () => {
    const host = await start();
    const { forge, pull, commit } = host;
    await commit('main', 'both');
    const head = await commit('proposed/shop/v1', 'both');
    await vi.waitFor(async () => {
      expect((await forge.get(pull.number, NO_SIGNAL)).head.commit).toBe(head);
      expect(['conflict', 'unknown']).toContain(await forge.mergeability(pull.number, NO_SIGNAL));
    }, WAIT);
    const outcome = await forge.merge(pull.number, wanted(head), NO_SIGNAL);
    expect(outcome).toMatchObject({ state: 'refused', message: expect.stringMatching(/.{10}/) });
    if (outcome.state === 'refused') expect(['conflict', 'unknown']).toContain(outcome.obstacle);
    expect((await forge.get(pull.number, NO_SIGNAL)).state).toBe('open');
  });

  test('reports for which commit a user had scheduled a merge, if the host does', async () => {
    const host = await start();
    const { forge, pull, head, names, commit } = host;
    await host.protect('main', { check: 'sluice/ready' });
    await host.review(names.anna, pull.number, 'approve');
    // Gitea refuses it until it knows whether there is a conflict.
    await vi.waitFor(() => host.schedule(names.anna, pull.number), WAIT);
    const next = await commit('proposed/shop/v1');
    await vi.waitFor(async () => expect((await forge.get(pull.number, NO_SIGNAL)).head.commit).toBe(next), WAIT);
    await forge.setChecks(next, [{ name: 'sluice/ready', state: 'success', title: 'ready' }], NO_SIGNAL);
    const merged = await vi.waitFor(async () => {
      const now = await forge.get(pull.number, NO_SIGNAL);
      expect(now).toMatchObject({ state: 'merged', merged: { by: names.anna } });
      return now;
    }, WAIT);
    const { reviews, scheduled } = await forge.mergedState(merged, NO_SIGNAL);
    expect(reviews).toEqual([expect.objectContaining({ author: names.anna, state: 'approved', commit: head })]);
    expect(scheduled).toMatchObject({ by: names.anna, at: expect.stringMatching(/^\d{4}-/) });
    expect([head, undefined]).toContain(scheduled?.commit);
  });

  test('reports no schedule of a merge by hand', async () => {
    const host = await start();
    const { forge, pull, head } = host;
    expect((await merge(host, wanted(head))).state).toBe('merged');
    const merged = await forge.get(pull.number, NO_SIGNAL);
    expect((await forge.mergedState(merged, NO_SIGNAL)).scheduled).toBeUndefined();
  });

  test('waits for the checks that a protected branch requires, and says so', async () => {
    const host = await start();
    const { forge, pull, head, protect } = host;
    expect(await forge.branchRules('main', NO_SIGNAL)).toEqual({ requiresUpToDate: false });
    await protect('main', { check: 'sluice/ready' });
    expect(await forge.branchRules('main', NO_SIGNAL)).toEqual({});
    await expect(forge.branchRules('missing', NO_SIGNAL)).rejects.toMatchObject({ code: 'NotFound' });
    expect(await merge(host, wanted(head))).toMatchObject({
      ...{ state: 'refused', obstacle: 'blocked', message: expect.stringMatching(/status check/i) },
    });
    expect((await forge.get(pull.number, NO_SIGNAL)).state).toBe('open');
    await forge.setChecks(head, [{ name: 'sluice/ready', state: 'success', title: 'all gates are open' }], NO_SIGNAL);
    await vi.waitFor(async () => expect(await forge.mergeability(pull.number, NO_SIGNAL)).toBe('mergeable'), WAIT);
    expect((await merge(host, wanted(head))).state).toBe('merged');
  });

  test('a head that is behind is refused where the branch requires that it is not', async () => {
    const host = await start();
    const { head, commit, protect } = host;
    await commit('main');
    await protect('main', { upToDate: true });
    expect(await merge(host, wanted(head))).toMatchObject({ state: 'refused', obstacle: 'behind' });
  });

  test('states the permitted methods of merging, and refuses another one until it is permitted', async () => {
    const host = await start();
    const { forge, pull, head } = host;
    expect(await forge.mergeMethods('main', NO_SIGNAL)).toEqual(['merge', 'squash', 'rebase']);
    await host.permitMethods(['squash']);
    expect(await forge.mergeMethods('main', NO_SIGNAL)).toEqual(['squash']);
    expect(await merge(host, wanted(head))).toMatchObject({ state: 'refused', obstacle: 'method' });
    expect((await forge.get(pull.number, NO_SIGNAL)).state).toBe('open');
    expect((await merge(host, wanted(head, 'squash'))).state).toBe('merged');
  });

  test('closes a pull request once, merges none that is closed, and finds pull requests by their branches', async () => {
    const { forge, pull, head, commit } = await start();
    expect(await forge.find('proposed/shop/v1', 'main', NO_SIGNAL)).toEqual(pull);
    expect(await forge.find('proposed/shop/v1', 'release', NO_SIGNAL)).toBeUndefined();
    expect(await forge.find('proposed/other', 'main', NO_SIGNAL)).toBeUndefined();
    const closed = await forge.update(pull.number, { body: 'not needed any more', state: 'closed' }, NO_SIGNAL);
    expect(closed).toMatchObject({ state: 'closed', title: pull.title, body: 'not needed any more' });
    expect((await forge.update(pull.number, { state: 'closed' }, NO_SIGNAL)).state).toBe('closed');
    expect(await forge.find('proposed/shop/v1', 'main', NO_SIGNAL)).toMatchObject({ number: pull.number });
    expect(await forge.merge(pull.number, wanted(head), NO_SIGNAL)).toMatchObject({
      ...{ state: 'refused', obstacle: 'closed' },
    });
    await commit('proposed/shop/v1');
    const next = await forge.open({ head: 'proposed/shop/v1', base: 'main', title: 'again', body: '' }, NO_SIGNAL);
    expect(await forge.find('proposed/shop/v1', 'main', NO_SIGNAL)).toMatchObject({ number: next.number });
    // The one that was opened last, also where the other one has changed since.
    await forge.update(next.number, { state: 'closed' }, NO_SIGNAL);
    await forge.update(pull.number, { body: 'nor later' }, NO_SIGNAL);
    expect(await forge.find('proposed/shop/v1', 'main', NO_SIGNAL)).toMatchObject({ number: next.number });
    expect(await forge.find('proposed/other', 'main', NO_SIGNAL)).toBeUndefined();
  });
}
