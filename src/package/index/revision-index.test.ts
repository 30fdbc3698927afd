import { expect, test } from 'vitest';
import { commitFiles, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { openRepository } from '../../git/open-repository.ts';
import { watchedPrefixes } from '../layout.ts';
import { FactCache } from './fact-cache.ts';
import { RevisionIndex } from './revision-index.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const layout = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };

async function open(path: string, cache = new FactCache()) {
  const git = await openRepository(path);
  const index = new RevisionIndex({ repository: 'r', namespace: 'default', layout, git, cache });
  const refresh = async () => index.apply(index.diff(await git.listRefs(watchedPrefixes(layout))));
  await refresh();
  return { git, index, refresh, [Symbol.asyncDispose]: () => git.close() };
}

test('a tag made by hand on a draft does not hide the draft', async () => {
  await using scratch = await scratchRepository();
  await using at = await open(scratch.path);
  const message = 'Intermediate commit\n\nkpt:{"package":"shop","workspaceName":"blue","task":{"type":"init"}}\n';
  await commitFiles(at.git, { 'shop/Kptfile': KPTFILE }, 0, {
    branch: 'drafts/shop/blue',
    from: 'refs/heads/main',
    message,
  });
  await scratch.git('tag', 'shop/snapshot', 'drafts/shop/blue');
  await at.refresh();
  expect(Array.from(at.index.all(), ({ name, lifecycle }) => [name, lifecycle]).sort()).toEqual([
    ['r.shop.blue', 'Draft'],
    ['r.shop.snapshot', 'Published'],
  ]);
});

test('one Kptfile that is too large to be read is one unreadable draft, not an unreadable repository', async () => {
  await using scratch = await scratchRepository();
  await using at = await open(scratch.path);
  await commitFiles(at.git, { 'shop/Kptfile': KPTFILE }, 0, { branch: 'drafts/shop/v1', from: 'refs/heads/main' });
  // Zeros, which Git packs small.
  const huge = `a: ${'0'.repeat(65 * 1024 * 1024)}\n`;
  await commitFiles(at.git, { 'huge/Kptfile': huge }, 0, { branch: 'drafts/huge/v1', from: 'refs/heads/main' });
  await at.refresh();
  expect(at.index.get('r.shop.v1')?.problem).toBeUndefined();
  expect(at.index.get('r.huge.v1')?.problem).toMatch(/too large/);
});

test('what is kept in memory follows what is there, not what has been there', async () => {
  await using scratch = await scratchRepository();
  const cache = new FactCache();
  await using at = await open(scratch.path, cache);
  const [tip] = [
    await commitFiles(at.git, { 'shop/Kptfile': KPTFILE }, 0, { branch: 'drafts/shop/v1', from: 'refs/heads/main' }),
  ];
  const parent = await at.git.readCommit(tip);
  let old = tip;
  for (let number = 0; number < 6000; number++) {
    const signature = { name: 'x', email: 'x@example.com', time: number * 1000 };
    const next = await at.git.writeCommit({ ...parent, author: signature, committer: signature, message: 'again\n' });
    await at.index.apply([{ name: 'refs/heads/drafts/shop/v1', before: old, after: next }]);
    old = next;
  }
  expect(cache.size).toBeLessThan(3000);
  expect(at.index.get('r.shop.v1')?.commit).toBe(old);
});
