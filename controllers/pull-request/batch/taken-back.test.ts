import { beforeEach, describe, expect, test } from 'vitest';
import { commitFile } from '../../../test/support/delivery-pull-request.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('what a user pushes to the branch of a shared pull request is reported', () => {
  const open = eachProposals();
  let at: Proposals;
  let branch: string;
  beforeEach(async () => {
    at = open();
    at.serveBranches();
    await at.policy({ batch: {}, publishOn: 'merge' });
    await at.proposeAll('api', 'web');
    await at.settle();
    ({ branch } = (await at.forge.get(1)).head);
  });

  const push = () => at.world.push(at.path, { 'docs/notes.md': 'x\n' }, branch);
  const files = () => git(at.path, ['ls-tree', '-r', '--name-only', branch]).split('\n');
  const comments = () => (at.forge.commentsOf.get(1) ?? []).map(({ body }) => body);
  const takenBack = (commit: string) => [expect.stringContaining(`The commit \`${commit}\``)];
  async function moveMain(text = 'x\n'): Promise<string> {
    const main = await at.world.push(at.path, { 'other.txt': text });
    await at.world.store.repository('apps').sync();
    return main;
  }
  function mergeMain(main: string, own?: string): string {
    const head = git(at.path, ['rev-parse', branch]);
    const tree = own ?? git(at.path, ['merge-tree', '--write-tree', head, main]);
    const commit = writeCommit(at.path, { tree, parents: [head, main], message: 'Merge main\n' });
    writeRef(at.path, `refs/heads/${branch}`, commit);
    return commit;
  }

  test('where the branch is based on the main branch in the same moment', async () => {
    await moveMain();
    let pushed: string | undefined;
    at.forge.mergeable = 'behind';
    at.forge.after = (method) => {
      if (method === 'mergeability') pushed ??= commitFile(at.path, branch, 'docs/notes.md', 'x\n');
    };
    at.restart();
    await at.settle();
    expect(files()).toEqual(expect.arrayContaining(['other.txt', 'web/a.yaml']));
    expect(files()).not.toContain('docs/notes.md');
    expect(comments()).toEqual(takenBack(pushed ?? ''));
  });

  test('below a merge of the main branch, which hosts offer', async () => {
    const pushed = await push();
    mergeMain(await moveMain());
    await at.settle();
    expect(files()).not.toContain('docs/notes.md');
    expect(comments()).toEqual(takenBack(pushed));
  });

  test('in a merge of the main branch, of which others are not reported', async () => {
    mergeMain(await moveMain());
    await at.settle();
    expect(comments()).toEqual([]);
    const main = await moveMain('y\n');
    const other = await push();
    const tree = git(at.path, ['rev-parse', `${other}^{tree}`]);
    writeRef(at.path, `refs/heads/${branch}`, git(at.path, ['rev-parse', `${other}^`]));
    const merged = mergeMain(main, tree);
    await at.settle();
    expect(files()).not.toContain('docs/notes.md');
    expect(comments()).toEqual(takenBack(merged));
  });

  test('also by the process after one that ended right after it had taken that back', async () => {
    const pushed = await push();
    at.forge.before = (method) => {
      if (method === 'setComment') throw new Error('the process ends');
    };
    await expect(at.settle()).rejects.toThrow('the process ends');
    at.forge.before = () => undefined;
    at.restart();
    await at.settle();
    expect(files()).not.toContain('docs/notes.md');
    expect(comments()).toEqual(takenBack(pushed));
  });
});
