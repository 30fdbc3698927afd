import { beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

describe('a pull request of several proposals', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });
  const comments = () => (at.forge.commentsOf.get(1) ?? []).map(({ body }) => body);

  test('publishes what was proposed again, since a user had closed it and opened it again', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.closings.set(1, { by: 'bob', comment: 'not now' });
    at.forge.change(1, { state: 'closed', closedAt: new Date(at.clock.now()).toISOString() });
    await at.settle();
    at.forge.change(1, { state: 'open' });
    await at.settle();
    const commit = await at.mergeAs(1, 'bob');
    await at.settle();
    for (const name of names) expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
    expect(at.forge.pulls).toHaveLength(1);
  });

  test.each([
    { what: 'read', isRead: true },
    { what: 'not read yet', isRead: false },
  ])('reports a merge after which its packages were deleted: $what', async ({ isRead }) => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    const { branch } = (await at.forge.get(1)).head;
    await at.mergeAs(1, 'bob');
    git(at.path, ['update-ref', '-d', `refs/heads/${branch}`]);
    await at.world.store.repository('apps').sync();
    if (isRead) await at.reconcile('apps');
    for (const name of names) await at.world.store.update(name, { action: 'delete' }, ANNA);
    for (const name of isRead ? [] : [...names, 'apps:batches']) await at.reconcile(name);
    await at.settle(60_000);
    expect(comments()).toHaveLength(1);
    expect(comments()[0]).toContain('### Not published');
    expect(comments()[0]).toContain('- `apps.api.w1`: deleted\n- `apps.web.w1`: deleted');
    const reported = (await at.world.events('apps')).filter((text) => text.startsWith('MergeNotPublished'));
    expect(reported.sort()).toEqual(
      names.map((name) => expect.stringMatching(`merged by bob, and does not publish ${name}, which is deleted`)),
    );
  });

  test('reports a merge that publishes nothing once, whatever becomes of its packages', async () => {
    await at.policy({ batch: {} });
    const [web = '', db = ''] = await at.proposeAll('web', 'db');
    await at.settle(60_000);
    await at.mergeAs(1, 'bob');
    await at.settle(60_000);
    for (const name of [web, db]) expect((await at.world.events(name)).at(-1)).toMatch(/^MergedOutside: /);
    await at.world.store.update(web, { action: 'reject' }, ANNA);
    await at.world.store.update(db, { action: 'delete' }, ANNA);
    await at.settle(60_000);
    expect(comments().filter((body) => body.includes('Not published'))).toEqual([]);
    for (const name of [web, 'apps'])
      expect(await at.world.events(name)).not.toContainEqual(expect.stringMatching(/^MergeNotPublished/));
  });

  test.each(['reject', 'approve', 'delete'] as const)(
    'publishes the others where one was ended after the merge, before that is read: %s',
    async (action) => {
      await at.policy({ batch: {}, publishOn: 'merge' });
      const [web = '', db = ''] = await at.proposeAll('web', 'db');
      await at.settle(60_000);
      const commit = await at.mergeAs(1, 'bob');
      await at.world.store.update(db, { action }, ANNA);
      await at.settle(120_000);
      expect(at.revision(web)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
    },
  );
});
