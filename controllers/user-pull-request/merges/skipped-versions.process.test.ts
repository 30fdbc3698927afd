import { beforeEach, describe, expect, test, vi } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
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

/** It shows no revision: its commit has no package. */
async function pushTag(tag: string): Promise<void> {
  writeRef(at.path, `refs/tags/${tag}`, git(at.path, ['rev-list', '--max-parents=0', 'main']).trim());
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

describe('the content that a deletion left on the main branch', () => {
  const filesOf = (number: number) => ({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': `${MAP}data: {n: "${number}"}\n` });
  async function mergeNext(number: number): Promise<void> {
    await at.pull(filesOf(number), { branch: `feature-${number}` });
    await at.poll();
    at.clock.advance(2000);
    await at.merge(number, 'bob');
    await at.poll();
  }
  async function removeTag(tag: string): Promise<void> {
    git(at.path, ['update-ref', '-d', `refs/tags/${tag}`]);
    await at.world.store.repository('apps').refresh();
  }
  async function deleteSecond(revision: number): Promise<void> {
    await mergeNext(2);
    expect(at.world.store.find('apps.web.merge-2')).toMatchObject({ lifecycle: 'Published', revision });
    for (const action of ['propose-deletion', 'delete'] as const)
      await at.world.store.update('apps.web.merge-2', { action }, { actor: { name: 'anna' }, face: 'api' });
  }
  const onMain = (repository: string) => at.world.store.find(`${repository}.web.main`)?.outOfBand?.reason;

  test.each([
    ['a tag below its number was removed', 3, () => removeTag('web/v2')],
    ['a tag with its number was pushed', 2, () => pushTag('web/v2')],
  ] as const)('stays in band for each process after %s', async (_, revision, change) => {
    await mergeNext(1);
    if (revision === 3) await pushTag('web/v2');
    await deleteSecond(revision);
    expect(onMain('apps')).toBeUndefined();
    await change();
    await at.world.register('other', { repo: at.path });
    expect([onMain('apps'), onMain('other')]).toEqual([undefined, undefined]);
    expect(at.world.store.find('other.web.main')).toBeDefined();
  });

  test('does not count any more once a lower number was published, which another tag had kept from being used', async () => {
    await mergeNext(1);
    await pushTag('web/v2');
    await deleteSecond(3);
    await removeTag('web/v2');
    await mergeNext(3);
    expect(at.world.store.find('apps.web.merge-3')).toMatchObject({ lifecycle: 'Published', revision: 2 });
    expect(onMain('apps')).toBeUndefined();
    await at.world.push(at.path, filesOf(2));
    await at.world.store.repository('apps').refresh();
    await at.world.register('other', { repo: at.path });
    expect([onMain('apps'), onMain('other')]).toEqual(['MainDiffers', 'MainDiffers']);
  });
});

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
