import { expect, test } from 'vitest';
import { commitFiles, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import { watchedPrefixes } from '../model/identity/layout.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { MemoryTrustLedger } from '../trust/ledger/memory-trust-ledger.ts';
import { fakeTrust } from '../trust/testing/fake-signatures.ts';
import { FactCache } from './facts/fact-cache.ts';
import { RevisionIndex } from './revision-index.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const layout = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };

async function open(path: string, cache = new FactCache()) {
  const git = await openRepository(path);
  const trust = fakeTrust(new MemoryTrustLedger(), 'id');
  const index = new RevisionIndex({
    ...{ repository: 'r', namespace: 'default', layout, git, cache, trust },
    isFirstLook: false,
  });
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

test('packages of one commit are read together with the same result as alone, for any objects at their paths', async () => {
  await using scratch = await scratchRepository();
  await using at = await open(scratch.path);
  const names = Array.from({ length: 40 }, (_, number) => (number % 2 === 0 ? `p${number}` : `team/é/p${number}`));
  const files: Record<string, string> = { file: 'no folder', 'empty/a.yaml': 'a: 1\n' };
  for (const name of names) files[`${name}/Kptfile`] = KPTFILE.replace('shop', name);
  const commit = await commitFiles(at.git, files, 0, { branch: 'main', from: 'refs/heads/main' });
  await scratch.git(
    '-c',
    'user.name=x',
    '-c',
    'user.email=x@example.com',
    'tag',
    '-a',
    '-m',
    'annotated',
    'annotated',
    commit,
  );
  const annotated = await at.git.resolveRef('refs/tags/annotated');
  const places = [...names, 'missing', 'file', 'file/below', 'empty', 'team/é'];
  const tag = (name: string, oid = commit) => ({ name: `refs/tags/${name}/v1`, before: undefined, after: oid });
  await at.index.apply(places.map((name) => tag(name)));
  const together = new Map(Array.from(at.index.all(), (row) => [row.name, row]));
  for (const oid of [commit, annotated ?? '']) {
    await using alone = await open(scratch.path);
    for (const name of places) await alone.index.apply([tag(name, oid)]);
    const tips = (rows: Iterable<PackageRevision>) =>
      Array.from(rows, ({ name, tip, kptfile }) => [name, tip, kptfile]).sort();
    const published = (rows: Iterable<PackageRevision>) => [...rows].filter(({ revision }) => revision === 1);
    expect(published(together.values())).toHaveLength(names.length);
    expect(tips(published(alone.index.all()))).toEqual(tips(published(together.values())));
  }
});

test('many changes become visible together', async () => {
  await using scratch = await scratchRepository();
  await using at = await open(scratch.path);
  const old = await commitFiles(at.git, { 'shop/Kptfile': KPTFILE }, 0, { branch: 'drafts/shop/v0' });
  const now = await commitFiles(at.git, { 'shop/Kptfile': KPTFILE }, 1, { branch: 'drafts/shop/v0' });
  const names = Array.from({ length: 3000 }, (_, number) => `refs/heads/drafts/shop/v${number}`);
  await at.index.apply(names.map((name) => ({ name, before: undefined, after: old })));
  let over = false;
  const applied = at.index.apply(names.map((name) => ({ name, before: old, after: now }))).finally(() => {
    over = true;
  });
  let looks = 0;
  while (!over) {
    const seen = new Set([
      ...names.map((name) => at.index.ref(name)),
      ...Array.from(at.index.all(), (row) => row.commit),
    ]);
    expect(seen.size).toBe(1);
    looks += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(looks).toBeGreaterThan(2);
  expect(await applied).toHaveLength(3000);
  expect(new Set(Array.from(at.index.all(), (row) => row.commit))).toEqual(new Set([now]));
});

test('a package with a new or a removed revision has changed since the version before', async () => {
  await using scratch = await scratchRepository();
  await using at = await open(scratch.path);
  const before = at.index.changedSince(undefined);
  expect(before.packages).toBeUndefined();
  const from = 'refs/heads/main';
  await commitFiles(at.git, { 'shop/Kptfile': KPTFILE }, 0, { branch: 'drafts/shop/v1', from });
  await at.refresh();
  const added = at.index.changedSince(before.version);
  expect(added.packages).toEqual(['shop']);
  await commitFiles(at.git, { 'web/Kptfile': KPTFILE }, 0, { branch: 'drafts/web/v1', from });
  await scratch.git('branch', '-D', 'drafts/shop/v1');
  await at.refresh();
  const removed = at.index.changedSince(added.version);
  expect(removed.packages?.toSorted()).toEqual(['shop', 'web']);
  expect(at.index.changedSince(removed.version).packages).toEqual([]);
});
