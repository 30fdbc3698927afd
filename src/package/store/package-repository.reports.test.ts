import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { anna, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { draft } from '../../../test/support/shop.ts';
import { MAIN_LAYOUT, serverTrust, trustOf } from '../../../test/support/trust.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import { SqliteAttributedPushes } from '../trust/sqlite/sqlite-attributed-pushes.ts';

const REF = 'refs/heads/drafts/shop/v1';

test('a damaged file of push reports does not hide that a draft was deleted', async () => {
  await using scratch = await scratchRepository();
  const file = join(scratch.folder, 'pushes.sqlite');
  const pushes = new SqliteAttributedPushes(file);
  await using git = { repo: await openRepository(scratch.path), [Symbol.asyncDispose]: () => git.repo.close() };
  const { trust, ...rest } = await trustOf(git.repo, scratch.path, MAIN_LAYOUT, { ...serverTrust, pushes });
  const { store } = await scratch.open({ trust, ...rest });
  const repository = store.repository('packages');
  const [byApi, byGit] = [await draft(store, 'shop'), await draft(store, 'other')];
  const deleted: string[] = [];
  store.subscribe((changes) => {
    for (const { before, after } of changes) if (before !== undefined && after === undefined) deleted.push(before.name);
  });
  const place = { repository: trust.repository, registration: repository.id, ref: REF };
  await writeFile(file, Buffer.alloc(5000, 'x'));

  await store.update(byApi, { action: 'delete' }, anna);
  expect(deleted).toEqual([byApi]);
  await scratch.git('update-ref', '-d', 'refs/heads/drafts/other/v1');
  await repository.sync();
  expect(deleted).toEqual([byApi, byGit]);
  expect(trust.reports.problem).toContain('if the file is damaged, remove it');

  // A report that arrives before the deletion could be marked attributes nothing, and the next sync marks it.
  await rm(file);
  pushes.note({ ...place, before: undefined, after: 'a'.repeat(40), user: 'eve', provider: 'gitea', at: '2026-01-01' });
  await repository.sync();
  expect(trust.reports.problem).toBeUndefined();
  expect(pushes.latest(place)).toMatchObject([{ isSuperseded: true }]);
  pushes.close();
});
