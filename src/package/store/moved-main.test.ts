import { expect, test } from 'vitest';
import { anna, commitFiles, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { draft } from '../../../test/support/shop.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';

const bob: RequestContext = { actor: { name: 'bob' }, face: 'api' };
const NAME = 'packages.shop.v1';

test('an approval keeps commits on the main branch outside of the package, and publishes exactly the proposed package', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  expect(await draft(store)).toBe(NAME);
  await store.change(NAME, { files: new Map([['app.yaml', Buffer.from('a: 1\n')]]) }, anna);
  await store.update(NAME, { action: 'propose' }, anna);
  const proposed = await scratch.git('rev-parse', 'proposed/shop/v1:shop');
  const git = await openRepository(scratch.path);
  const files = { 'other/file.yaml': 'b: 1\n', 'shop/app.yaml': 'a: 2\n', 'shop/new.yaml': 'c: 1\n' };
  await commitFiles(git, files, scratch.clock.now());
  await git.close();
  await repository.refresh();
  const edited = await scratch.git('rev-parse', 'main');
  await store.update(NAME, { action: 'approve' }, bob);
  expect(await scratch.git('rev-parse', 'main:shop')).toBe(proposed);
  expect(await scratch.git('show', 'main:other/file.yaml')).toBe('b: 1');
  // What was edited in the package stays in the history only.
  expect(await scratch.git('rev-parse', 'main^1')).toBe(edited);
});
