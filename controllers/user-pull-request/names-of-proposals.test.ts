import { beforeEach, describe, expect, test } from 'vitest';
import { timestamp } from '../../src/foundation/time/clock.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../../src/package/model/policy/review-policy.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { git, readRef } from '../../test/support/git/git-cli.ts';
import { writeCommit, writeRef } from '../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../test/support/user-pull-bench.ts';
import { batchBranch } from '../pull-request/batch/batch-name.ts';
import { proposalId } from '../pull-request/text/section.ts';

const BRANCH = 'proposed/app/w1';
const NAME = 'apps.app.w1';
const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  await at.poll();
});

const merges = () =>
  at.world.store
    .list()
    .flatMap(({ name, outOfBand }) => (name.includes('.merge-') ? `${name} ${outOfBand?.reason}` : []));
const update = (action: 'propose' | 'reject' | 'approve' | 'delete') => at.world.store.update(NAME, { action }, ANNA);

async function draft(): Promise<void> {
  await at.world.draft('apps/app/w1', { 'a.yaml': MAP });
}

async function publish(): Promise<void> {
  const reviewed = { type: REVIEWED_TYPE, status: 'True' } as const;
  await at.world.store.change(NAME, { conditions: [reviewed] }, { actor: { name: REVIEW_ACTOR }, face: 'controller' });
  await update('approve');
}

/** Has the host report a pull request of a branch. */
async function openFor(branch: string): Promise<void> {
  const { number } = await at.forge.open({ head: branch, base: 'main', title: 'change', body: '' });
  const commit = readRef(at.path, `refs/heads/${branch}`) ?? '';
  at.forge.change(number, { head: { branch, commit, isSameRepository: true } });
}

/** The host merges it and removes its branch, by the clock of Sluice. */
async function merge(number: number): Promise<string> {
  const { commit: head = '' } = at.forge.pulls[number - 1]?.head ?? {};
  git(at.path, ['update-ref', `refs/pull/${number}/head`, head]);
  const commit = await at.merge(number, 'bob');
  at.forge.change(number, { closedAt: timestamp(at.clock.now()) });
  return commit;
}

describe('a pull request of a user from a branch with the name of a proposal, which is removed with the merge', () => {
  const HISTORIES: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['of a draft that was never proposed', draft],
    [
      'of a rejected proposal',
      async () => {
        await draft();
        for (const action of ['propose', 'reject'] as const) await update(action);
      },
    ],
    [
      'of a proposal that was deleted',
      async () => {
        await draft();
        for (const action of ['propose', 'reject', 'delete'] as const) await update(action);
      },
    ],
    [
      'of a publication that was deleted',
      async () => {
        await draft();
        await update('propose');
        await publish();
        await at.delete(NAME);
      },
    ],
    [
      'of which a user has pushed a record',
      async () => {
        const tree = git(at.path, ['rev-parse', 'main^{tree}']).trim();
        const { layout } = at.world.store.repository('apps');
        for (const of of ['app/w1', 'x'])
          writeRef(at.path, `${layout.recordPrefix}${of}`, writeCommit(at.path, { tree, parents: [], message: 'x\n' }));
      },
    ],
  ];

  test.each(HISTORIES.flatMap(([what, begin]) => [false, true].map((restarts) => ({ what, begin, restarts }))))(
    'is published, and checked before: $what, after a restart: $restarts',
    async ({ begin, restarts }) => {
      await begin();
      // What is on the main branch of it.
      const there = git(at.path, ['ls-tree', '-r', '--name-only', 'main', 'app/']).split('\n').filter(Boolean);
      const removed = Object.fromEntries(there.map((file) => [file, null]));
      const commit = await at.pull({ ...removed, 'db/Kptfile': KPTFILE(), 'db/a.yaml': MAP }, { branch: BRANCH });
      for (let turn = 0; turn < 12; turn += 1) await at.poll();
      expect(at.titles(commit)).toMatchObject({ 'sluice/ready': expect.stringMatching(/^success/) });
      if (restarts) at.restart();
      await merge(1);
      for (let turn = 0; turn < 2; turn += 1) await at.poll();
      expect(merges()).toEqual(['apps.db.merge-1 undefined']);
    },
  );

  test('is published where the record of another folder was pushed', async () => {
    const tree = git(at.path, ['rev-parse', 'main^{tree}']).trim();
    const { layout } = at.world.store.repository('apps');
    writeRef(at.path, `${layout.recordPrefix}x`, writeCommit(at.path, { tree, parents: [], message: 'x\n' }));
    const commit = await at.pull({ 'db/Kptfile': KPTFILE() }, { branch: 'proposed/x' });
    await at.poll();
    expect(at.titles(commit)).toMatchObject({ 'sluice/ready': expect.stringMatching(/^success/) });
    await merge(1);
    for (let turn = 0; turn < 2; turn += 1) await at.poll();
    expect(merges()).toEqual(['apps.db.merge-1 undefined']);
  });

  test.each([false, true])(
    'is published where the package was proposed before that is read; and published: %s',
    async (publishes) => {
      await at.pull({ 'db/Kptfile': KPTFILE(), 'db/a.yaml': MAP }, { branch: BRANCH });
      await merge(1);
      await draft();
      await update('propose');
      if (publishes) await publish();
      for (let turn = 0; turn < 2; turn += 1) await at.poll();
      expect(merges()).toEqual(['apps.db.merge-1 undefined']);
    },
  );
});

