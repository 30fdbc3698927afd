import { beforeEach, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';

const A = 'kind: A\napiVersion: v1\nmetadata: {name: a}\n';
const B = 'kind: B\napiVersion: v1\nmetadata: {name: b}\n';
const CARLA = { actor: { name: 'carla' }, face: 'cli' } as const;
const CONTROLLER = { actor: { name: 'controller:approval' }, face: 'controller' } as const;

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
  at.serveBranches();
});

const ready = (name: string) => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
const treeAt = (commit: string) => git(at.path, ['rev-parse', `${commit}:app`]);

/** A proposal that changes one file of `app`, made before a revision that changes another one; `publish` publishes that. */
async function overtaken(): Promise<{ readonly name: string; publish(): Promise<unknown> }> {
  const first = (await at.world.draft('apps/app/w0', { 'a.yaml': A, 'b.yaml': B })).name;
  await at.world.publish(first);
  const made = async (workspace: string, file: string, text: string) => {
    const source = { type: 'copy', source: first };
    const { name } = await at.world.store.create('default/apps', { package: 'app', workspace, source } as never, BERTA);
    await at.world.store.change(name, { files: new Map([[file, Buffer.from(text)]]) }, BERTA);
    return name;
  };
  const other = await made('w1', 'a.yaml', A.replace('name: a', 'name: a2'));
  const name = await made('w2', 'b.yaml', B.replace('name: b', 'name: b2'));
  const publish = async () => {
    await at.world.store.update(other, { action: 'propose' }, BERTA);
    await at.settle();
    await at.world.store.update(other, { action: 'approve' }, CARLA);
  };
  return { name, publish };
}

test('a merge by the button publishes the package as it was proposed: the branch is based on the main branch before', async () => {
  const { name, publish } = await overtaken();
  await at.policy({ publishOn: 'merge' });
  await at.world.store.update(name, { action: 'propose' }, BERTA);
  await at.settle(60_000);
  const { commit, tip } = at.revision(name);
  expect(ready(name)).toMatchObject({ state: 'success' });
  await at.review(1, 'bob', 'approved', commit);
  await publish();
  // Until its new head is there, the check of the present one must not permit the merge.
  await at.settle(60_000);
  expect(at.forge.checks.get(commit)?.get('sluice/ready')).toMatchObject({
    state: 'pending',
    title: expect.stringMatching(/^Blocked by PublishedSince: a merge of the branch would combine both packages/),
  });
  const rebuilt = at.revision(name);
  expect(rebuilt.tip.parents).toEqual([commit, git(at.path, ['rev-parse', 'main'])]);
  expect(rebuilt.tip.tree).toBe(tip.tree);
  expect(ready(name)).toMatchObject({ state: 'success' });
  await at.mergeAs(1, 'carl');
  await at.settle(60_000);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 3, outOfBand: undefined });
  expect(treeAt('main')).toBe(tip.tree);
  const { record } = at.revision(name).tip.facts.statement?.statement ?? {};
  expect(record?.approvals?.map(({ subject }) => subject).sort()).toEqual(['bob@example.com', 'carl@example.com']);
});

test.each(['review', 'approval'] as const)(
  'an approval that the host merges publishes the same as a push (publishOn: %s)',
  async (publishOn) => {
    const { name, publish } = await overtaken();
    await publish();
    await at.policy({ publishOn });
    protectMain(at.world.store.repository('apps'));
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    await at.settle(60_000);
    const { commit, tip } = at.revision(name);
    expect(ready(name)).toMatchObject({ state: 'pending' });
    if (publishOn === 'review') await at.review(1, 'bob', 'approved', commit);
    else await at.world.store.update(name, { action: 'approve' }, CARLA);
    await at.settle(60_000);
    await at.world.store.repository('apps').sync();
    await at.settle(60_000);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 3, outOfBand: undefined });
    expect(treeAt('main')).toBe(tip.tree);
    expect(at.forge.calls.filter((call) => call === 'merge')).toHaveLength(1);
  },
);

test('a rebuilt branch still undoes the publication, which no controller approves', async () => {
  const { name, publish } = await overtaken();
  await publish();
  await at.policy({ publishOn: 'merge' });
  await at.world.store.update(name, { action: 'propose' }, BERTA);
  const { commit } = at.revision(name);
  await at.settle(60_000);
  expect(at.revision(name).commit).not.toBe(commit);
  expect((await at.world.store.evaluate(name)).overtaken?.later).toMatchObject({ files: ['a.yaml'], revision: 2 });
  await expect(at.world.store.update(name, { action: 'approve' }, CONTROLLER)).rejects.toThrow(
    /would undo what it changed in 1 file \(a\.yaml\)/,
  );
  // Once a user has merged that into the draft, it does not.
  await at.world.store.update(name, { action: 'reject' }, CARLA);
  await at.world.store.change(name, { rebase: 'merge' }, BERTA);
  expect((await at.world.store.evaluate(name)).overtaken).toBeUndefined();
  expect(git(at.path, ['show', `${at.revision(name).commit}:app/a.yaml`])).toContain('name: a2');
});

test('two proposals of a package that are approved at once are both published as they were proposed', async () => {
  const { name } = await overtaken();
  const other = name.replace(/w2$/, 'w1');
  await at.policy({ publishOn: 'approval' });
  protectMain(at.world.store.repository('apps'));
  for (const one of [other, name]) await at.world.store.update(one, { action: 'propose' }, BERTA);
  await at.settle(60_000);
  const trees = [other, name].map((one) => at.revision(one).tip.tree);
  for (const one of [other, name]) await at.world.store.update(one, { action: 'approve' }, CARLA);
  for (let turn = 0; turn < 4; turn += 1) {
    await at.settle(60_000);
    await at.world.store.repository('apps').sync();
  }
  for (const [index, one] of [other, name].entries()) {
    expect(at.revision(one)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(at.revision(one).tip.tree).toBe(trees[index]);
  }
});

test('a shared pull request with such a member has the package as it was proposed', async () => {
  const { name, publish } = await overtaken();
  await at.policy({ batch: {}, publishOn: 'merge' });
  await at.world.store.update(name, { action: 'propose' }, BERTA);
  const [api = ''] = await at.proposeAll('api');
  await at.settle(60_000);
  const { tip } = at.revision(name);
  await publish();
  await at.settle(60_000);
  const { head } = await at.forge.get(1);
  expect(treeAt(head.commit)).toBe(tip.tree);
  expect(at.forge.checksOf(head.commit)).toEqual({ 'sluice/ready': 'success' });
  await at.mergeAs(1, 'bob');
  await at.settle(60_000);
  for (const one of [name, api])
    expect(at.revision(one)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  expect(treeAt('main')).toBe(tip.tree);
});
