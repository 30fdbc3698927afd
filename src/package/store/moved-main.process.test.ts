import { describe, expect, test } from 'vitest';
import { anna, commitFiles, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { draft } from '../../../test/support/shop.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Refused } from '../model/revision/revision-state.ts';

const bob: RequestContext = { actor: { name: 'bob' }, face: 'api' };
const NAME = 'packages.shop.v1';
type Scratch = Awaited<ReturnType<typeof scratchRepository>>;
type Opened = Awaited<ReturnType<Scratch['open']>>;

/** A direct edit of the main branch; null removes. */
async function edit(scratch: Scratch, { repository }: Opened, files: Record<string, string | null>): Promise<string> {
  const git = await openRepository(scratch.path);
  await commitFiles(git, files, scratch.clock.now());
  await git.close();
  await repository.refresh();
  return scratch.git('rev-parse', 'main');
}

async function approval(opened: Opened, name = NAME, update = {}): Promise<Refused['refusals'] | 'published'> {
  try {
    const made = await opened.store.update(name, { action: 'approve', ...update }, bob);
    expect(made?.lifecycle).toBe('Published');
    return 'published';
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    return (error.details as Refused).refusals;
  }
}

async function proposed(opened: Opened, files: Record<string, string>, name = NAME): Promise<void> {
  const data = new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]));
  await opened.store.change(name, { files: data }, anna);
  await opened.store.update(name, { action: 'propose' }, anna);
}

/** The package is published as v1, and a draft v2 is proposed. */
async function second(scratch: Scratch): Promise<Opened> {
  const opened = await scratch.open();
  await draft(opened.store);
  await proposed(opened, { 'app.yaml': 'a: 1\n', 'base.yaml': 'b: 1\n' });
  expect(await approval(opened)).toBe('published');
  await copy(opened, 'v2');
  await proposed(opened, { 'app.yaml': 'a: 2\n' }, 'packages.shop.v2');
  return opened;
}

async function copy({ store }: Opened, workspace: string): Promise<void> {
  const source = { type: 'copy', source: NAME } as const;
  await store.create('packages', { package: 'shop', workspace, source }, anna);
}

test('an approval keeps commits on the main branch outside of the package, and publishes exactly the proposed package', async () => {
  await using scratch = await scratchRepository();
  const opened = await scratch.open();
  expect(await draft(opened.store)).toBe(NAME);
  await proposed(opened, { 'app.yaml': 'a: 1\n' });
  const tree = await scratch.git('rev-parse', 'proposed/shop/v1:shop');
  const edited = await edit(scratch, opened, { 'other/file.yaml': 'b: 1\n' });
  expect(await approval(opened)).toBe('published');
  expect(await scratch.git('rev-parse', 'main:shop')).toBe(tree);
  expect(await scratch.git('show', 'main:other/file.yaml')).toBe('b: 1');
  expect(await scratch.git('rev-parse', 'main^1')).toBe(edited);
});

