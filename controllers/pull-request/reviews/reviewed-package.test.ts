import { beforeEach, describe, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { BERTA, eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { readingsOf } from '../batch/testing-batches.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});
const CARLA = { actor: { name: 'carla' }, face: 'cli' } as const;
const BOB = 'bob@example.com';
const map = (name: string) => `kind: A\napiVersion: v1\nmetadata: {name: ${name}}\n`;

describe('a review of a shared pull request', () => {
  const { headOf } = readingsOf(() => at);

  async function copy(source: string, workspace: string): Promise<string> {
    const wanted = { package: 'db', workspace, source: { type: 'copy', source } } as const;
    return (await at.world.store.create('default/apps', wanted, BERTA)).name;
  }

  test.each(['review', 'merge'])('is no approval of a proposal that joins later: publishOn %s', async (publishOn) => {
    at.serveBranches();
    const { store } = at.world;
    const { name: first } = await at.world.draft('apps/db/w1', { 'a.yaml': map('old') });
    await store.update(first, { action: 'propose' }, BERTA);
    await store.update(first, { action: 'approve' }, CARLA);
    await at.policy({ batch: {}, publishOn }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const [web = ''] = await at.proposeAll('web');
    await at.settle();
    at.forge.review(1, 'bob', 'approved', await headOf(1));
    await at.settle();
    const fix = await copy(first, 'w2');
    await at.world.push(at.path, { 'db/a.yaml': map('fixed') }, 'drafts/db/w2');
    await store.repository('apps').sync();
    await store.update(fix, { action: 'propose' }, BERTA);
    await at.set(fix, 'True');
    await at.settle();
    await store.update(fix, { action: 'approve' }, CARLA);
    await at.settle();
    // It takes the fix back.
    const back = await copy(first, 'w3');
    await store.update(back, { action: 'propose' }, BERTA);
    await at.settle();
    for (const name of [back, web]) await at.set(name, 'True');
    await at.settle();
    if (publishOn === 'merge') await at.mergeAs(1, 'eve');
    await at.settle();
    const approvedByBob = async (name: string) =>
      (await store.evaluate(name)).record.steps.some(({ by }) => by === BOB);
    expect([await approvedByBob(back), await approvedByBob(web)]).toEqual([false, true]);
  });

  test.each(['the head', 'a commit that contains the head'])(
    'counts after a merge into the main branch whose first parent is %s',
    async (what) => {
      at.serveBranches();
      await at.policy({ batch: {}, publishOn: 'merge' }, { approval: { quorum: { required: 2 } } });
      const names = await at.proposeAll('web', 'db');
      await at.settle();
      for (const user of ['bob', 'carl']) at.forge.review(1, user, 'approved', await headOf(1));
      await at.settle();
      await at.world.push(at.path, { 'README.md': 'x' });
      await at.world.store.repository('apps').sync();
      await at.settle();
      const head = await headOf(1);
      const base = git(at.path, ['rev-parse', 'refs/heads/main']);
      const onTop = { tree: git(at.path, ['rev-parse', `${head}^{tree}`]), parents: [head], message: 'Empty\n' };
      const parents = [what === 'the head' ? head : writeCommit(at.path, onTop), base];
      const tree = git(at.path, ['merge-tree', '--write-tree', ...parents]);
      const commit = writeCommit(at.path, { tree, parents, message: 'Merge branch main\n' });
      writeRef(at.path, 'refs/heads/main', commit);
      const { updatedAt: closedAt } = at.forge.change(1, { state: 'merged', merged: { commit, by: 'eve', base } });
      at.forge.change(1, { closedAt });
      await at.world.store.repository('apps').sync();
      await at.settle(120_000);
      for (const name of names) {
        const { record } = await at.world.store.evaluate(name);
        expect(record.steps.map(({ by }) => by)).toContain(BOB);
        expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
      }
    },
  );

  test('publishes an unchanged copy of the published package, which it lists', async () => {
    at.serveBranches();
    const { store } = at.world;
    const { name: first } = await at.world.draft('apps/db/w1', { 'a.yaml': map('old') });
    await store.update(first, { action: 'propose' }, BERTA);
    await store.update(first, { action: 'approve' }, CARLA);
    await at.policy({ batch: {}, publishOn: 'review' });
    const [web = ''] = await at.proposeAll('web');
    const same = await copy(first, 'w2');
    await store.update(same, { action: 'propose' }, BERTA);
    await at.settle();
    // The commit that it was opened with, before a condition was written to the package.
    const opened = at.forge.pulls[0]?.head.commit ?? '';
    expect(git(at.path, ['rev-parse', `${opened}:db`])).toBe(git(at.path, ['rev-parse', 'main:db']));
    at.forge.review(1, 'bob', 'approved', opened);
    await at.settle(120_000);
    for (const name of [web, same]) expect(at.revision(name).lifecycle).toBe('Published');
  });
});

describe('a review of a pushed proposal', () => {
  const NAME = 'apps.app.w1';
  const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
  const LISTED = `info:\n  readinessGates:\n    - conditionType: ${GATE}\n`;
  const show = () => `${git(at.path, ['show', 'proposed/app/w1:app/Kptfile'])}\n`;

  async function settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) {
      at.clock.advance(60_000);
      await at.world.store.repository('apps').sync();
      await at.reconcile('apps');
      await at.reconcile(NAME);
    }
  }

  beforeEach(async () => {
    await at.policy({ publishOn: 'review' });
    git(at.path, ['branch', 'proposed/app/w1', 'main']);
    await at.world.push(at.path, { 'app/Kptfile': `${KPTFILE}${LISTED}`, 'app/a.yaml': map('a') }, 'proposed/app/w1');
    await settle();
    at.forge.review(1, 'bob', 'approved', at.revision(NAME).commit);
    await settle();
    expect(at.revision(NAME).lifecycle).toBe('Proposed');
  });

  test('does not count once a push has removed a gate that it had, until it is reviewed again', async () => {
    await at.world.push(at.path, { 'app/Kptfile': show().replace(/info:\n( {2}.*\n)+/, '') }, 'proposed/app/w1');
    await settle();
    expect(at.revision(NAME).lifecycle).toBe('Proposed');
    at.forge.review(1, 'bob', 'approved', at.revision(NAME).commit);
    await settle();
    expect(at.revision(NAME).lifecycle).toBe('Published');
  });

  test('counts when its gate opens', async () => {
    await at.set(NAME, 'True');
    await settle();
    expect(at.revision(NAME).lifecycle).toBe('Published');
  });
});
