import { beforeEach, describe, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import type { MergeStyle } from '../../../test/support/git/merge-on-host.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import {
  eachUserPulls,
  GATE,
  GATES,
  KPTFILE,
  MAP,
  TESTED,
  type UserPullBench,
} from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
});
const OTHER = `${MAP}data:\n  color: red\n`;
const BOB = 'bob@example.com';
/** Whom `approvers` does not map. */
const EVE = 'eve';

const tree = (commit: string) => git(at.path, ['rev-parse', `${commit}^{tree}`]);
const main = () => git(at.path, ['rev-parse', 'refs/heads/main']);
const outOfBand = (name: string) => at.world.store.get(name).outOfBand?.reason;

async function merge(number: number, by = 'bob', style: MergeStyle = 'merge'): Promise<void> {
  await at.merge(number, by, style);
  for (let turn = 0; turn < 2; turn += 1) await at.poll();
}

async function setHead(number: number, branch: string, commit: string): Promise<void> {
  writeRef(at.path, `refs/heads/${branch}`, commit);
  await at.world.store.repository('apps').refresh();
  at.forge.change(number, { head: { branch, commit, isSameRepository: true } });
  await at.poll();
}

/** The branch with the main branch merged into it. */
function updated(head: string): string {
  const parents = [head, main()];
  return writeCommit(at.path, {
    ...{ tree: git(at.path, ['merge-tree', '--write-tree', ...parents]), parents, message: 'Update branch\n' },
  });
}

function approve(how: 'review' | 'schedule', number: number, commit: string): void {
  if (how === 'review') at.forge.review(number, 'bob', 'approved', commit);
  else at.forge.schedules.set(number, { by: 'bob', at: '2030-01-01T00:00:01Z', commit });
}

async function approverOf(name: string): Promise<string | undefined> {
  const { record } = await at.world.store.evaluate(name);
  return record.steps.findLast(({ action }) => action === 'approve')?.by;
}

const WAYS = [
  ['review', EVE],
  ['schedule', 'bob'],
] as const;

describe('what was reviewed or scheduled is no approval', () => {
  test.each(WAYS)('of a package that it did not change: %s', async (how, by) => {
    await at.pull({ 'db/Kptfile': KPTFILE(), 'db/map.yaml': MAP }, { branch: 'one' });
    await merge(1);
    const reviewed = await at.pull({ 'web/Kptfile': KPTFILE() });
    await at.poll();
    expect(at.comment(2)).not.toContain('#### `db`');
    approve(how, 2, reviewed);
    await at.poll();
    await at.pull({ 'db/map.yaml': OTHER }, { branch: 'fix' });
    await merge(3);
    const message = 'small\n';
    const parents = [updated(reviewed)];
    await setHead(2, 'feature', writeCommit(at.path, { tree: tree(reviewed), parents, message }));
    await merge(2, by);
    expect(git(at.path, ['show', 'main:db/map.yaml'])).not.toContain('red');
    expect([outOfBand('apps.db.merge-2'), outOfBand('apps.web.merge-2')]).toEqual(['NotApproved', undefined]);
  });

  test.each(WAYS)(
    'of a content that the main branch has no more, of which it changed a condition: %s',
    async (how, by) => {
      await at.pull({ 'db/Kptfile': KPTFILE(), 'db/map.yaml': MAP }, { branch: 'one' });
      await merge(1);
      const reviewed = await at.pull({ 'db/Kptfile': KPTFILE('', TESTED) });
      approve(how, 2, reviewed);
      await at.poll();
      await at.pull({ 'db/map.yaml': OTHER }, { branch: 'fix' });
      await merge(3);
      const message = 'small\n';
      const parents = [updated(reviewed)];
      await setHead(2, 'feature', writeCommit(at.path, { tree: tree(reviewed), parents, message }));
      await merge(2, by);
      expect(outOfBand('apps.db.merge-2')).toBe('NotApproved');
    },
  );

  test('where the base was changed since', async () => {
    const db = { 'db/Kptfile': KPTFILE(), 'db/map.yaml': MAP };
    const release = await at.pull(db, { branch: 'release' });
    at.forge.change(1, { state: 'closed' });
    const both = await at.pull({ ...db, 'web/Kptfile': KPTFILE() });
    at.forge.change(2, { base: { branch: 'release' } });
    const head = writeCommit(at.path, { tree: tree(both), parents: [release], message: 'web\n' });
    await setHead(2, 'feature', head);
    at.forge.review(2, 'bob', 'approved', head);
    at.forge.change(2, { base: { branch: 'main' } });
    await at.poll();
    await merge(2, EVE);
    expect(outOfBand('apps.db.merge-2')).toBe('NotApproved');
  });

  test.each(WAYS)('once a gate was removed from the Kptfile: %s', async (how, by) => {
    await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED), 'web/map.yaml': MAP }, { branch: 'one' });
    await merge(1);
    const head = await at.pull({ 'web/map.yaml': OTHER });
    await at.poll();
    expect(at.titles(head)['sluice/ready']).toMatch(/^pending: 1 gate closed/);
    approve(how, 2, head);
    await at.poll();
    await at.pull({ 'web/Kptfile': KPTFILE() }, { onTop: true });
    await at.poll();
    await merge(2, by);
    expect(outOfBand('apps.web.merge-2')).toBe('NotApproved');
  });
});

