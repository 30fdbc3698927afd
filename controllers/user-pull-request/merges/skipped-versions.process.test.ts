import { beforeEach, describe, expect, test, vi } from 'vitest';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { writeRef } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  await at.world.push(at.path, { 'README.md': 'start' });
  await at.world.store.repository('apps').refresh();
  await at.poll();
});

async function pushTag(tag: string): Promise<void> {
  writeRef(at.path, `refs/tags/${tag}`, readRef(at.path, 'refs/heads/main') ?? '');
  await at.world.store.repository('apps').refresh();
}

async function mergeFirst(): Promise<void> {
  await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP });
  await at.poll();
  await at.merge(1, 'bob');
  await at.poll();
}

describe.each([[[]], [['web/v1']], [['web/v1', 'web/v2']]])(
  'a publication above the tags %s that was deleted',
  (tags) => {
    const list = () => at.world.store.list().map(({ name, revision }) => `${name} v${revision}`);
    beforeEach(async () => {
      for (const tag of tags) await pushTag(tag);
      await mergeFirst();
      const published = { lifecycle: 'Published', revision: tags.length + 1 };
      expect(at.world.store.find('apps.web.merge-1')).toMatchObject(published);
      for (const action of ['propose-deletion', 'delete'] as const)
        await at.world.store.update('apps.web.merge-1', { action }, { actor: { name: 'anna' }, face: 'api' });
    });

    test.each(['a restart', 'a restart without these tags', 'a new title'])(
      'does not come back after %s',
      async (after) => {
        if (after === 'a restart without these tags') {
          for (const tag of tags) git(at.path, ['update-ref', '-d', `refs/tags/${tag}`]);
          await at.world.store.repository('apps').refresh();
        }
        const before = list();
        if (after === 'a new title') at.forge.change(1, { title: 'renamed' });
        else at.restart();
        at.clock.advance(60_000);
        for (let turn = 0; turn < 4; turn += 1) await at.poll(60_000);
        expect(list()).toEqual(before);
      },
    );
  },
);

test('a pushed tag with the highest number does not occupy the process', async () => {
  await mergeFirst();
  at.clock.advance(2000);
  // It looks as that of a proposal, whose publication is searched in the marks.
  const commit = await at.pull({ 'api.txt': 'x' }, { branch: 'second' });
  await at.merge(2, 'bob');
  at.forge.change(2, { head: { branch: 'proposed/web/mine', commit, isSameRepository: true } });
  await pushTag('web/v999999999');
  const { trust } = at.world.store.repository('apps');
  const mark = trust.mark.bind(trust);
  let marks = 0;
  vi.spyOn(trust, 'mark').mockImplementation((scope) => {
    marks += 1;
    if (marks > 100_000) throw new Error('too many marks are read');
    return mark(scope);
  });
  at.restart();
  for (let turn = 0; turn < 3; turn += 1) await at.poll(60_000);
  expect(marks).toBeLessThan(10_000);
});
