import { beforeEach, describe, expect, test } from 'vitest';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const WAS_READ = 50;
const WAS_NOT_READ = 150;

describe('a pull request that ended while no process ran, before many others changed', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });
  const own = () => at.forge.pulls.filter(({ head }) => head.branch.startsWith('proposed/'));

  async function changeOthers(count: number): Promise<void> {
    for (let times = 0; times < count; times += 1) {
      const { number } = await at.forge.open({ head: `user/${times}`, base: 'main', title: 'other', body: '' });
      at.forge.change(number, { state: 'closed' });
    }
    at.restart();
    await at.world.store.repository('apps').sync();
    at.forge.calls.length = 0;
  }
  const searches = () => at.forge.calls.filter((call) => call === 'find').length;

  test.each([WAS_READ, WAS_NOT_READ])('publishes its proposal where it was merged: %d others', async (count) => {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.settle();
    await at.mergeHead(name, 'bob');
    await changeOthers(count);
    await at.settle(60_000);
    expect(at.revision(name).lifecycle).toBe('Published');
    expect(own()).toHaveLength(1);
    expect(searches()).toBe(count === WAS_READ ? 0 : 1);
  });

  test.each([WAS_READ, WAS_NOT_READ])('rejects its proposal where a user closed it: %d others', async (count) => {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.settle();
    at.forge.closings.set(1, { by: 'bob', comment: 'not now' });
    at.forge.change(1, { state: 'closed' });
    await changeOthers(count);
    await at.settle(60_000);
    expect(at.revision(name).lifecycle).toBe('Draft');
    expect(own()).toHaveLength(1);
  });

  test('is searched for where the policy has proposals share one now', async () => {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.settle();
    await at.mergeHead(name, 'bob');
    await at.reviewTogether(name);
    await changeOthers(WAS_NOT_READ);
    await at.settle(120_000);
    expect(at.revision(name).lifecycle).toBe('Published');
    expect(at.forge.pulls.map(({ head }) => head.branch).filter((branch) => branch.startsWith('sluice/'))).toEqual([]);
  });

  test('is searched for once, and not for what is proposed later', async () => {
    await at.policy();
    await at.propose();
    await changeOthers(WAS_NOT_READ);
    at.forge.before = (method) => {
      if (method === 'open') throw new Error('the host is down');
    };
    for (let times = 0; times < 2; times += 1) await at.reconcile('apps.app.w1').catch(() => undefined);
    expect(searches()).toBe(1);
    at.forge.before = () => undefined;
    await at.settle();
    at.forge.calls.length = 0;
    // The clock of the host is ahead of the one of the test.
    at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
    await at.proposeAll('web');
    await at.settle();
    expect(own()).toHaveLength(2);
    expect(searches()).toBe(0);
  });
});