test('the check waits for another review once a gate was removed from the Kptfile', async () => {
  await at.setPublishOn('review');
  const head = await at.pull({ 'web/Kptfile': KPTFILE(GATES) });
  at.forge.review(1, 'bob', 'approved', head);
  await at.poll();
  const later = await at.pull({ 'web/Kptfile': KPTFILE() }, { onTop: true });
  await at.poll();
  expect(at.titles(later)['sluice/ready']).toMatch(/^pending/);
  at.forge.review(1, 'bob', 'approved', later);
  await at.poll();
  expect(at.titles(later)['sluice/ready']).toMatch(/^success/);
});

describe('what was reviewed is an approval', () => {
  test.each<MergeStyle>(['merge', 'squash', 'rebase'])('after pushes to other packages: %s', async (style) => {
    const reviewed = await at.pull({ 'web/Kptfile': KPTFILE() });
    at.forge.review(1, 'bob', 'approved', reviewed);
    await at.pull({ 'db/Kptfile': KPTFILE() }, { onTop: true });
    await at.poll();
    await merge(1, EVE, style);
    expect([await approverOf('apps.web.merge-1'), outOfBand('apps.db.merge-1')]).toEqual([BOB, 'NotApproved']);
  });

  test.each<MergeStyle>(['merge', 'squash'])(
    'after an update of the branch with the main branch: %s',
    async (style) => {
      const reviewed = await at.pull({ 'web/Kptfile': KPTFILE() });
      at.forge.review(1, 'bob', 'approved', reviewed);
      await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'other' });
      await merge(2);
      await setHead(1, 'feature', updated(reviewed));
      await merge(1, EVE, style);
      expect(await approverOf('apps.web.merge-1')).toBe(BOB);
    },
  );

  test.each(['before', 'after'])('of a rebased branch, %s the review', async (when) => {
    const first = await at.pull({ 'web/Kptfile': KPTFILE() });
    if (when === 'after') at.forge.review(1, 'bob', 'approved', first);
    await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'other' });
    await merge(2);
    const parents = [main()];
    const rebased = writeCommit(at.path, { tree: tree(updated(first)), parents, message: 'web\n' });
    await setHead(1, 'feature', rebased);
    if (when === 'before') at.forge.review(1, 'bob', 'approved', rebased);
    await merge(1, EVE, 'rebase');
    expect(await approverOf('apps.web.merge-1')).toBe(BOB);
  });

  test('of a condition alone, while the main branch has the content', async () => {
    await at.pull({ 'web/Kptfile': KPTFILE() }, { branch: 'one' });
    await merge(1);
    const reviewed = await at.pull({ 'web/Kptfile': KPTFILE('', TESTED) });
    at.forge.review(2, 'bob', 'approved', reviewed);
    await at.poll();
    await merge(2, EVE);
    expect(await approverOf('apps.web.merge-2')).toBe(BOB);
  });

  test('after a gate was added to the Kptfile', async () => {
    const reviewed = await at.pull({ 'web/Kptfile': KPTFILE() });
    at.forge.review(1, 'bob', 'approved', reviewed);
    await at.pull({ 'web/Kptfile': KPTFILE(GATES, TESTED) }, { onTop: true });
    await at.poll();
    await merge(1, EVE);
    expect(at.world.store.get('apps.web.merge-1').kptfile?.info?.readinessGates).toEqual([{ conditionType: GATE }]);
    expect(await approverOf('apps.web.merge-1')).toBe(BOB);
  });
});

test('the commits that the main branch is ahead are not read again for each package of a reviewed commit', async () => {
  const paths = Array.from({ length: 10 }, (_, number) => `p${number}/Kptfile`);
  const head = await at.pull(Object.fromEntries(paths.map((path) => [path, KPTFILE()])));
  const base = main();
  let tip = base;
  for (let number = 0; number < 20; number += 1)
    tip = writeCommit(at.path, { tree: tree(base), parents: [tip], message: `${number}\n` });
  writeRef(at.path, 'refs/heads/main', tip);
  await at.world.store.repository('apps').refresh();
  await at.poll();
  const { git: repository } = at.world.store.repository('apps');
  const readCommit = repository.readCommit.bind(repository);
  const reads = new Map<string, number>();
  repository.readCommit = (oid) => {
    reads.set(oid, (reads.get(oid) ?? 0) + 1);
    return readCommit(oid);
  };
  at.forge.review(1, 'bob', 'approved', head);
  await at.poll();
  const between = git(at.path, ['rev-list', '--skip=1', `${base}..${tip}`]).split('\n');
  expect(Math.max(...between.map((oid) => reads.get(oid) ?? 0))).toBeLessThan(paths.length);
});