describe('a shared branch that a user has made', () => {
  /** It has the form of one of Sluice, for the proposal of `app`. */
  async function forge(suffix: string, files: Readonly<Record<string, string>>): Promise<void> {
    const { uid, record } = at.world.store.get(NAME);
    const proposal = proposalId(uid, record?.steps ?? []);
    await at.pull(files, { branch: 'made' });
    at.forge.change(1, { state: 'closed' });
    const tree = git(at.path, ['rev-parse', 'made^{tree}']).trim();
    const message = `Propose\n\nSluice-Batch-Member: ${proposal} ${NAME}\nSluice-Batch-Tree: ${tree}\n`;
    const commit = git(at.path, ['commit-tree', tree, '-p', 'main', '-m', message]).trim();
    const branch = suffix === '' ? batchBranch('default/apps', proposal) : batchBranch('default/apps', suffix);
    writeRef(at.path, `refs/heads/${branch}`, commit);
    await at.world.store.repository('apps').refresh();
    await openFor(branch);
  }

  test.each([
    [true, 'evil'],
    [true, ''],
    [false, 'evil'],
    [false, ''],
  ])('is one of a user where it has other content: shared %s, name %j', async (isShared, suffix) => {
    if (isShared) await at.shareProposals();
    await draft();
    await update('propose');
    await forge(suffix, { 'app/Kptfile': KPTFILE(), 'app/a.yaml': MAP.replace('web', 'evil') });
    await at.poll();
    at.restart();
    await merge(2);
    for (let turn = 0; turn < 2; turn += 1) await at.poll();
    expect(merges()).toEqual(['apps.app.merge-2 undefined']);
  });
});

describe('the merge of a proposal that had ended', () => {
  const reports = async () => (await at.world.events('apps')).filter((one) => one.startsWith('MergeNotPublished'));

  test.each([false, true])(
    'is reported once if the controller of proposals has not, after a restart: %s',
    async (restarts) => {
      await draft();
      await update('propose');
      await openFor(BRANCH);
      await update('reject');
      at.clock.advance(3 * 86_400_000);
      await merge(1);
      if (restarts) at.restart();
      for (let turn = 0; turn < 20; turn += 1) await at.poll();
      expect([merges(), await reports()]).toEqual([[], []]);
      for (let turn = 0; turn < 10; turn += 1) await at.poll();
      expect(await reports()).toEqual([expect.stringContaining('was merged by bob, and publishes nothing')]);
      at.restart();
      for (let turn = 0; turn < 30; turn += 1) await at.poll();
      expect(await reports()).toHaveLength(1);
      expect(merges()).toEqual([]);
    },
  );

  test.each([
    ['is not reported where the controller of proposals has done it', true],
    ['is reported where only a comment, which users edit, is about that', false],
  ])('%s', async (_, isReported) => {
    await draft();
    await update('propose');
    await openFor(BRANCH);
    await update('reject');
    await merge(1);
    await at.forge.setComment(1, 'lost-merge', 'reported');
    const apps = await at.world.client.get(repositoryKind, { name: 'apps' });
    const text = `${at.forge.pulls[0]?.url} was merged by bob, and publishes nothing`;
    if (isReported) at.world.recorder('controller:pull-request').record(apps, 'Warning', 'MergeNotPublished', text);
    for (let turn = 0; turn < 30; turn += 1) await at.poll();
    expect([merges(), await reports()]).toEqual([[], [expect.stringMatching(isReported ? /nothing$/ : /had ended/)]]);
  });
});
