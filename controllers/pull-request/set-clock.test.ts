import { beforeEach, describe, expect, test } from 'vitest';
import { hostRepository } from '../../test/support/delivery-pull-request.ts';
import { eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';
import { protectMain } from '../../test/support/protected-main.ts';
import { authorshipOf, waitFor } from './commands/edited-comments.ts';
import { readRebuild } from './merging/rebuild-branch.ts';

const DAY = 86_400_000;
const NO_SIGNAL = new AbortController().signal;

describe('after the wall clock was a day ahead', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  async function ahead(work: () => Promise<unknown>): Promise<void> {
    at.clock.setBy(DAY);
    await work();
    at.clock.setBy(-DAY);
  }

  test('what users do on the host is read as soon as before', async () => {
    await at.policy();
    const name = await at.propose();
    await ahead(async () => {
      await at.reconcile(name);
      await at.reconcile('apps');
    });
    at.woken = [];
    at.forge.change(1, { state: 'closed', closedAt: new Date(at.clock.now()).toISOString() });
    at.clock.advance(30_000);
    expect(await at.reconcile('apps')).toMatchObject({ requeueAfter: expect.closeTo(10_000, -4) });
    expect(at.woken).toContain(name);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Draft');
  });

  test('a merge that was not fetched yet is looked for as soon as before', async () => {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.reconcile(name);
    at.forge.change(1, { state: 'merged', merged: { commit: 'f'.repeat(40), by: 'bob' } });
    at.clock.advance(30_000);
    await at.reconcile('apps');
    await ahead(() => at.reconcile(name));
    const result = (await at.reconcile(name)) as { requeueAfter: number };
    expect(result.requeueAfter).toBeGreaterThan(0);
    expect(result.requeueAfter).toBeLessThan(60_000);
  });

  test('proposals get their shared pull request, and further ones join it', async () => {
    at.serveBranches();
    await at.policy({ publishOn: 'merge', batch: {} });
    await at.proposeAll('api');
    await ahead(() => at.settle());
    await at.settle(60_000);
    expect(at.forge.pulls).toHaveLength(1);
    const [web = ''] = await at.proposeAll('web');
    await at.settle(60_000);
    expect(at.forge.pulls[0]?.body).toContain(web);
  });

  test('a merge that the host refused is requested again after the usual pause, and a push after ten minutes', async () => {
    await at.policy();
    const name = await at.propose();
    const unprotect = protectMain(at.world.store.repository('apps'));
    hostRepository(at.forge, at.path);
    await at.reconcile(name);
    at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
    await at.review(1, 'Bob', 'approved', at.revision(name).commit);
    await ahead(() => at.reconcile(name));
    const refusedAt = at.world.store.repository('apps').mainRefusedAt ?? Number.NaN;
    expect(at.clock.monotonic() - refusedAt).toBe(0);
    // The decision has a time in the future, so that it is made again.
    await at.reconcile(name);
    await at.reconcile(name);
    const merges = () => at.forge.calls.filter((call) => call === 'merge').length;
    const before = merges();
    expect(before).toBeGreaterThan(0);
    at.forge.outcome = undefined;
    at.clock.advance(60_000);
    await at.reconcile(name);
    expect(merges()).toBe(before + 1);
    unprotect();
  });

  test('what the host states of a merge is read again after a minute, and a webhook is awaited for seconds', async () => {
    const entry = { pulls: { forge: at.forge, queued: new Set() }, number: 1 } as never;
    const facts = { isReady: true, isQueued: false, isOpen: true, isUpToDate: false };
    const read = () => readRebuild({ clock: at.clock, signal: NO_SIGNAL }, facts, 'a b', entry);
    await ahead(read);
    expect(await read()).toMatchObject({ requeueAfter: 60_000 });
    const comment = { id: '1', createdAt: 'x', updatedAt: 'x' } as never;
    const forge = { isAsWritten: async () => undefined };
    const source = { forge, asShown: () => undefined };
    expect(await authorshipOf(comment, source, NO_SIGNAL)).toBe('unknown');
    const state = {};
    await ahead(async () => waitFor(state, comment, at.clock.monotonic()));
    expect(waitFor(state, comment, at.clock.monotonic())).toBe(10_000);
  });
});
