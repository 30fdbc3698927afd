import { beforeEach, expect, test } from 'vitest';
import { git } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { BERTA, eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const MAIN = 'refs/heads/main';
const open = eachProposals();
let at: Proposals;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
});
const map = (name: string) => `kind: A\napiVersion: v1\nmetadata: {name: ${name}}\n`;
const mainHead = () => git(at.path, ['rev-parse', MAIN]);

/** A proposal of `app`, with other files in its branch too. */
async function propose(others: Readonly<Record<string, string>> = {}) {
  const { name, ref } = await at.world.draft('apps/app/w1', { 'a.yaml': map('a') });
  if (Object.keys(others).length > 0) await at.world.push(at.path, others, ref.slice('refs/heads/'.length));
  await at.world.store.repository('apps').sync();
  await at.world.store.update(name, { action: 'propose' }, BERTA);
  await at.reconcile(name);
  return at.revision(name);
}

function merge(one: string, other: string): string {
  const tree = git(at.path, ['merge-tree', '--write-tree', one, other]);
  return writeCommit(at.path, { tree, parents: [one, other], message: "Merge branch 'main'\n" });
}

async function pushed(name: string, head: string, commit: string, base: string): Promise<void> {
  const branch = at.revision(name).ref.slice('refs/heads/'.length);
  writeRef(at.path, MAIN, commit);
  const merged = { commit, by: 'bob', base };
  at.forge.change(1, { state: 'merged', head: { branch, commit: head, isSameRepository: true }, merged });
  for (let turn = 0; turn < 5; turn += 1) {
    at.clock.advance(60_000);
    await at.world.store.repository('apps').sync();
    await at.reconcile('apps');
    if (at.world.store.find(name) !== undefined) await at.reconcile(name);
  }
}

test('a merge into the branch of a proposal, pushed to the main branch, does not hide other files of the branch', async () => {
  const { name, commit: head } = await propose({ 'web/a.yaml': map('foreign'), 'policies/p.yaml': 'kind: B\n' });
  const main = mainHead();
  await pushed(name, head, merge(head, main), main);
  expect(at.revision(name).outOfBand).toMatchObject({
    reason: 'ForeignFiles',
    message: expect.stringContaining('policies/p.yaml, web/a.yaml'),
  });
});

test('what the main branch has since the pull request was opened is none of them', async () => {
  const { name, commit: head } = await propose();
  const before = mainHead();
  await at.world.push(at.path, { 'README.md': 'text' });
  await at.world.store.repository('apps').sync();
  await at.reconcile(name);
  await pushed(name, head, merge(head, mainHead()), before);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});

test('the same where the main branch is moved to a head with a merge of it, and the host reports an earlier base', async () => {
  const { name, commit, ref } = await propose();
  const before = mainHead();
  await at.world.push(at.path, { 'README.md': 'text' });
  const head = merge(commit, mainHead());
  writeRef(at.path, ref, head);
  at.forge.change(1, { head: { branch: ref.slice('refs/heads/'.length), commit: head, isSameRepository: true } });
  await at.world.store.repository('apps').sync();
  await at.reconcile(name);
  await pushed(name, head, head, before);
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});

test('other files of a main branch that was reset do not pass with a merge that brings them back', async () => {
  const before = mainHead();
  await at.world.push(at.path, { 'web/a.yaml': map('foreign'), 'policies/p.yaml': 'kind: B\n' });
  await at.sync();
  const { name, commit: head } = await propose();
  await at.reconcile('apps');
  writeRef(at.path, MAIN, before);
  const tree = git(at.path, ['rev-parse', `${head}^{tree}`]);
  await pushed(name, head, writeCommit(at.path, { tree, parents: [before, head], message: 'Merge #1\n' }), before);
  expect(at.revision(name).outOfBand?.reason).toBe('ForeignFiles');
});
