import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { mergeOnHost } from '../../../test/support/git/merge-on-host.ts';
import { eachUserPulls, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

describe('merges of users that arrive with an earlier one of a proposal', () => {
  const open = eachUserPulls();
  const ref = 'refs/heads/main';
  let at: UserPullBench;
  let proposal: string;
  let host: string;
  let earlier: string;
  beforeEach(async () => {
    at = open();
    await at.world.publish((await at.world.draft('apps/web/w0')).name);
    await at.policy({ publishOn: 'merge' });
    const source = { type: 'copy', source: 'apps.web.w0' } as const;
    proposal = (await at.world.store.create('apps', { package: 'web', workspace: 'w1', source }, ANNA)).name;
    await at.world.store.change(proposal, { files: new Map([['b.yaml', Buffer.from(MAP)]]) }, ANNA);
    await at.world.store.update(proposal, { action: 'propose' }, ANNA);
    host = `${at.path}-host`;
    git(at.path, ['clone', '-q', '--mirror', at.path, host]);
    const { commit } = at.world.store.get(proposal);
    const head = { branch: 'proposed/web/w1', commit, isSameRepository: true };
    await at.forge.open({ head: head.branch, base: 'main', title: '', body: '' });
    at.forge.change(1, { head });
    earlier = merge(1);
  });

  /** In another clone: the repository does not have it yet. */
  function merge(number: number): string {
    const head = at.forge.pulls[number - 1]?.head.commit ?? '';
    if (number > 1) git(host, ['fetch', '-q', at.path, head]);
    const { commit, base } = mergeOnHost(host, head, 'squash', number);
    const { updatedAt: closedAt } = at.forge.change(number, { state: 'merged', merged: { commit, by: 'bob', base } });
    at.forge.change(number, { closedAt });
    return commit;
  }

  async function pull(number: number): Promise<void> {
    await at.pull({ [`web/${number}.yaml`]: MAP }, { branch: `fix-${number}` });
    await at.poll();
    merge(number);
  }

  async function poll(seconds: number): Promise<void> {
    for (let waited = 0; waited < seconds; waited += 30) await at.poll();
  }

  async function arrive(): Promise<void> {
    git(at.path, ['fetch', '-q', host, `+${ref}:${ref}`]);
    await at.world.store.repository('apps').refresh();
  }

  /** The controller of proposals publishes it. */
  async function publishEarlier(): Promise<void> {
    await at.world.store.update(proposal, { action: 'approve', merged: { commit: earlier, recordBypass: true } }, ANNA);
  }

  const numbers = () =>
    [proposal, ...[2, 3, 4].map((number) => `apps.web.merge-${number}`)].map(
      (name) => at.world.store.find(name)?.revision,
    );

  test.each([30, 180, 900])('wait for it, and get their numbers in their order: after %i seconds', async (seconds) => {
    await pull(2);
    await pull(3);
    await poll(seconds);
    await arrive();
    await at.poll(10_000);
    // Another one comes while they wait.
    await pull(4);
    await arrive();
    await at.poll();
    expect(numbers()).toEqual([0, undefined, undefined, undefined]);
    await publishEarlier();
    await at.poll(1000);
    await poll(90);
    expect(numbers()).toEqual([2, 3, 4, 5]);
    expect(await at.world.events('apps')).toHaveLength(seconds > 600 ? 2 : 0);
  });

  test('wait no longer than for it where it is never published', async () => {
    await pull(2);
    await pull(3);
    await poll(900);
    await arrive();
    await poll(90);
    expect(numbers()).toEqual([0, undefined, undefined, undefined]);
    await poll(90);
    expect(numbers()).toEqual([0, 2, 3, undefined]);
  });
});
