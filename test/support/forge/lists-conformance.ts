import { expect, test, vi } from 'vitest';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { EPOCH, NO_SIGNAL, SECOND, type Suite, wanted } from './forge-host.ts';

/** What every implementation has to list. */
export function describeLists({ start, startWithPull, pageSize }: Suite): void {
  test('lists what changed at or after a time, changed last first, within a limit', async () => {
    const { forge, names, commit, comment } = await start();
    const pulls: PullRequest[] = [];
    for (const branch of ['proposed/a', 'proposed/b', 'proposed/c']) {
      await commit(branch);
      pulls.push(await forge.open({ ...wanted(), head: branch }, NO_SIGNAL));
    }
    const [first, , last] = pulls;
    // Times are in seconds: repeated until it is in another one than the others.
    await vi.waitFor(async () => {
      await comment(names.anna, first?.number ?? 0, 'a remark');
      const changed = await forge.get(first?.number ?? 0, NO_SIGNAL);
      expect(Date.parse(changed.updatedAt)).toBeGreaterThan(Date.parse(last?.updatedAt ?? ''));
    }, SECOND);
    const changed = await forge.get(first?.number ?? 0, NO_SIGNAL);
    const numbers = async (since: string, limit: number) =>
      (await forge.listUpdated(since, limit, NO_SIGNAL)).map(({ number }) => number);
    expect((await numbers(EPOCH, 10))[0]).toBe(first?.number);
    expect([...(await numbers(EPOCH, 10))].sort()).toEqual(pulls.map(({ number }) => number).sort());
    expect(await numbers(changed.updatedAt, 10)).toEqual([first?.number]);
    expect(await numbers(EPOCH, 1)).toEqual([first?.number]);
    expect(await numbers('2999-01-01T00:00:00Z', 10)).toEqual([]);
    expect((await forge.listOpen('main', 1, NO_SIGNAL)).map(({ number }) => number)).toEqual([first?.number]);
    expect(await forge.listOpen('main', 10, NO_SIGNAL)).toHaveLength(3);
  });

  test('finds the pull requests to a branch among more to others', async () => {
    const { forge, commit, pull } = await startWithPull();
    await commit('release');
    for (let at = 0; at < 3; at += 1) {
      await commit(`other/${at}`);
      await forge.open({ ...wanted(), head: `other/${at}`, base: 'release' }, NO_SIGNAL);
    }
    expect((await forge.listOpen('main', 2, NO_SIGNAL)).map(({ number }) => number)).toEqual([pull.number]);
    expect(await forge.listOpen('release', 2, NO_SIGNAL)).toHaveLength(2);
    expect(await forge.listOpen('no-such-branch', 2, NO_SIGNAL)).toEqual([]);
  });

  // A real host needs some seconds for each pull request where other work loads the machine.
  test('lists more than one page', { timeout: 600_000 }, async () => {
    const { forge, commit, branch } = await start();
    const count = pageSize + 3;
    const from = await commit('many/0');
    for (let at = 0; at < count; at += 1) {
      if (at > 0) await branch(`many/${at}`, from);
      await forge.open({ ...wanted(), head: `many/${at}` }, NO_SIGNAL);
    }
    for (const list of [await forge.listOpen('main', 1000, NO_SIGNAL), await forge.listUpdated(EPOCH, 1000, NO_SIGNAL)])
      expect(new Set(list.map(({ number }) => number)).size).toBe(count);
    expect(await forge.listUpdated(EPOCH, count - 1, NO_SIGNAL)).toHaveLength(count - 1);
    // The oldest is found by its branches too.
    const again = await forge.open({ ...wanted(), head: 'many/0' }, NO_SIGNAL);
    expect(again.head.branch).toBe('many/0');
  });
}
