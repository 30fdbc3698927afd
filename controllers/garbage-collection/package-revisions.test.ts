import { expect, test } from 'vitest';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { refer } from '../testing-objects.ts';
import { garbageCollectionController } from './garbage-collection-controller.ts';

const PUBLISHED_IS_KEPT = /^NotCollected: .*lifecycle to 'DeletionProposed'/;

async function owned({ client }: Fixture, name: string, owner: string): Promise<void> {
  const { kind, apiVersion, metadata } = await client.get(configMapKind, { name: owner });
  const revision = await client.get(packageRevisionKind, { name });
  const ownerReferences = [refer({ kind, apiVersion, metadata })];
  await client.update(packageRevisionKind, { ...revision, metadata: { ...revision.metadata, ownerReferences } });
}

async function isThere({ client }: Fixture, name: string): Promise<boolean> {
  return (await client.find(packageRevisionKind, { name })) !== undefined;
}

test('drafts are deleted with their owner; a published revision stays until its deletion is proposed', async () => {
  await using at = await fixture();
  const { client, registry, clock, manager, store } = at;
  await at.register('r');
  await client.create(configMapKind, { metadata: { name: 'owner' } });
  await client.create(configMapKind, { metadata: { name: 'other' } });
  const draft = await at.draft('r/a/v1');
  const published = await at.draft('r/b/v1');
  const living = await at.draft('r/c/v1');
  await at.publish(published.name);
  for (const [name, owner] of [
    [draft.name, 'owner'],
    [published.name, 'owner'],
    [living.name, 'other'],
  ] as const)
    await owned(at, name, owner);
  const recorder = at.recorder('controller:garbage-collection');
  manager.addController(garbageCollectionController({ client, registry, clock, recorder }));
  await manager.start();
  await manager.idle();
  expect(await isThere(at, draft.name)).toBe(true);

  await client.delete(configMapKind, { name: 'owner' });
  await manager.idle();
  expect(await isThere(at, draft.name)).toBe(false);
  expect(await isThere(at, living.name)).toBe(true);
  expect(store.get(published.name).lifecycle).toBe('Published');
  expect(await at.events(published.name)).toEqual([expect.stringMatching(PUBLISHED_IS_KEPT)]);

  const kept = await client.get(packageRevisionKind, { name: published.name });
  await client.subResource('approval').update(packageRevisionKind, {
    ...kept,
    spec: { ...kept.spec, lifecycle: 'DeletionProposed' },
  });
  await manager.idle();
  expect(await isThere(at, published.name)).toBe(false);
});

test('drafts of a repository from another server stay, since their owners were never on this server', async () => {
  await using at = await fixture();
  const { client, registry, clock, manager } = at;
  await at.register('r');
  const known = new Set<string>();
  const memory = {
    isFor: ({ kind }: { readonly kind: string }) => kind === 'PackageRevision',
    knows: (uid: string) => known.has(uid),
    remember: (uid: string) => void known.add(uid),
  };
  await client.create(configMapKind, { metadata: { name: 'owner' } });
  const [foreign, own] = [await at.draft('r/a/v1'), await at.draft('r/b/v1')];
  for (const { name } of [foreign, own]) await owned(at, name, 'owner');
  const revision = await client.get(packageRevisionKind, { name: foreign.name });
  const [reference] = revision.metadata.ownerReferences ?? [];
  if (reference === undefined) throw new Error('the draft has no owner');
  const ownerReferences = [{ ...reference, uid: '00000000-0000-4000-8000-000000000000' }];
  await client.update(packageRevisionKind, { ...revision, metadata: { ...revision.metadata, ownerReferences } });
  manager.addController(garbageCollectionController({ client, registry, clock, memory }));
  await manager.start();
  await manager.idle();
  expect([...known]).toEqual([reference.uid]);
  await client.delete(configMapKind, { name: 'owner' });
  await manager.idle();
  expect([await isThere(at, foreign.name), await isThere(at, own.name)]).toEqual([true, false]);
});

test('drafts whose owner is in another namespace, which shows the same repository, stay', async () => {
  await using at = await fixture();
  const { client, registry, clock, manager } = at;
  await at.register('r');
  const memory = { isFor: ({ kind }: { readonly kind: string }) => kind === 'PackageRevision' };
  const draft = await at.draft('r/a/v1');
  const owner = await client.create(configMapKind, { metadata: { name: 'owner', namespace: 'other' } });
  const { kind, apiVersion, metadata } = owner;
  const revision = await client.get(packageRevisionKind, { name: draft.name });
  const ownerReferences = [refer({ kind, apiVersion, metadata })];
  await client.update(packageRevisionKind, { ...revision, metadata: { ...revision.metadata, ownerReferences } });
  manager.addController(
    garbageCollectionController({
      ...{ client, registry, clock },
      memory: { ...memory, knows: () => true, remember: () => undefined },
    }),
  );
  await manager.start();
  await manager.idle();
  expect(await isThere(at, draft.name)).toBe(true);
});

test('orphaned drafts drop the reference to their owner in Git too', async () => {
  await using at = await fixture();
  const { client, registry, clock, manager } = at;
  await at.register('r');
  await client.create(configMapKind, { metadata: { name: 'owner' } });
  const draft = await at.draft('r/a/v1');
  await owned(at, draft.name, 'owner');
  manager.addController(garbageCollectionController({ client, registry, clock }));
  await manager.start();
  await client.delete(configMapKind, { name: 'owner' }, { propagationPolicy: 'Orphan' });
  await manager.idle();
  expect(await client.find(configMapKind, { name: 'owner' })).toBeUndefined();
  expect((await client.get(packageRevisionKind, { name: draft.name })).metadata.ownerReferences ?? []).toEqual([]);
});