describe('an edit of the package on the main branch', () => {
  test('is not replaced: the refusal names both sides, also with break-glass, and ends with the edit', async () => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    const base = await scratch.git('rev-parse', 'main');
    const first = await edit(scratch, opened, { 'shop/app.yaml': 'a: 3\n' });
    await edit(scratch, opened, { 'other/file.yaml': 'b: 1\n' });
    const last = await edit(scratch, opened, { 'shop/new.yaml': 'c: 1\n' });
    const refusals = await approval(opened, 'packages.shop.v2');
    const commit = await scratch.git('rev-parse', 'proposed/shop/v2');
    expect(refusals).toEqual([
      {
        code: 'Conflicted',
        message: `packages.shop.v2 conflicts with refs/heads/main: its package was edited on that branch after ${base}, on which the revision is based, by ${first} to ${last} (app.yaml, new.yaml); the revision at ${commit} changes app.yaml; both change app.yaml. An approval would replace the edit; to merge the edit into the draft, use "sluice rpkg reject packages.shop.v2", "sluice rpkg rebase packages.shop.v2", then propose it again`,
        conflict: {
          ...{ base, commits: [first, last] },
          ...{ filesOnMain: ['app.yaml', 'new.yaml'], filesInRevision: ['app.yaml'] },
        },
      },
    ]);
    const glass = { breakGlass: true };
    expect(await approval(opened, 'packages.shop.v2', glass)).toContainEqual(
      expect.objectContaining({ code: 'Conflicted' }),
    );
    expect(await scratch.git('rev-parse', 'main')).toBe(last);
    await edit(scratch, opened, { 'shop/app.yaml': 'a: 1\n', 'shop/new.yaml': null });
    expect(await approval(opened, 'packages.shop.v2')).toBe('published');
  });

  test('that is the proposed one is no conflict', async () => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    await edit(scratch, opened, { 'shop/app.yaml': 'a: 2\n' });
    expect(await approval(opened, 'packages.shop.v2')).toBe('published');
  });

  test('conflicts also if the draft was copied from the publication afterwards', async () => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    const commit = await edit(scratch, opened, { 'shop/base.yaml': 'b: 2\n' });
    await copy(opened, 'v3');
    await proposed(opened, { 'app.yaml': 'a: 3\n' }, 'packages.shop.v3');
    const conflict = { base: commit, commits: [], filesOnMain: ['base.yaml'], filesInRevision: ['app.yaml'] };
    expect(await approval(opened, 'packages.shop.v3')).toEqual([
      expect.objectContaining({ code: 'Conflicted', conflict }),
    ]);
  });

  test('that returns to an earlier publication conflicts; another publication does not', async () => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    await copy(opened, 'v3');
    await proposed(opened, { 'base.yaml': 'b: 3\n' }, 'packages.shop.v3');
    await copy(opened, 'v4');
    await proposed(opened, { 'base.yaml': 'b: 4\n' }, 'packages.shop.v4');
    expect(await approval(opened, 'packages.shop.v2')).toBe('published');
    // As in Porch, the main branch has the last one, and its tag keeps the other.
    expect(await approval(opened, 'packages.shop.v3')).toBe('published');
    await edit(scratch, opened, { 'shop/base.yaml': 'b: 1\n', 'shop/app.yaml': 'a: 2\n' });
    expect(await approval(opened, 'packages.shop.v4')).toEqual([expect.objectContaining({ code: 'Conflicted' })]);
  });

  test('that removed the package conflicts, and ends when the draft was based on the removal', async () => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    const files = await scratch.git('ls-tree', '-r', '--name-only', 'main', 'shop');
    await edit(scratch, opened, Object.fromEntries(files.split('\n').map((file) => [file, null])));
    const [refusal] = (await approval(opened, 'packages.shop.v2')) as Refused['refusals'];
    expect(refusal).toMatchObject({ code: 'Conflicted', message: expect.stringContaining('was removed from') });
    await copy(opened, 'v3');
    await proposed(opened, { 'app.yaml': 'a: 3\n' }, 'packages.shop.v3');
    expect(await approval(opened, 'packages.shop.v3')).toBe('published');
  });

  test('that added a package with the name of a new one conflicts', async () => {
    await using scratch = await scratchRepository();
    const opened = await scratch.open();
    await draft(opened.store);
    await proposed(opened, { 'app.yaml': 'a: 1\n' });
    const commit = await edit(scratch, opened, { 'shop/data.yaml': 'd: 1\n' });
    expect(await approval(opened)).toEqual([
      expect.objectContaining({
        code: 'Conflicted',
        conflict: expect.objectContaining({ commits: [commit], filesOnMain: ['data.yaml'] }),
      }),
    ]);
  });
});

