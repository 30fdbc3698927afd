import { beforeEach, expect, test } from 'vitest';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { writeRef } from '../../../test/support/git/write-objects.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

/** Any user who may push tags can push these, on a commit that does not have the package. */
function pushTags(...tags: readonly string[]): void {
  for (const tag of tags) writeRef(at.path, `refs/tags/${tag}`, readRef(at.path, 'refs/heads/main') ?? '');
}

test.each([['app/v1'], ['app/v1/x'], ['app/v1', 'app/v2/x/y']])(
  'a proposal is published under the next version that no tag has: %s %s',
  async (...tags) => {
    at.serveBranches();
    await at.policy({ publishOn: 'merge' });
    pushTags(...tags);
    const name = await at.propose();
    await at.sync();
    await at.settle();
    const { commit } = at.revision(name);
    expect(at.forge.checksOf(commit)).toEqual({ 'sluice/ready': 'success' });
    await at.mergeAs(1, 'bob');
    await at.sync();
    await at.settle();
    const revision = tags.length + 1;
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision, outOfBand: undefined });
    const published = `app/v${revision}`;
    expect(git(at.path, ['tag']).trim().split('\n')).toEqual([...tags, published]);

    // What a deletion leaves on the main branch is still known to be of that version.
    for (const action of ['propose-deletion', 'delete'] as const)
      await at.world.store.update(name, { action }, { actor: { name: 'anna' }, face: 'api' });
    expect(at.revision('apps.app.main').outOfBand).toBeUndefined();
  },
);

test('a tag above those of the package fails the check, which names it', async () => {
  at.serveBranches();
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  await at.settle();
  pushTags('app');
  await at.sync();
  await at.settle();
  const { commit } = at.revision(name);
  expect(at.forge.checksOf(commit)).toEqual({ 'sluice/ready': 'failure' });
  const conflict = `TagConflict: ${name} cannot get the tag refs/tags/app/v1: there is the tag refs/tags/app; remove or rename it, then approve again`;
  expect(await at.world.events(name)).toContainEqual(conflict);
  await at.mergeAs(1, 'bob');
  await at.sync();
  await at.settle();
  expect(at.revision(name).lifecycle).toBe('Proposed');
  expect(await at.world.events(name)).toContainEqual(expect.stringMatching(/^MergeNotPublished: .*refs\/tags\/app;/));
});
