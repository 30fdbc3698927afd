import { describe, expect, test } from 'vitest';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { draft, outcomeOf, publish } from '../../../test/support/shop.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import type { RevisionStore } from './revision-store.ts';

async function published(store: RevisionStore, packageName = 'shop', workspace = 'v1'): Promise<string> {
  const name = await draft(store, packageName, workspace);
  await publish(store, name);
  return name;
}

async function push(scratch: Scratch, files: Record<string, string | null>, branch: string): Promise<string> {
  const git = await openRepository(scratch.path);
  try {
    return await commitFiles(git, files, scratch.clock.now(), { branch, from: 'refs/heads/main' });
  } finally {
    await git.close();
  }
}

describe('a package on the main branch', () => {
  test('can be deleted and labelled by the version that was read, although other packages moved the branch', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    await published(store);
    const placeholder = store.get('packages.shop.main');
    await published(store, 'web');
    const { name, commit: expectedCommit } = store.get(placeholder.name);
    expect(expectedCommit).toBe(placeholder.commit);
    await store.change(name, { metadata: { labels: { a: 'b' } }, expectedCommit }, anna);
    await store.update(name, { action: 'propose-deletion', expectedCommit }, anna);
    await published(store, 'wiki');
    await store.update(name, { action: 'delete', expectedCommit }, anna);
    expect(store.find(name)).toBeUndefined();
    expect(await scratch.git('ls-tree', '--name-only', 'main')).toBe('README.md\nweb\nwiki');
  });

  test('is refused to callers that have not read its last change', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    await published(store);
    const { name, commit: expectedCommit } = store.get('packages.shop.main');
    await push(scratch, { 'shop/more.yaml': 'a: 1\n' }, 'main');
    await repository.refresh();
    expect(await outcomeOf(store.update(name, { action: 'propose-deletion', expectedCommit }, anna))).toMatch(
      /^Conflict/,
    );
  });

  test('can be read after its earlier history was removed', async () => {
    await using scratch = await scratchRepository();
    const name = await published((await scratch.open()).store);
    const { store, repository } = await scratch.open();
    await scratch.git('update-ref', '-d', 'refs/tags/shop/v1');
    const tree = await scratch.git('rev-parse', 'main^{tree}');
    const rewritten = await scratch.git(
      ...['-c', 'user.name=x', '-c', 'user.email=x@example.com', 'commit-tree', '-m', 'squashed', tree],
    );
    await scratch.git('update-ref', 'refs/heads/main', rewritten);
    await scratch.git('-c', 'gc.reflogExpire=now', 'gc', '-q', '--prune=now');
    const other = await scratch.open();
    await repository.refresh();
    expect(store.find(name)).toBeUndefined();
    const files = [...(await store.content('packages.shop.main')).files.keys()];
    expect(files).toEqual([...(await other.store.content('packages.shop.main')).files.keys()]);
  });
});

describe('what cannot be read', () => {
  test('can be deleted and rejected, and not proposed', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    await scratch.git('branch', 'drafts/shop/v1', 'main');
    await scratch.git('branch', 'proposed/web/v1', 'main');
    await repository.refresh();
    expect(await outcomeOf(store.update('packages.shop.v1', { action: 'propose' }, anna))).toMatch(
      /^Refused: .*Kptfile/,
    );
    await store.update('packages.shop.v1', { action: 'delete' }, anna);
    await store.update('packages.web.v1', { action: 'reject' }, anna);
    expect(await scratch.git('for-each-ref', '--format=%(refname:short)', 'refs/heads')).toBe('drafts/web/v1\nmain');
  });
});

test('packages stay as they were read last while their repository has no refs at all', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  const name = await published(store);
  const refs = (await scratch.git('for-each-ref', '--format=%(refname) %(objectname)')).split('\n');
  for (const ref of refs) await scratch.git('update-ref', '-d', ref.split(' ')[0] ?? '');
  expect(await outcomeOf(repository.refresh())).toMatch(/^Unavailable: packages has no branches and tags any more/);
  expect(store.get(name).lifecycle).toBe('Published');
  for (const ref of refs) await scratch.git('update-ref', ...ref.split(' '));
  await repository.refresh();
  expect(store.get(name).lifecycle).toBe('Published');
});

describe('a Kptfile with more gates and conditions than allowed', () => {
  const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
  const lines = (count: number, line: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => line(index)).join('');
  const conditions = (count: number) =>
    `${HEAD}status:\n  conditions:\n${lines(count, (index) => `    - type: t${index}\n      status: "True"\n`)}`;
  const gates = (count: number) =>
    `${HEAD}info:\n  readinessGates:\n${lines(count, (index) => `    - conditionType: t${index}\n`)}`;

  test('stays as pushed, with a problem that gives the reason, and cannot be proposed', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    const text = conditions(501);
    await push(scratch, { 'shop/Kptfile': text }, 'drafts/shop/v1');
    await push(scratch, { 'web/Kptfile': gates(5000) }, 'drafts/web/v1');
    await repository.refresh();
    const { problem, name } = store.get('packages.shop.v1');
    expect(problem).toBe(
      'status.conditions has 501 conditions; at most 500 are allowed. Remove those that are not needed.',
    );
    expect(store.get('packages.web.v1').problem).toContain('5000 readiness gates; at most 500');
    expect((await store.content(name)).files.get('Kptfile')?.toString()).toBe(text);
    expect(await outcomeOf(store.update(name, { action: 'propose' }, anna))).toMatch(/^Refused: .*501 conditions/);
    await store.update(name, { action: 'delete' }, anna);
  });

  test('is refused where it is written', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    const files = (text: string) => ({ files: new Map([['Kptfile', Buffer.from(text)]]) });
    expect(await outcomeOf(store.change(name, files(gates(501)), anna))).toMatch(
      /^InvalidInput: .*501 readiness gates/,
    );
    await store.change(name, files(conditions(499)), anna);
    const more = {
      conditions: [
        { type: 'one', status: 'True' },
        { type: 'two', status: 'True' },
      ],
    } as const;
    expect(await outcomeOf(store.change(name, more, anna))).toMatch(
      /^InvalidInput: the Kptfile of packages.shop.v1 cannot be edited: .*at most 500/,
    );
    expect((await store.get(name)).problem).toBeUndefined();
  });
});

