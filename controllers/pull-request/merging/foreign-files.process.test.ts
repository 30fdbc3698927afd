import { beforeEach, expect, test } from 'vitest';
import type { ExplainedRevision } from '../../../src/package/api/explain/explainer.ts';
import { REBASE_ANNOTATION } from '../../../src/package/api/objects/revision-object.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { commitFile, headOf, hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { rebasedCommit } from '../../../test/support/git/rebased-commit.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { BERTA, eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import { pullRequestExplainer } from '../explain-pull-request.ts';

const FILES = { 'a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: a}\n' };
const FOREIGN = {
  'web/a.yaml': 'kind: Foreign\napiVersion: v1\nmetadata: {name: a}\n',
  'policies/p.yaml': 'kind: B\n',
};
const CARLA = { actor: { name: 'carla' }, face: 'cli' } as const;
const WHY = { resolvers: [], disabled: [], running: true, now: 0, actor: 'carla' };

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

const branchOf = (name: string) => at.revision(name).ref.slice('refs/heads/'.length);
const onMain = () => git(at.path, ['ls-tree', '-r', '--name-only', 'main']).split('\n');
const mergesOf = () => at.forge.calls.filter((call) => call === 'merge').length;
const ready = (name: string) => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');

/** A published package `web`, and a proposal of `app` whose branch has these files besides its package. */
async function propose(review: Record<string, unknown>, foreign: Readonly<Record<string, string>> = FOREIGN) {
  const other = (await at.world.draft('apps/web/w1', FILES)).name;
  await at.world.store.update(other, { action: 'propose' }, BERTA);
  await at.world.store.update(other, { action: 'approve' }, CARLA);
  await at.policy(review);
  const { name, ref } = await at.world.draft('apps/app/w1', FILES);
  if (Object.keys(foreign).length > 0) await at.world.push(at.path, foreign, ref.slice('refs/heads/'.length));
  await at.world.store.repository('apps').sync();
  await at.world.store.update(name, { action: 'propose' }, BERTA);
  return name;
}

/** Reconciles until nothing is left to do. */
async function settle(name: string): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    at.clock.advance(60_000);
    await at.world.store.repository('apps').sync();
    await at.reconcile('apps');
    await at.reconcile(name);
  }
}

test('the approval that pushes to the main branch takes the package alone', async () => {
  const name = await propose({ publishOn: 'approval' });
  await at.reconcile(name);
  await at.world.store.update(name, { action: 'approve' }, CARLA);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  expect(onMain()).not.toContain('policies/p.yaml');
  expect(git(at.path, ['show', 'main:web/a.yaml'])).not.toContain('Foreign');
});

test('the host merges no head with other files; it is merged once the branch has the package alone, with the same approval', async () => {
  const name = await propose({ publishOn: 'approval' });
  protectMain(at.world.store.repository('apps'));
  hostRepository(at.forge, at.path);
  await at.reconcile(name);
  expect(at.forge.pulls[0]?.body).toContain('(policies/p.yaml, web/a.yaml)');
  expect(ready(name)).toMatchObject({ state: 'failure' });
  expect(ready(name)?.title).toContain('2 files outside of its package (policies/p.yaml, web/a.yaml)');
  expect(ready(name)?.text).toContain(`sluice rpkg rebase ${name} --keep`);
  const explained = { evaluation: await at.world.store.evaluate(name) } as ExplainedRevision;
  const why = await pullRequestExplainer(at.world.store).explain(explained, WHY);
  expect(why.reasons).toContainEqual({ reason: 'ForeignFiles', message: expect.stringContaining('web/a.yaml') });
  expect(why.next).toEqual([`sluice rpkg rebase ${name} --keep`]);

  const warnings: string[] = [];
  await at.world.store.update(name, { action: 'approve' }, { ...CARLA, warn: (text) => void warnings.push(text) });
  expect(warnings).toContainEqual(expect.stringContaining('2 files outside of its package'));
  await settle(name);
  expect(mergesOf()).toBe(0);
  expect(await at.world.events(name)).toContainEqual(expect.stringMatching(/^NotMerged: .*outside of its package/));
  expect(at.revision(name).lifecycle).toBe('Proposed');

  const proposed = await at.world.client.get(packageRevisionKind, { namespace: 'default', name });
  const annotations = { ...proposed.metadata.annotations, [REBASE_ANNOTATION]: 'keep' };
  await at.world.client.update(packageRevisionKind, { ...proposed, metadata: { ...proposed.metadata, annotations } });
  expect(at.revision(name).tip.parents).toHaveLength(1);
  await settle(name);
  expect(mergesOf()).toBe(1);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
  expect(onMain()).not.toContain('policies/p.yaml');
  expect(git(at.path, ['show', 'main:web/a.yaml'])).not.toContain('Foreign');
});

