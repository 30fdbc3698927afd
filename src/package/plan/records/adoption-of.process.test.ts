import { expect, test } from 'vitest';
import { commitFiles, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { adoptionOf } from './adoption-of.ts';

test('a publication whose adoption is older than those that are read has none of another operator', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: shop}\n';
  const head = await commitFiles(repository.git, { 'shop/Kptfile': kptfile }, 0);
  const adopt = async (version: number, name: string) => {
    await scratch.git('update-ref', `refs/tags/shop/v${version}`, head);
    await repository.refresh();
    await repository.adopt(await repository.adoptable(), { actor: { name }, face: 'cli' });
  };
  const adoption = () => {
    const first = store.list().find(({ ref }) => ref === 'refs/tags/shop/v1');
    expect(first?.outOfBand).toBeUndefined();
    return first && adoptionOf(repository, first);
  };
  await adopt(1, 'admin');
  for (let version = 2; version <= 50; version += 1) await adopt(version, 'other');
  expect(await adoption()).toMatchObject({ action: 'adopt', by: 'says: admin' });
  await adopt(51, 'other');
  expect(await adoption()).toBeUndefined();
});