describe('gates', () => {
  test('can be added to a proposal, and not removed from it', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    await store.update(name, { action: 'propose' }, anna);
    await store.change(name, { kptfile: [{ op: 'addGate', conditionType: 'tested' }] }, anna);
    const removal = store.change(name, { kptfile: [{ op: 'removeGate', conditionType: 'tested' }] }, anna);
    expect(await outcomeOf(removal)).toMatch(/^Refused: .*tested/);
    expect(await outcomeOf(store.update(name, { action: 'approve' }, anna))).toContain('gate tested is closed');
  });
});

test('a mark that is left over from an earlier revision does not keep the next one from being proposed for deletion', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  const name = await published(store);
  await scratch.git('branch', 'deletionProposed/shop/v1', 'main~1');
  await repository.refresh();
  expect(store.get(name).lifecycle).toBe('Published');
  await store.update(name, { action: 'propose-deletion' }, anna);
  expect(store.get(name).lifecycle).toBe('DeletionProposed');
  await store.update(name, { action: 'delete' }, anna);
  expect(await scratch.git('for-each-ref', '--format=%(refname:short)', 'refs/heads', 'refs/tags')).toBe('main');
});

test('packages that are made side by side keep to the rules', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  const results = await Promise.all([
    outcomeOf(draft(store, 'a', 'one')),
    outcomeOf(draft(store, 'a', 'two')),
    outcomeOf(draft(store, 'a/b', 'one')),
    outcomeOf(draft(store, 'a/b/c', 'one')),
  ]);
  expect(results.filter((result) => result === 'succeeded')).toHaveLength(1);
  expect(store.list()).toHaveLength(1);
});

test('a tag or branch that is in the way of what follows is reported at creation', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  await scratch.git('tag', 'shop', 'main');
  await scratch.git('branch', 'deletionProposed/web', 'main');
  await repository.refresh();
  expect(await outcomeOf(draft(store))).toMatch(/^Refused: .*refs\/tags\/shop/);
  expect(await outcomeOf(draft(store, 'web'))).toMatch(/^Refused: .*deletionProposed\/web/);
});

test('what a repository does after it was taken out is not announced', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  const name = await draft(store);
  const shown = new Set(store.list().map((revision) => revision.name));
  store.subscribe((changes) => {
    for (const { before, after } of changes) {
      if (before !== undefined) shown.delete(before.name);
      if (after !== undefined) shown.add(after.name);
    }
  });
  const change = store.change(name, { kptfile: [{ op: 'addGate', conditionType: 'tested' }] }, anna);
  await Promise.all([change.catch(() => undefined), store.remove('packages')]);
  expect([...shown]).toEqual([]);
});

test('one listener that fails does not keep the others from hearing', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  const hasReported: string[] = [];
  store.subscribe(() => {
    throw new Error('broken');
  });
  store.subscribe((changes) => hasReported.push(...changes.flatMap(({ after }) => after?.name ?? [])));
  await draft(store).catch(() => undefined);
  expect(hasReported).toEqual(['packages.shop.v1']);
});

test('the history of a draft has every commit since it was made', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  await published(store, 'web');
  const name = await draft(store);
  for (const value of [1, 2]) {
    scratch.clock.advance(1000);
    await store.change(
      name,
      { files: new Map([['a.yaml', Buffer.from(`a: ${value}\n`)]]), subject: `a is ${value}` },
      anna,
    );
  }
  scratch.clock.advance(1000);
  await push(scratch, { 'shop/b.yaml': 'b: 1\n' }, 'drafts/shop/v1');
  await repository.refresh();
  expect((await store.history(name)).map(({ what }) => what)).toEqual([
    'pushed',
    'a is 2',
    'a is 1',
    'Creating new empty revision',
  ]);
});

test('the history of a draft that was made with git ends where it left the main branch', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  await published(store);
  await push(scratch, { 'notes.txt': 'a\n' }, 'main');
  await push(scratch, { 'shop/b.yaml': 'b: 1\n' }, 'drafts/shop/v2');
  await push(scratch, { 'shop/b.yaml': 'b: 2\n' }, 'drafts/shop/v2');
  await push(
    scratch,
    { 'fresh/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: fresh\n' },
    'drafts/fresh/v1',
  );
  await repository.refresh();
  expect(await store.history('packages.shop.v2')).toHaveLength(2);
  expect(await store.history('packages.fresh.v1')).toHaveLength(1);
});