describe('a rebase', () => {
  const rebased = async ({ store }: Opened, scratch: Scratch, mode: 'merge' | 'keep') => {
    const warnings: string[] = [];
    await store.change('packages.shop.v2', { rebase: mode }, { ...anna, warn: (text) => warnings.push(text) });
    const [first, second] = (await scratch.git('log', '-1', '--format=%P', 'drafts/shop/v2')).split(' ');
    return { warnings, first, second };
  };

  test('merges the edit into the draft, with a commit on both, and names what both sides changed', async () => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    const main = await edit(scratch, opened, {
      ...{ 'shop/app.yaml': 'a: 3\n', 'shop/base.yaml': 'b: 2\n', 'shop/new.yaml': 'c: 1\n', 'other.yaml': 'd: 1\n' },
    });
    await expect(opened.store.change('packages.shop.v2', { rebase: 'merge' }, anna)).rejects.toThrow(/is Proposed/);
    await expect(opened.store.change('packages.shop.v2', { rebase: 'keep' }, anna)).rejects.toThrow(/is Proposed/);
    await opened.store.update('packages.shop.v2', { action: 'reject' }, bob);
    const tip = await scratch.git('rev-parse', 'drafts/shop/v2');
    const { warnings, ...parents } = await rebased(opened, scratch, 'merge');
    expect(parents).toEqual({ first: tip, second: main });
    expect(warnings).toEqual([expect.stringMatching(/^changed on both sides.*: app.yaml;/)]);
    expect(await scratch.git('show', 'drafts/shop/v2:shop/base.yaml')).toBe('b: 2');
    expect(await scratch.git('show', 'drafts/shop/v2:shop/new.yaml')).toBe('c: 1');
    expect(await scratch.git('show', 'drafts/shop/v2:other.yaml')).toBe('d: 1');
    const { contributors } = (await opened.store.evaluate('default/packages.shop.v2')).record;
    expect(contributors).toContainEqual(expect.objectContaining({ name: 'push', face: 'git' }));
    // It is up to date: nothing is written again.
    await opened.store.change('packages.shop.v2', { rebase: 'merge' }, anna);
    expect(await scratch.git('log', '-1', '--format=%P', 'drafts/shop/v2')).toBe(`${tip} ${main}`);
    await opened.store.update('packages.shop.v2', { action: 'propose' }, anna);
    expect(await approval(opened, 'packages.shop.v2')).toBe('published');
  });

  test('with keep leaves the files as they are, and later edits conflict again', async () => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    await edit(scratch, opened, { 'shop/base.yaml': 'b: 2\n' });
    await opened.store.update('packages.shop.v2', { action: 'reject' }, bob);
    const tree = await scratch.git('rev-parse', 'drafts/shop/v2:shop');
    await rebased(opened, scratch, 'keep');
    expect(await scratch.git('rev-parse', 'drafts/shop/v2:shop')).toBe(tree);
    await opened.store.update('packages.shop.v2', { action: 'propose' }, anna);
    await edit(scratch, opened, { 'shop/base.yaml': 'b: 3\n' });
    expect(await approval(opened, 'packages.shop.v2')).toEqual([expect.objectContaining({ code: 'Conflicted' })]);
    await edit(scratch, opened, { 'shop/base.yaml': 'b: 2\n' });
    expect(await approval(opened, 'packages.shop.v2')).toBe('published');
  });

  test.each(['merge', 'keep'] as const)('warns about what a user pushed beside the package: %s', async (mode) => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    await opened.store.update('packages.shop.v2', { action: 'reject' }, bob);
    const git = await openRepository(scratch.path);
    await commitFiles(git, { 'docs/a.md': 'a\n' }, scratch.clock.now(), { branch: 'drafts/shop/v2' });
    await git.close();
    const pushed = await scratch.git('rev-parse', 'drafts/shop/v2');
    await edit(scratch, opened, { 'shop/base.yaml': 'b: 2\n' });
    const { warnings, first } = await rebased(opened, scratch, mode);
    expect(first).toBe(pushed);
    expect(await scratch.git('ls-tree', '-r', '--name-only', 'drafts/shop/v2')).not.toContain('docs/a.md');
    expect(warnings).toEqual([
      `the branch of packages.shop.v2 has the package alone now: it had changes of 1 file outside of its package (docs/a.md), which ${pushed} still has`,
    ]);
  });

  test('that a user pushes ends the conflict too, of a draft that was pushed as well', async () => {
    await using scratch = await scratchRepository();
    const opened = await second(scratch);
    const main = await edit(scratch, opened, { 'shop/base.yaml': 'b: 2\n' });
    const merge = async (branch: string, ...parents: string[]) => {
      const tree = await scratch.git('rev-parse', 'proposed/shop/v2^{tree}');
      const flags = parents.flatMap((parent) => ['-p', parent]);
      const commit = await scratch.git(
        ...['-c', 'user.name=eve', '-c', 'user.email=eve@example.com', 'commit-tree', tree, ...flags, '-m', 'merge'],
      );
      await scratch.git('update-ref', `refs/heads/${branch}`, commit);
      await opened.repository.refresh();
    };
    await merge('proposed/shop/v3', `${main}^`);
    expect(await approval(opened, 'packages.shop.v3')).toContainEqual(expect.objectContaining({ code: 'Conflicted' }));
    await merge('proposed/shop/v3', 'proposed/shop/v3', main);
    expect(await approval(opened, 'packages.shop.v3')).toBe('published');
    // The publication has the tree that was proposed; main was merged into it.
    await edit(scratch, opened, { 'shop/base.yaml': 'b: 3\n' });
    await merge('proposed/shop/v2', 'proposed/shop/v2', 'main');
    await edit(scratch, opened, { 'shop/new.yaml': 'c: 1\n' });
    expect(await approval(opened, 'packages.shop.v2')).toContainEqual(expect.objectContaining({ code: 'Conflicted' }));
    await edit(scratch, opened, { 'shop/new.yaml': null });
    expect(await approval(opened, 'packages.shop.v2')).toBe('published');
  });
});
