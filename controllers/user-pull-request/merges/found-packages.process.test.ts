import { beforeEach, describe, expect, test } from 'vitest';
import { eachUserPulls, GATES, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';
import { type HostMerge, hostMerges } from '../../pull-request/merged/host-merges.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
});

const push = async (files: Readonly<Record<string, string>>) => {
  await at.world.push(at.path, files);
  await at.world.store.repository('apps').refresh();
};
const ready = (commit: string) => at.titles(commit)['sluice/ready'];
const unpublished = async () =>
  (await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished: '));

describe('a package that moves into its own folder', () => {
  // The one on the main branch is a package as well until the merge.
  const NESTED = /^failure: The merge will not publish the package shop\/prod: packages cannot be nested/;
  const MOVE = { 'shop/Kptfile': null, 'shop/map.yaml': null };

  test.each([
    [
      'with a mistake',
      { 'shop/prod/Kptfile': KPTFILE(), 'shop/prod/map.yaml': 'a: [' },
      /^failure: 1 error: shop\/prod/,
    ],
    ['with a closed gate', { 'shop/prod/Kptfile': KPTFILE(GATES) }, NESTED],
  ])('is judged and published there: %s', async (_, files, title) => {
    await push({ 'shop/Kptfile': KPTFILE(), 'shop/map.yaml': MAP });
    const commit = await at.pull({ ...MOVE, ...files });
    await at.poll();
    expect(ready(commit)).toMatch(title);
    expect(at.comment(1)).toContain('#### `shop`\n\nThe package is removed.');
    await at.merge(1, 'bob');
    await at.poll();
    expect(at.comment(1, 'merged')).toContain('`shop` was removed');
    expect(at.comment(1, 'merged')).toContain('`shop/prod` is **out of band** as `apps.shop.prod.merge-1`');
  });

  test('and was published fails the check, since its tags exclude those of the other', async () => {
    await at.pull({ 'shop/Kptfile': KPTFILE(), 'shop/map.yaml': MAP });
    await at.poll();
    await at.merge(1, 'bob');
    await at.poll();
    const commit = await at.pull({ ...MOVE, 'shop/prod/Kptfile': KPTFILE() }, { branch: 'second' });
    await at.poll();
    expect(ready(commit)).toMatch(NESTED);
    await at.merge(2, 'bob');
    await at.poll();
    expect(at.comment(2, 'merged')).toContain('`shop/prod` is **not published**: `packages cannot be nested');
    expect(await unpublished()).toEqual([expect.stringContaining('the merge of shop/prod by ')]);
  });

  test('is judged as a whole where it was a subpackage before, or a folder', async () => {
    await push({
      ...{ 'shop/Kptfile': KPTFILE(), 'shop/prod/Kptfile': KPTFILE(), 'shop/prod/map.yaml': 'a: [' },
      ...{ 'team/web/map.yaml': 'b: [', 'team/web/other.yaml': MAP },
    });
    const commit = await at.pull({
      ...{ 'shop/Kptfile': null, 'team/web/Kptfile': KPTFILE(), 'team/web/other.yaml': 'c: [' },
    });
    await at.poll();
    const { annotations = [] } = at.forge.checks.get(commit)?.get('sluice/ready') ?? {};
    expect(annotations.map(({ path, title }) => `${path} ${title}`)).toEqual([
      ...['shop/prod/map.yaml InvalidYaml', 'team/web/map.yaml InvalidYaml', 'team/web/other.yaml InvalidYaml'],
    ]);
    await at.merge(1, 'bob');
    await at.poll();
    for (const name of ['shop.prod', 'team.web'])
      expect(at.world.store.find(`apps.${name}.merge-1`)?.outOfBand?.message).toMatch(/: Rendered$/);
  });
});

test('a folder that becomes a package has those in it as subpackages', async () => {
  await push({ 'shop/prod/Kptfile': KPTFILE(), 'shop/test/Kptfile': KPTFILE(), 'shop/prod/map.yaml': MAP });
  const commit = await at.pull({
    ...{ 'shop/Kptfile': KPTFILE(), 'shop/test/Kptfile': null, 'shop/prod/map.yaml': 'a: [' },
  });
  await at.poll();
  const { annotations = [] } = at.forge.checks.get(commit)?.get('sluice/ready') ?? {};
  expect(annotations.map(({ path, title }) => `${path} ${title}`)).toEqual(['shop/prod/map.yaml InvalidYaml']);
  await at.merge(1, 'bob');
  await at.poll();
  expect(at.world.store.find('apps.shop.merge-1')?.outOfBand?.message).toMatch(/: Rendered$/);
  expect(at.world.store.find('apps.shop.prod.merge-1')).toBeUndefined();
});

describe('a Kptfile that is a symbolic link', () => {
  test.each([
    ['in place of a file', { 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP }],
    ['in a new folder', { 'README.md': 'text' }],
  ])('fails the check, and the merge reports that nothing is published: %s', async (_, main) => {
    await push(main);
    const commit = await at.pull(
      { 'web/Kptfile': null, 'web/other': KPTFILE() },
      { links: { 'web/Kptfile': 'other' } },
    );
    await at.poll();
    expect(ready(commit)).toMatch(/^failure: 1 error: web\/Kptfile:1: it is a symbolic link/);
    await at.merge(1, 'bob');
    await at.poll();
    expect(at.comment(1, 'merged')).toContain('`web` is **not published**: `its Kptfile is a symbolic link');
    expect(await unpublished()).toEqual([expect.stringContaining('its Kptfile is a symbolic link')]);
    // The same where it is the main branch that has it.
    const second = await at.pull({ 'web/new.yaml': MAP }, { branch: 'second' });
    await at.poll();
    expect(ready(second)).toMatch(/^failure: 1 error: web\/Kptfile:1: it is a symbolic link/);
    const third = await at.pull({ 'web/Kptfile': KPTFILE() }, { branch: 'third' });
    await at.poll();
    expect(ready(third)).toMatch(/^success/);
    await at.merge(3, 'bob');
    await at.poll();
    expect(at.world.store.find('apps.web.merge-3')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });
});

describe('packages behind more folders than are read', () => {
  const wide = Object.fromEntries(Array.from({ length: 1005 }, (_, one) => [`docs/d${one}/x.md`, `${one}`]));
  const deep = { [`${Array.from({ length: 52 }, (_, one) => `d${one}`).join('/')}/Kptfile`]: KPTFILE() };

  test.each([
    ['too many', wide, {}],
    ['too deep', deep, {}],
    ['beside one that is known', deep, { 'api/Kptfile': KPTFILE() }],
  ])('fail the check, and the merge reports them once: %s', async (_, folders, known) => {
    const isKnown = Object.keys(known).length > 0;
    const commit = await at.pull({ ...folders, ...known, 'zzz/README.md': 'text' });
    await at.poll();
    expect(ready(commit)).toMatch(/^failure: The branch changes too many folders, or too deep or malformed ones/);
    await at.merge(1, 'bob');
    const counted: HostMerge[] = [];
    const stop = hostMerges.subscribe((one) => void counted.push(one));
    await at.poll().finally(stop);
    expect(counted.map(({ result }) => result)).toEqual([...(isKnown ? ['published'] : []), 'not_published']);
    const text = at.comment(1, 'merged');
    expect(text).toContain('**It may have changed more packages, which are not published:**');
    expect(text?.includes('The packages that were merged:')).toBe(isKnown);
    expect(await unpublished()).toEqual([expect.stringMatching(/the merge of .* may have changed more packages/)]);
    await at.poll();
    at.restart();
    await at.poll();
    expect(at.world.store.find('apps.api.merge-1')?.lifecycle).toBe(isKnown ? 'Published' : undefined);
    expect(at.comment(1, 'merged')).toBe(text);
    expect(await unpublished()).toHaveLength(1);
  });

  test('are not reported where no policy lets merges publish', async () => {
    await at.setPublishOn('approval');
    await at.pull(deep);
    await at.poll();
    await at.merge(1, 'bob');
    await at.poll();
    expect(at.comment(1, 'merged')).toBeUndefined();
    expect(await unpublished()).toEqual([]);
  });
});
