import { beforeEach, expect, test } from 'vitest';
import type { Oid } from '../../../src/git/git-repository.ts';
import { MAX_FILES } from '../../../src/package/model/content/package-size.ts';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { storedEntry, writeCommit, writeObject, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

const tree = (...entries: readonly Buffer[]) => writeObject(at.path, 'tree', Buffer.concat(entries));
const blob = () => writeObject(at.path, 'blob', 'x');

/** Puts a commit on the branch of a proposal, as `git push` does, in which its package is another one. Returns the commit. */
function push(head: Oid, entries: (kptfile: Buffer) => Buffer[]): Oid {
  const kptfile = storedEntry('100644', 'Kptfile', git(at.path, ['rev-parse', `${head}:app/Kptfile`]).trim());
  const rest = git(at.path, ['ls-tree', head]).split('\n');
  const others = rest.flatMap((line) => {
    const [, mode = '', oid = '', name = ''] = /^(\d+) \w+ (\w+)\t(.+)$/.exec(line) ?? [];
    return name === '' || name === 'app' ? [] : storedEntry(mode, name, oid);
  });
  // Names with capitals are before it.
  const root = tree(...others, storedEntry('40000', 'app', tree(...entries(kptfile))));
  const commit = writeCommit(at.path, { tree: root, parents: [head], message: 'pushed\n' });
  writeRef(at.path, 'refs/heads/proposed/app/w1', commit);
  return commit;
}

test.each([
  [
    'has too many files',
    /has more than 10000 entries/,
    (kptfile: Buffer) => {
      const oid = blob();
      const name = (at: number) => `f${String(at).padStart(6, '0')}`;
      return [kptfile, ...Array.from({ length: MAX_FILES }, (_, at) => storedEntry('100644', name(at), oid))];
    },
  ],
  [
    'is too deep',
    /has files below more than 256 folders/,
    (kptfile: Buffer) => {
      let below = tree(storedEntry('100644', 'x', blob()));
      for (let depth = 0; depth < 300; depth++) below = tree(storedEntry('40000', 'd', below));
      return [kptfile, storedEntry('40000', 'd', below)];
    },
  ],
  ['is malformed', /"Kptfile" is not in order/, (kptfile: Buffer) => [storedEntry('100644', 'a', blob()), kptfile]],
])('a pushed package that %s fails the check, and its merge is reported', async (_, problem, entries) => {
  at.serveBranches();
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  const [other = ''] = await at.proposeAll('other');
  await at.settle();
  const commit = push(readRef(at.path, 'refs/heads/proposed/app/w1') ?? '', entries);
  await at.sync();
  await at.settle();
  expect(at.forge.checksOf(commit)).toEqual({ 'sluice/ready': 'failure' });
  const check = at.forge.checks.get(commit)?.get('sluice/ready');
  expect(check?.title).toBe('The package cannot be read, so that it cannot be published');
  const pullOf = (branch: string) => at.forge.pulls.find(({ head }) => head.branch === branch);
  const body = pullOf('proposed/app/w1')?.body;
  expect(body).toMatch(/Unreadable package/);
  expect(body).toMatch(problem);
  expect(await at.world.events(name)).toContainEqual(
    expect.stringMatching(new RegExp(`^Unreadable: .*${problem.source}`)),
  );

  await at.mergeAs(pullOf('proposed/app/w1')?.number ?? 0, 'bob');
  await at.sync();
  await at.settle();
  expect(at.revision(name).lifecycle).toBe('Proposed');
  expect(await at.world.events(name)).toContainEqual(
    expect.stringMatching(new RegExp(`^MergeNotPublished: .*${problem.source}`)),
  );
  await at.mergeAs(pullOf('proposed/other/w1')?.number ?? 0, 'bob');
  await at.sync();
  await at.settle();
  expect(at.revision(other)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
});

test('a pushed file of mode 100640 is read as git reads it, and is published as it was pushed', async () => {
  at.serveBranches();
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  await at.settle();
  const head = readRef(at.path, 'refs/heads/proposed/app/w1') ?? '';
  const commit = push(head, (kptfile) => [kptfile, storedEntry('100640', 'a', blob())]);
  await at.sync();
  await at.settle();
  expect(at.forge.checksOf(commit)).toEqual({ 'sluice/ready': 'success' });
  await at.mergeAs(1, 'bob');
  await at.sync();
  await at.settle();
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  const treeIn = (ref: string) => git(at.path, ['rev-parse', `${ref}:app`]).trim();
  expect(treeIn('refs/tags/app/v1')).toBe(treeIn(commit));
});
