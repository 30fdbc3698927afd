import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(() => {
  at = open();
  const get = at.forge.get.bind(at.forge);
  at.forge.get = async (number) => {
    const pull = await get(number);
    if (pull.number !== number) throw new SluiceError('NotFound', 'status 404');
    return pull;
  };
});

/** The numbers of the others stay as they are. */
function deletePull(number: number): void {
  const { updatedAt: _, ...pull } = at.forge.change(number, {});
  at.forge.pulls[number - 1] = { ...pull, number: 0, state: 'closed', updatedAt: '2000-01-01T00:00:00Z' };
}
function hide(...methods: string[]): void {
  at.forge.before = (method) => {
    if (methods.includes(method)) throw new SluiceError('NotFound', 'status 404');
  };
}
async function messages(reason: string): Promise<readonly string[]> {
  const { items } = await at.world.client.list(eventKind);
  return items.flatMap((event) => (event.reason === reason ? (event.message ?? '') : []));
}

describe('a merged pull request that the host does not find', () => {
  beforeEach(async () => {
    for (const one of ['a', 'b']) await at.world.publish((await at.world.draft(`apps/${one}/w0`)).name);
    await at.policy({ publishOn: 'merge' });
    await at.poll();
    await at.pull({ 'a/c.yaml': MAP }, { branch: 'fix-a' });
    await at.pull({ 'b/c.yaml': MAP }, { branch: 'fix-b' });
    await at.merge(1, 'bob', 'squash');
    await at.merge(2, 'bob', 'squash');
  });
  async function turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) await at.poll().catch(() => undefined);
  }
  const merges = () => at.world.store.list().flatMap(({ name }) => (name.includes('.merge-') ? name : []));

  test('does not hold up later ones where it was deleted, which an event reports', async () => {
    at.forge.before = (method) => {
      if (method !== 'get') return;
      at.forge.before = () => undefined;
      deletePull(1);
    };
    await turns(10);
    expect(merges()).toEqual(['apps.b.merge-2']);
    expect(await messages('MergeNotPublished')).toEqual([expect.stringMatching(/pulls\/1 was merged.*was deleted/)]);
  });

  test.each([[['get']], [['get', 'listUpdated']]])(
    'is published once it is found again, after no response for %j',
    async (methods) => {
      hide(...methods);
      await turns(methods.length === 1 ? 1 : 10);
      at.forge.before = () => undefined;
      await turns(10);
      expect(merges()).toEqual(['apps.a.merge-1', 'apps.b.merge-2']);
    },
  );
});

describe('an open pull request that the host does not find', () => {
  let commit: string;
  beforeEach(async () => {
    await at.policy();
    commit = await at.pull({ 'web/Kptfile': KPTFILE() });
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
  });

  test('is not read for ever where it was deleted', async () => {
    deletePull(1);
    expect(await at.check(1)).toMatchObject({ requeueAfter: 60_000 });
    expect(await at.check(1)).toBeUndefined();
    at.forge.calls.length = 0;
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(await at.check(1)).toBeUndefined();
    expect(at.forge.calls).not.toContain('get');
    expect(await messages('PullRequestsNotChecked')).toEqual([]);
  });

  test('has no part in the check of another one with its head any more', async () => {
    git(at.path, ['update-ref', 'refs/heads/same', commit]);
    await at.world.store.repository('apps').refresh();
    const { number } = await at.forge.open({ head: 'same', base: 'main', title: 'same', body: '' });
    at.forge.change(number, { head: { branch: 'same', commit, isSameRepository: true } });
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    const text = () => at.forge.checks.get(commit)?.get('sluice/ready')?.text ?? '';
    expect(text()).toContain('#1 to main');
    deletePull(1);
    await at.check(1);
    await at.check(1);
    await at.poll();
    expect(text()).not.toContain('#1 to main');
  });

  test('is checked once it is found again, where the repository cannot be seen', async () => {
    hide('get', 'listUpdated');
    for (let turn = 0; turn < 3; turn += 1) expect(await at.check(1)).toMatchObject({ requeueAfter: 60_000 });
    expect(await messages('PullRequestsNotChecked')).toHaveLength(1);
    at.forge.before = () => undefined;
    at.forge.checks.clear();
    const head = await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP });
    await at.poll();
    expect(at.forge.checks.has(head)).toBe(true);
  });
});
