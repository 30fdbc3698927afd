import { afterEach, describe, expect, test } from 'vitest';
import type { BudgetUsage } from '../../../src/forge/budget-usage.ts';
import { forgeRequests } from '../../../src/forge/http/forge-budget.ts';
import { describeChecks } from './checks-conformance.ts';
import { describeComments } from './comments-conformance.ts';
import { describeEnds } from './ends-conformance.ts';
import { type Conformance, type ForgeHost, NO_SIGNAL, type StartedHost, wanted } from './forge-host.ts';
import { describeIssues } from './issues-conformance.ts';
import { describeLists } from './lists-conformance.ts';
import { describeMerging } from './merging-conformance.ts';
import { describeOpening } from './opening-conformance.ts';
import { describeReviews } from './reviews-conformance.ts';

/** What every implementation of `Forge` has to do, on a host that keeps what is written. */
export function describeForge(name: string, { open, pageSize, ...options }: Conformance): void {
  let hosts: ForgeHost[] = [];
  afterEach(async () => {
    await Promise.all(hosts.map((host) => host.close()));
    hosts = [];
  });

  async function start(): Promise<ForgeHost> {
    const host = await open();
    hosts.push(host);
    return host;
  }

  async function startWithPull(): Promise<StartedHost> {
    const host = await start();
    const head = await host.commit('proposed/shop/v1');
    const pull = await host.forge.open(wanted(), NO_SIGNAL);
    return { ...host, pull, head };
  }

  describe(name, options, () => {
    const suite = { start, startWithPull, pageSize };
    describeOpening(suite);
    describeReviews(suite);
    describeChecks(suite);
    describeEnds(suite);
    describeLists(suite);
    describeMerging(startWithPull);
    describeComments(suite);
    describeIssues(suite);

    test('reports whether a user may push, as far as the host does', async () => {
      const { forge, names } = await start();
      expect(await forge.mayWrite(names.anna, NO_SIGNAL)).toBe(names.permissions.writer);
      expect(await forge.mayWrite('missing-user', NO_SIGNAL)).toBe(names.permissions.other);
    });

    test('reports who is a member of a team now', async () => {
      const { forge, names, join, leave } = await start();
      const team = await join(names.anna);
      const isMember = (user: string) => forge.isTeamMember(team, user, NO_SIGNAL);
      expect([await isMember(names.anna), await isMember(names.ben)]).toEqual([true, false]);
      await join(names.ben);
      await leave(names.anna);
      expect([await isMember(names.anna), await isMember(names.ben)]).toEqual([false, true]);
      expect(await isMember('missing-user')).toBe(false);
      await expect(forge.isTeamMember('team', names.ben, NO_SIGNAL)).rejects.toThrow(/<organization>\/<team>/);
    });

    test('reports what its account has used, with each request', async () => {
      const { forge, commit, createsContent } = await start();
      await commit('proposed/shop/v1');
      const used: BudgetUsage[] = [];
      const end = forgeRequests.subscribe(({ usage }) => used.push(usage()));
      try {
        await forge.listOpen('main', 10, NO_SIGNAL);
        const before = used.at(-1);
        expect(before?.resources.map(({ resource }) => resource)).toContain('core');
        for (const { rate, pausedMs } of before?.resources ?? []) {
          expect(pausedMs).toBe(0);
          if (rate?.limit !== undefined) expect(rate.remaining).toBeLessThanOrEqual(rate.limit);
        }
        await forge.open(wanted(), NO_SIGNAL);
        const created = (used.at(-1)?.content.minute ?? 0) - (before?.content.minute ?? 0);
        expect(created).toBe(createsContent ? 1 : 0);
      } finally {
        end();
      }
    });

    test('stops at a signal', async () => {
      const { forge } = await start();
      const reason = new Error('no time left');
      await expect(forge.listOpen('main', 10, AbortSignal.abort(reason))).rejects.toBe(reason);
    });
  });
}