test('what is pushed beside the package after its review is not merged with that', async () => {
  await at.policy({});
  const name = await at.propose();
  protectMain(at.world.store.repository('apps'));
  hostRepository(at.forge, at.path);
  at.forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'a check is missing' };
  await at.reconcile(name);
  await at.review(1, 'bob', 'approved', at.revision(name).commit);
  await at.reconcile(name);
  const tried = mergesOf();
  expect(tried).toBeGreaterThan(0);
  await at.world.push(at.path, { 'web/a.yaml': FOREIGN['web/a.yaml'] }, branchOf(name));
  at.forge.outcome = undefined;
  await settle(name);
  expect(mergesOf()).toBe(tried);
  expect(onMain()).not.toContain('web/a.yaml');
  await at.world.push(at.path, { 'web/a.yaml': null }, branchOf(name));
  await settle(name);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  expect(onMain()).not.toContain('web/a.yaml');
});

const STYLES = ['merge', 'squash', 'rebase', 'fast-forward'] as const;
test.each(STYLES)(
  'the button merges other files with it, by %s: it is out of band, and all reports name them',
  async (style) => {
    const name = await propose({ publishOn: 'merge' });
    // Not in the last commit, which a rebase names.
    await at.world.store.change(name, { conditions: [{ type: GATE, status: 'True' }] }, BERTA);
    await at.reconcile(name);
    expect(ready(name)).toMatchObject({ state: 'failure' });
    await at.mergeHead(name, 'bob', style);
    await at.readMerge(name);
    const files = 'changes of 2 files outside of its package (policies/p.yaml, web/a.yaml)';
    expect(at.revision(name)).toMatchObject({
      lifecycle: 'Published',
      outOfBand: { reason: 'ForeignFiles', message: expect.stringContaining(files) },
    });
    expect(await at.world.events(name)).toContainEqual(expect.stringMatching(/^OutOfBand: .*policies\/p\.yaml/));
    expect(at.forge.commentsOf.get(1)?.map(({ body }) => body)).toContainEqual(expect.stringContaining(files));
  },
);

test('the event of a merge names the other files that the host left out when it rebased the branch', async () => {
  const name = await propose({ publishOn: 'merge' }, {});
  const own = headOf(at.path, branchOf(name)) ?? '';
  const other = commitFile(at.path, branchOf(name), 'docs/a.md', 'a\n');
  const main = commitFile(at.path, 'main', 'web/b.yaml', 'kind: B\n');
  const tree = git(at.path, ['merge-tree', '--write-tree', other, main]);
  const head = writeCommit(at.path, { tree, parents: [own, main], message: 'Merge main\n' });
  writeRef(at.path, at.revision(name).ref, head);
  await at.world.store.repository('apps').sync();
  await at.reconcile(name);
  const tip = at.revision(name).commit;
  const commit = rebasedCommit(at.path, main, tip) ?? '';
  writeRef(at.path, 'refs/heads/main', commit);
  const { branch } = at.forge.pulls[0]?.head ?? { branch: '' };
  const of = { branch, commit: tip, isSameRepository: true };
  const { updatedAt } = at.forge.change(1, { state: 'merged', head: of, merged: { commit, by: 'bob', base: main } });
  at.forge.change(1, { closedAt: updatedAt });
  await at.readMerge(name);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
  expect(await at.world.events(name)).toContainEqual(
    expect.stringMatching(
      new RegExp(
        `^Approved: .*; the merge has left out changes of 1 file outside of its package \\(docs/a.md\\), which ${tip} has$`,
      ),
    ),
  );
});

