import { beforeEach, expect, test } from 'vitest';
import type { MergeStyle } from '../../../test/support/git/merge-on-host.ts';
import {
  eachUserPulls,
  GATES,
  KPTFILE,
  MAP,
  TESTED,
  type UserPullBench,
} from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
const OTHER = MAP.replace('web', 'other');
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
});

async function push(files: Readonly<Record<string, string>>): Promise<void> {
  await at.world.push(at.path, files);
  await at.world.store.repository('apps').refresh();
  await at.poll();
}

/** Merges the pull request with this head. The host has removed its branch, and has the head again after so many polls. */
async function mergeWithout(commit: string, style: MergeStyle, polls: number): Promise<void> {
  await at.merge(1, 'bob', style);
  const head = { branch: 'feature', commit, isSameRepository: true };
  at.forge.change(1, { head: { ...head, commit: 'd'.repeat(40) } });
  for (let count = 0; count < 10; count += 1) {
    // As the same change of it.
    if (count === polls) Object.assign(at.forge.pulls[0] ?? {}, { head });
    await at.poll();
  }
}

const lifecycle = (name: string) => at.world.store.find(name)?.lifecycle;
const unpublished = async () => (await at.world.events('apps')).filter((one) => one.startsWith('MergeNotPublished'));

test.each([
  ['soon', 1, 'Published', false],
  ['late', 5, 'Published', true],
  ['never', 99, undefined, true],
])(
  'a rebase of two commits publishes the package of each, or reports that there may be more; its head arrives %s',
  async (_, polls, first, isReported) => {
    await push({ 'README.md': 'start' });
    await at.pull({ 'api/Kptfile': KPTFILE(), 'api/map.yaml': MAP });
    at.clock.advance(2000);
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP }, { onTop: true });
    await push({ 'README.md': 'moved' });
    await mergeWithout(commit, 'rebase', polls);
    expect([lifecycle('apps.api.merge-1'), lifecycle('apps.web.merge-1')]).toEqual([first, 'Published']);
    const reports = await unpublished();
    expect(reports).toEqual(
      isReported ? [expect.stringContaining('may have changed more packages, which are not published: its head')] : [],
    );
    if (first === undefined) expect(at.comment(1, 'merged')).toContain('**It may have changed more packages');
  },
);

test.each([
  ['from the beginning', 0],
  ['soon', 1],
  ['never', 99],
])(
  'a condition of a branch does not count for what a squash combines with the main branch; the head is there %s',
  async (_, polls) => {
    await push({ 'web/Kptfile': KPTFILE(GATES), 'web/map.yaml': MAP, 'web/other.yaml': OTHER });
    const files = { 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': `${MAP}data: {a: b}\n` };
    const commit = await at.pull(files);
    await at.world.push(at.path, { 'web/other.yaml': `${OTHER}data: {c: d}\n` });
    await mergeWithout(commit, 'squash', polls);
    expect(at.world.store.find('apps.web.merge-1')?.outOfBand).toMatchObject({ reason: 'GateUnmet' });
    expect(await unpublished()).toEqual([]);
  },
);

test('what a squash has of its branch alone is published in band once its head has arrived', async () => {
  await push({ 'web/Kptfile': KPTFILE(GATES), 'web/map.yaml': MAP });
  const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': `${MAP}data: {a: b}\n` });
  await mergeWithout(commit, 'squash', 1);
  const revision = at.world.store.find('apps.web.merge-1');
  expect(revision).toMatchObject({ lifecycle: 'Published' });
  expect(revision?.outOfBand).toBeUndefined();
});

test.each(['d'.repeat(40), ''])(
  'the conditions of a merge commit count, which has its head, where the host reports %j for that',
  async (commit) => {
    await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP });
    await at.poll();
    await at.merge(1, 'bob');
    at.forge.change(1, { head: { branch: 'feature', commit, isSameRepository: true } });
    for (let turn = 0; turn < 2; turn += 1) await at.poll();
    expect(at.world.store.get('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(await at.world.events('apps')).toEqual([]);
  },
);
