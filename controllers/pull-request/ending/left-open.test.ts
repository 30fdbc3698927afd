import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { type HostMerge, hostMerges } from '../merged/host-merges.ts';

const MINUTE_MS = 60_000;
const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

const REPORT = expect.stringContaining('/1 was merged by bob, and publishes nothing');
const NOT_PUBLISHED: HostMerge = { origin: 'proposal', result: 'not_published' };
const FACTS = { conditions: [], rendering: undefined, mayIssue: true, isOfHead: true };

const counted: HostMerge[] = [];
let stop: () => void;
beforeEach(() => {
  counted.length = 0;
  stop = hostMerges.subscribe((one) => void counted.push(one));
});
afterEach(() => stop());

const reports = async (name: string) =>
  (await at.world.events(name)).filter((text) => /^(MergeNotPublished|MergedOutside)/.test(text));
const comments = () =>
  (at.forge.commentsOf.get(1) ?? []).map(({ body }) => body).filter((body) => body.includes('### Not published'));

describe('the pull request of a rejected proposal that the host leaves open', () => {
  /** The host has the clock of Sluice. */
  async function rejectAndMerge(publishOn: string, minutes: number) {
    at.serveBranches();
    await at.policy({ publishOn });
    const name = await at.propose();
    await at.settle();
    at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    await at.settle();
    expect(at.forge.pulls).toMatchObject([{ state: 'open', body: expect.stringContaining('is Draft now.') }]);
    await at.settle(minutes * MINUTE_MS);
    await at.mergeHead(name, 'bob');
    at.forge.change(1, { closedAt: new Date(at.clock.now()).toISOString() });
    return name;
  }

  test.each([
    ['merge', 6],
    ['review', 6],
    ['approval', 6],
    ['approval', 0],
    ['merge', 60],
    ['approval', 60],
  ] as const)('is merged unseen: the next process reports it, with publishOn: %s after %i minutes', async (...row) => {
    const [publishOn, minutes] = row;
    const name = await rejectAndMerge(publishOn, minutes);
    at.restart();
    await at.settle(MINUTE_MS);
    expect(at.revision(name).lifecycle).toBe('Draft');
    expect(await reports(name)).toEqual([REPORT]);
    expect([comments().length, counted]).toEqual([1, [NOT_PUBLISHED]]);
    at.restart();
    await at.settle(MINUTE_MS);
    expect([comments().length, counted]).toEqual([1, [NOT_PUBLISHED]]);
  });

  test.each(['merge', 'approval'] as const)(
    'is merged unseen, and proposed again before that is read: publishOn %s',
    async (publishOn) => {
      const name = await rejectAndMerge(publishOn, 6);
      await at.world.store.update(name, { action: 'propose' }, ANNA);
      at.restart();
      for (let turn = 0; turn < 2; turn += 1) await at.settle(MINUTE_MS);
      expect(await reports(name)).toEqual([expect.stringContaining('was proposed again since')]);
      expect([comments().length, counted]).toEqual([1, [NOT_PUBLISHED]]);
      expect(at.forge.pulls).toMatchObject([{ state: 'merged' }, { state: 'open' }]);
    },
  );

  test.each([
    ['at once after one minute', 1, 0],
    ['ten minutes later after six', 6, 9],
  ])('is merged: the process that has seen it open reports it %s', async (_, minutes, later) => {
    const name = await rejectAndMerge('merge', minutes);
    for (let waited = 0; waited < later; waited += 1) {
      await at.settle(MINUTE_MS);
      expect(await reports(name)).toEqual([]);
    }
    await at.settle(MINUTE_MS);
    expect(await reports(name)).toEqual([REPORT]);
    expect([comments().length, counted]).toEqual([1, [NOT_PUBLISHED]]);
  });

  test.each([true, false])('is published as that of a user, and not reported; restart: %s', async (restarts) => {
    const name = await rejectAndMerge('merge', 6);
    const commit = at.forge.pulls[0]?.merged?.commit ?? '';
    const wanted = { package: 'app', workspace: 'merge-1', merged: { commit, recordBypass: true }, facts: FACTS };
    await at.world.store.repository('apps').sync();
    expect(await at.world.store.publishMerged('default/apps', wanted, '', ANNA)).toMatchObject({ revision: 1 });
    if (restarts) at.restart();
    for (let turn = 0; turn < 20; turn += 1) await at.settle(MINUTE_MS);
    expect([await reports(name), comments(), counted]).toEqual([[], [], []]);
  });
});