test.each(STYLES)('a branch into which a user merged the main branch has no other files, by %s', async (style) => {
  const name = await propose({ publishOn: 'merge' }, {});
  commitFile(at.path, 'main', 'web/b.yaml', 'kind: B\n');
  const heads = [branchOf(name), 'main'].map((branch) => headOf(at.path, branch) ?? '');
  const tree = git(at.path, ['merge-tree', '--write-tree', ...heads]);
  writeRef(at.path, at.revision(name).ref, writeCommit(at.path, { tree, parents: heads, message: 'Merge main\n' }));
  await at.world.store.repository('apps').sync();
  await at.reconcile(name);
  expect(ready(name)).toMatchObject({ state: 'success' });
  if (style !== 'fast-forward') commitFile(at.path, 'main', 'web/c.yaml', 'kind: C\n');
  await at.mergeHead(name, 'bob', style);
  await at.readMerge(name);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  expect(onMain()).toContain('web/b.yaml');
});

test('a merge of the main branch that takes back what changed there is found', async () => {
  const name = await propose({ publishOn: 'merge' }, {});
  commitFile(at.path, 'main', 'web/b.yaml', 'kind: B\n');
  const heads = [branchOf(name), 'main'].map((branch) => headOf(at.path, branch) ?? '');
  const tree = git(at.path, ['rev-parse', `${heads[0]}^{tree}`]);
  writeRef(at.path, at.revision(name).ref, writeCommit(at.path, { tree, parents: heads, message: 'Merge main\n' }));
  await at.world.store.repository('apps').sync();
  await at.reconcile(name);
  expect(ready(name)).toMatchObject({ state: 'failure', title: expect.stringContaining('(web/b.yaml)') });
});

test('a shared pull request takes the package alone; what a user pushes to its branch is out of band', async () => {
  at.serveBranches();
  await at.policy({ batch: {}, publishOn: 'merge' });
  const { name, ref } = await at.world.draft('apps/app/w1', FILES);
  await at.world.push(at.path, FOREIGN, ref.slice('refs/heads/'.length));
  await at.world.store.repository('apps').sync();
  await at.world.store.update(name, { action: 'propose' }, BERTA);
  const [other = ''] = await at.proposeAll('api');
  await at.settle();
  const head = at.forge.pulls[0]?.head;
  expect(at.forge.checksOf((await at.forge.get(1)).head.commit)).toEqual({ 'sluice/ready': 'success' });
  expect(git(at.path, ['ls-tree', '-r', '--name-only', head?.branch ?? ''])).not.toContain('policies');
  commitFile(at.path, head?.branch ?? '', 'policies/p.yaml', 'kind: B\n');
  await at.mergeAs(1, 'bob');
  await at.settle();
  for (const one of [name, other])
    expect(at.revision(one).outOfBand).toMatchObject({
      reason: 'ForeignFiles',
      message: expect.stringContaining('1 file outside of its package (policies/p.yaml)'),
    });
  const comments = at.forge.commentsOf.get(1)?.map(({ body }) => body);
  expect(comments).toContainEqual(expect.stringContaining('policies/p.yaml'));
});

/** Two proposals with one pull request. Returns their names, and its branch. */
async function share() {
  at.serveBranches();
  await at.policy({ batch: { maxPackages: 2 }, publishOn: 'merge' });
  const names = await at.proposeAll('api', 'web');
  await at.settle();
  return { names, branch: at.forge.pulls[0]?.head.branch ?? '' };
}

