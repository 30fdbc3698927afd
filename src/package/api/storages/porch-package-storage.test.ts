import { expect, test } from 'vitest';
import { packageKinds } from '../../../../test/support/package-kinds.ts';
import { anna, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft, outcomeOf, publish } from '../../../../test/support/shop.ts';
import { porchPackageKind } from '../../../resource/kinds/porch/porch-package.ts';

const kind = porchPackageKind;

test('a package is there with its first revision, and names the highest published one', async () => {
  await using scratch = await scratchRepository();
  const { store, client } = await packageKinds(scratch);
  const name = await draft(store, 'net/upf');
  const created = await client.get(kind, { name: 'packages.net.upf' });
  expect(created).toMatchObject({
    metadata: { name: 'packages.net.upf', namespace: 'default', creationTimestamp: '2026-01-02T03:04:05Z' },
    spec: { packageName: 'net/upf', repository: 'packages' },
    status: { latestRevision: 0 },
  });
  await publish(store, name);
  const published = await client.get(kind, { name: 'packages.net.upf' });
  expect(published.status).toEqual({ latestRevision: 1 });
  expect(published.metadata).toEqual({
    ...created.metadata,
    resourceVersion: published.metadata.resourceVersion,
  });
});

test('its events report changes of the package, and nothing else', async () => {
  await using scratch = await scratchRepository();
  const { store, client } = await packageKinds(scratch);
  const stop = new AbortController();
  const { resourceVersion } = await client.list(kind);
  const events = client.watch(kind, { resourceVersion, signal: stop.signal })[Symbol.asyncIterator]();
  const next = async () => {
    const { value } = await events.next();
    return value.type === 'BOOKMARK' ? '' : `${value.type} ${value.object.status?.latestRevision}`;
  };
  const first = await draft(store);
  await store.change(first, { metadata: { labels: { a: 'b' } } }, anna);
  await publish(store, first);
  const copy = { package: 'shop', workspace: 'v2', source: { type: 'copy', source: first } } as const;
  const { name: second } = await store.create('packages', copy, anna);
  await publish(store, second);
  expect([await next(), await next(), await next()]).toEqual(['ADDED 0', 'MODIFIED 1', 'MODIFIED 2']);
  for (const name of [second, first, 'packages.shop.main']) {
    await store.update(name, { action: 'propose-deletion' }, anna);
    await store.update(name, { action: 'delete' }, anna);
  }
  expect([await next(), await next(), await next()]).toEqual(['MODIFIED 1', 'MODIFIED 0', 'DELETED 0']);
  expect((await client.list(kind)).items).toEqual([]);
  stop.abort();
});

test('what was there before is listed, selected and paged', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  for (const name of ['c', 'a', 'b']) await publish(store, await draft(store, name));
  const { client, packages } = await packageKinds(scratch);
  const { items } = await client.list(kind);
  expect(items.map(({ metadata, status }) => [metadata.name, status?.latestRevision])).toEqual([
    ['packages.a', 1],
    ['packages.b', 1],
    ['packages.c', 1],
  ]);
  const selected = await client.list(kind, { fieldSelector: 'spec.packageName=b,spec.repository=packages' });
  expect(selected.items).toEqual([items[1]]);
  const page = await packages.list(anna, { limit: 2 });
  const rest = await packages.list(anna, { limit: 2, continue: page.continue });
  expect([...page.items, ...rest.items]).toEqual(items);
});

test('a repository that is taken out takes its packages along', async () => {
  await using scratch = await scratchRepository();
  const { store, client } = await packageKinds(scratch);
  await draft(store);
  await store.remove('packages');
  expect((await client.list(kind)).items).toEqual([]);
});

test('it is read only, in the words of Kubernetes', async () => {
  await using scratch = await scratchRepository();
  const { store, client } = await packageKinds(scratch);
  await draft(store);
  const key = { name: 'packages.shop' };
  const object = await client.get(kind, key);
  const text = (verb: string) => `Unsupported: ${verb} is not supported on resources of kind "packages.porch.kpt.dev"`;
  expect(await outcomeOf(client.create(kind, object as never))).toBe(text('create'));
  expect(await outcomeOf(client.update(kind, object))).toBe(text('update'));
  expect(await outcomeOf(client.delete(kind, key))).toBe(text('delete'));
  expect(await outcomeOf(client.get(kind, { name: 'packages.none' }))).toBe(
    'NotFound: packages.porch.kpt.dev "packages.none" not found',
  );
});
