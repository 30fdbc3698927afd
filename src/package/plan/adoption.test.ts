import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startGitServer } from '../../../test/support/git/git-server.ts';
import { openStore } from '../../../test/support/open-store.ts';
import { anna, scratchRepository } from '../../../test/support/scratch-repository.ts';

test('an approval of Porch at a remote is adopted there, in one push, and counts until its tag moves', async () => {
  await using scratch = await scratchRepository();
  const server = await startGitServer({ root: scratch.folder });
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
  await scratch.git('config', 'user.name', 'porch');
  await scratch.git('config', 'user.email', 'porch@example.com');
  const blob = hashObject(scratch.path, kptfile);
  const folder = makeTree(scratch.path, `100644 blob ${blob}\tKptfile\n`);
  const tree = makeTree(scratch.path, `040000 tree ${folder}\tshop\n`);
  const draft = await scratch.git('commit-tree', '-p', 'main', '-m', 'Intermediate commit', tree);
  const message =
    'Approving package revision shop/1\n\nkpt:{"package":"shop","workspaceName":"first","revision":"1"}\n';
  const approval = await scratch.git('commit-tree', '-p', 'main', '-p', draft, '-m', message, tree);
  await scratch.git('update-ref', 'refs/heads/main', approval);
  await scratch.git('update-ref', 'refs/tags/shop/v1', approval);

  const store = await openStore(`${server.url}/packages.git`, join(scratch.folder, 'data'));
  const repository = store.repositories()[0];
  if (repository === undefined) throw new Error('no repository was opened');
  const outOfBand = () => store.list({ package: 'shop' }).find(({ revision }) => revision === 1)?.outOfBand?.reason;
  expect(outOfBand()).toBe('PorchApproval');
  const adoptable = await repository.adoptable();
  expect(adoptable.tags.map(({ ref, oid, reason }) => [ref, oid, reason])).toEqual([
    ['refs/tags/shop/v1', approval, 'PorchApproval'],
  ]);
  await repository.adopt(adoptable, anna);
  expect(outOfBand()).toBeUndefined();
  expect(await scratch.git('show', 'refs/sluice/adopted:adopted')).toBe(`${approval} refs/tags/shop/v1`);
  expect((await repository.adoptable()).tags).toEqual([]);

  await scratch.git('update-ref', 'refs/tags/shop/v1', draft);
  await repository.sync();
  expect(outOfBand()).toBe('NotAnApproval');
  await store.close();
  await server.close();
});

function hashObject(repository: string, text: string): string {
  return run(repository, ['hash-object', '-w', '--stdin'], text);
}

function makeTree(repository: string, lines: string): string {
  return run(repository, ['mktree'], lines);
}

function run(repository: string, words: readonly string[], input: string): string {
  return execFileSync('git', ['--git-dir', repository, ...words], { input, encoding: 'utf8' }).trim();
}