test.each(['proposal', 'tag'])('a user who lists a %s in a commit to a shared branch hides no files', async (kind) => {
  const { names, branch } = await share();
  if (kind === 'proposal') await at.proposeAll('tool');
  const before = headOf(at.path, branch) ?? '';
  const evil = commitFile(at.path, branch, 'tool/Kptfile', 'kind: Evil\n');
  const tree = git(at.path, ['rev-parse', `${evil}^{tree}`]);
  const member = `Sluice-Batch-Member: 0123456789abcdef apps.tool.${kind === 'proposal' ? 'w1' : 'v1'}`;
  const own = git(at.path, ['log', '-1', '--format=%B', before]);
  const message = `${own.replace(/^Sluice-Batch-Tree: .*$/m, `${member}\nSluice-Batch-Tree: ${tree}`)}\n`;
  writeRef(at.path, `refs/heads/${branch}`, writeCommit(at.path, { tree, parents: [before], message }));
  const merged = await at.mergeAs(1, 'bob');
  if (kind === 'tag') writeRef(at.path, 'refs/tags/tool/v1', merged);
  await at.sync();
  await at.settle();
  for (const name of names)
    expect(at.revision(name).outOfBand).toMatchObject({
      reason: 'ForeignFiles',
      message: expect.stringContaining('tool/Kptfile'),
    });
});

test.each(['condition', 'push'])(
  'a package of a shared merge that a %s has changed since is no other file',
  async (kind) => {
    const { names } = await share();
    const [api = '', web = ''] = names;
    await at.mergeAs(1, 'bob');
    if (kind === 'condition') await at.set(web, 'True');
    else await at.world.push(at.path, { 'web/b.yaml': 'kind: B\n' }, branchOf(web));
    await at.sync();
    await at.settle();
    expect(at.revision(api)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    // A condition changes nothing of what was merged.
    expect(at.revision(web).lifecycle).toBe(kind === 'condition' ? 'Published' : 'Proposed');
  },
);

test('a commit to a shared branch that takes back what a merge brought to the main branch is not judged as ready', async () => {
  const { branch } = await share();
  const before = headOf(at.path, 'main') ?? '';
  const side = commitFile(at.path, 'main', 'rbac.yaml', 'kind: Hardened\n');
  const tree = git(at.path, ['rev-parse', `${side}^{tree}`]);
  writeRef(
    at.path,
    'refs/heads/main',
    writeCommit(at.path, { tree, parents: [before, side], message: 'Merge side\n' }),
  );
  await at.sync();
  await at.settle();
  const own = headOf(at.path, branch) ?? '';
  const old = git(at.path, ['rev-parse', `${own}^{tree}`]);
  const forged = writeCommit(at.path, { tree: old, parents: [own, side], message: 'Merge side\n' });
  writeRef(at.path, `refs/heads/${branch}`, forged);
  await at.sync();
  await at.settle(60_000);
  expect(at.forge.checksOf(forged)).toEqual({});
  await at.mergeAs(1, 'bob');
  expect(onMain()).toContain('rbac.yaml');
});

test('the head that is merged by the button although an approval was decided on for it is out of band', async () => {
  const name = await propose({ publishOn: 'approval' });
  protectMain(at.world.store.repository('apps'));
  hostRepository(at.forge, at.path);
  await at.reconcile(name);
  await at.world.store.update(name, { action: 'approve' }, CARLA);
  await at.reconcile(name);
  await at.mergeHead(name, 'bob');
  await settle(name);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'ForeignFiles' } });
});

test('other files cause no requests while nothing changes; once the main branch has the same ones, the proposal is ready', async () => {
  const teams = [{ team: 'acme/sre', groups: ['sre'] }];
  await at.policy({ publishOn: 'merge', teams }, { approval: { quorum: { required: 2 } } });
  at.serveBranches();
  const askedBy = async (name: string) => {
    at.forge.review(1, 'bob', 'approved', at.revision(name).commit);
    await at.settle(120_000);
    at.forge.calls.length = 0;
    await at.settle(3_600_000);
    return at.forge.calls.filter((call) => call === 'isTeamMember').length;
  };
  const name = await at.propose();
  await at.settle(60_000);
  const asked = await askedBy(name);
  await at.world.push(at.path, { 'policies/p.yaml': 'kind: B\n' }, branchOf(name));
  await at.sync();
  // One look at the rights more or less can be in an hour.
  expect(await askedBy(name)).toBeLessThanOrEqual(asked + 1);
  expect(ready(name)?.title).toContain('ForeignFiles');
  commitFile(at.path, 'main', 'policies/p.yaml', 'kind: B\n');
  await at.sync();
  await expect.poll(() => at.woken).toContain(name);
  await at.settle(60_000);
  expect(ready(name)?.title).not.toContain('ForeignFiles');
});
