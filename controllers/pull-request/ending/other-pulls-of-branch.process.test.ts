import { beforeEach, describe, expect, test } from 'vitest';
import type { FileMode } from '../../../src/git/git-repository.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeObject, writeRef, writeTree } from '../../../test/support/git/write-objects.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

const BRANCH = 'proposed/app/w1';
const REF = `refs/heads/${BRANCH}`;

/** Proposes `app`, whose pull request is read. Returns the name of the revision. */
async function propose(): Promise<string> {
  await at.policy({ publishOn: 'merge' });
  at.serveBranches();
  const name = await at.propose();
  await at.reconcile(name);
  return name;
}

/** A user pushes a commit to its branch: with this text in place of the file of the package, or without a change. */
function push(text?: string): void {
  const parent = readRef(at.path, REF) ?? '';
  const root = git(at.path, ['rev-parse', `${parent}^{tree}`]);
  const tree = text === undefined ? root : writeTree(at.path, withFile(text, parent));
  writeRef(at.path, REF, writeCommit(at.path, { tree, parents: [parent], message: 'change\n' }));
}

function withFile(text: string, parent: string) {
  const app = entriesOf(`${parent}:app`);
  app.set('a.yaml', { mode: '100644', oid: writeObject(at.path, 'blob', text) });
  return entriesOf(parent).set('app', { mode: '040000', oid: writeTree(at.path, app) });
}

function entriesOf(tree: string): Map<string, { mode: FileMode; oid: string }> {
  const lines = git(at.path, ['ls-tree', '--format=%(objectmode) %(objectname) %(path)', tree]).split('\n');
  return new Map(
    lines.filter(Boolean).map((line) => {
      const [mode = '', oid = '', name = ''] = line.split(' ');
      return [name, { mode: mode as FileMode, oid }];
    }),
  );
}

/** Reads the repository and the host, as often as needed. */
async function read(): Promise<void> {
  await at.sync();
  await at.settle(200_000);
}

describe.each([false, true])('a merge, and another pull request of its branch, after a restart: %s', (restarts) => {
  test('is reported where the branch has other content, and then the other one is followed', async () => {
    const name = await propose();
    await at.mergeHead(name, 'bob', 'merge');
    push('kind: A\napiVersion: v1\nmetadata: {name: b}\n');
    await at.forge.open({ head: BRANCH, base: 'main', title: 'more', body: '' });
    if (restarts) at.restart();
    await read();
    const isAbout = (number: number) => expect.stringMatching(`MergeNotPublished: .*pulls/${number} was merged by bob`);
    expect(await at.world.events(name)).toContainEqual(isAbout(1));
    expect(at.forge.commentsOf.get(1)?.at(-1)?.body).toMatch('Not published');
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(at.forge.pulls[1]?.body).toMatch('sluice:begin');
    expect(Object.keys(at.forge.checksOf(at.revision(name).commit))).toContain('sluice/ready');
    at.restart();
    const commit = await at.mergeHead(name, 'bob', 'merge', 2);
    await read();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
    expect(at.forge.pulls).toHaveLength(2);
  });

  test('is published where the branch has the same content', async () => {
    const name = await propose();
    const commit = await at.mergeHead(name, 'bob');
    push();
    await at.forge.open({ head: BRANCH, base: 'main', title: 'more', body: '' });
    if (restarts) at.restart();
    await read();
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
  });
});

test('a proposal that was proposed again is published by the merge of its pull request, whose text a user changed while no process ran', async () => {
  const name = await propose();
  await at.world.store.update(name, { action: 'reject' }, ANNA);
  at.forge.change(1, { state: 'closed' });
  await read();
  await at.world.store.update(name, { action: 'propose' }, BERTA);
  await read();
  expect(at.forge.pulls).toHaveLength(2);
  at.forge.change(2, { body: 'my text' });
  const commit = await at.mergeHead(name, 'bob', 'squash', 2);
  at.restart();
  await read();
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
  expect(at.forge.pulls).toHaveLength(2);
});

describe('a proposal that ends before its merge is read', () => {
  const reports = async (of: string) =>
    (await at.world.events(of)).filter((one) => one.startsWith('MergeNotPublished'));

  test.each([
    ['reject', false],
    ['reject', true],
    ['delete', false],
  ] as const)('is reported once: %s, after a restart: %s', async (action, restarts) => {
    const name = await propose();
    const { commit } = at.revision(name);
    await at.mergeHead(name, 'bob');
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    if (action === 'delete') await at.world.store.update(name, { action }, ANNA);
    if (restarts) at.restart();
    await read();
    const next =
      action === 'reject'
        ? 'rejected when.*propose it again and approve it'
        : `deleted.*push .${commit}. to .${BRANCH}`;
    const report = [
      expect.stringMatching(
        `pulls/1 was merged by bob, and publishes nothing, since .${name}. had been ${next}.*revert the merge`,
      ),
    ];
    expect(await reports(action === 'reject' ? name : 'apps')).toEqual(report);
    expect(at.forge.commentsOf.get(1)?.at(-1)?.body).toMatch('### Not published');
    at.restart();
    at.forge.calls.length = 0;
    await read();
    expect(at.forge.calls).not.toContain('setComment');
  });

  test('is reported where a user has pushed a draft in its place', async () => {
    const name = await propose();
    const { commit } = at.revision(name);
    await at.mergeHead(name, 'bob');
    git(at.path, ['update-ref', '-d', REF]);
    writeRef(at.path, 'refs/heads/drafts/app/w1', commit);
    await at.sync();
    at.restart();
    await read();
    expect(await reports(name)).toEqual([expect.stringMatching('had been made a draft when that was read')]);
  });

  test('is not reported once the draft is published', async () => {
    const name = await propose();
    await at.mergeHead(name, 'bob');
    for (const action of ['reject', 'propose', 'approve'] as const)
      await at.world.store.update(name, { action }, action === 'propose' ? BERTA : ANNA);
    await read();
    expect(await reports(name)).toEqual([]);
  });
});
