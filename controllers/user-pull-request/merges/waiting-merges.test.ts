import { beforeEach, describe, expect, test } from 'vitest';
import { timestamp } from '../../../src/foundation/time/clock.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { mergeOnHost } from '../../../test/support/git/merge-on-host.ts';
import { eachUserPulls, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

describe('merges of users, each behind one of a proposal that is never published', () => {
  const open = eachUserPulls();
  const PACKAGES = ['a', 'b', 'c', 'd'];
  let at: UserPullBench;
  let seconds: number;
  beforeEach(async () => {
    at = open();
    seconds = 0;
    for (const one of PACKAGES) await at.world.publish((await at.world.draft(`apps/${one}/w0`)).name);
    await at.policy({ publishOn: 'merge' });
    await at.poll();
  });

  /** Opens the pull request of another revision of a package. Returns its name. */
  async function propose(of: string): Promise<string> {
    const source = { type: 'copy', source: `apps.${of}.w0` } as const;
    const { name } = await at.world.store.create('apps', { package: of, workspace: 'w1', source }, ANNA);
    await at.world.store.change(name, { files: new Map([['b.yaml', Buffer.from(MAP)]]) }, ANNA);
    await at.world.store.update(name, { action: 'propose' }, ANNA);
    const head = { branch: `proposed/${of}/w1`, commit: at.world.store.get(name).commit, isSameRepository: true };
    const { number } = await at.forge.open({ head: head.branch, base: 'main', title: '', body: '' });
    at.forge.change(number, { head });
    git(at.path, ['update-ref', `refs/pull/${number}/head`, head.commit]);
    return name;
  }

  /** The first pull requests are of rejected proposals of these packages, the next ones of users; all are merged. */
  async function mergeBoth(rejected: readonly string[], users: readonly string[]): Promise<void> {
    const names: string[] = [];
    for (const one of rejected) names.push(await propose(one));
    await at.poll();
    for (const [index, name] of names.entries()) {
      await at.world.store.update(name, { action: 'reject' }, ANNA);
      await merge(index + 1);
    }
    for (const one of users) await at.pull({ [`${one}/c.yaml`]: MAP }, { branch: `fix-${one}` });
    for (const [index] of users.entries()) await merge(names.length + index + 1);
  }

  async function merge(number: number): Promise<void> {
    await at.merge(number, 'bob', 'squash');
    at.forge.change(number, { closedAt: timestamp(at.clock.now() + 1000 * seconds++) });
  }

  const merges = () => at.world.store.list().flatMap(({ name }) => (name.includes('.merge-') ? name : []));

  test('wait together', async () => {
    await mergeBoth(PACKAGES, PACKAGES);
    for (let turn = 0; turn < 6; turn += 1) await at.poll();
    expect(merges()).toEqual(PACKAGES.map((one, at) => `apps.${one}.merge-${at + 5}`));
  });

  test('are not passed by a later one of a proposal, which waits two minutes', async () => {
    await mergeBoth(['a', 'b'], ['a', 'b', 'c']);
    const last = await propose('c');
    const { commit } = mergeOnHost(at.path, at.world.store.get(last).commit, 'squash', 6);
    const { updatedAt } = at.forge.change(6, { state: 'merged', merged: { commit, by: 'bob' } });
    at.forge.change(6, { closedAt: updatedAt });
    await at.world.store.repository('apps').refresh();
    for (let turn = 0; turn < 5; turn += 1) await at.poll();
    await at.world.store.update(last, { action: 'approve', merged: { commit, recordBypass: true } }, ANNA);
    for (let turn = 0; turn < 12; turn += 1) await at.poll();
    expect(merges()).toContain('apps.c.merge-5');
  });
});
