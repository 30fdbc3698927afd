import { expect, test } from 'vitest';
import { packageKinds } from '../../../../test/support/package-kinds.ts';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft, outcomeOf, publish } from '../../../../test/support/shop.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { RegistryClient } from '../../../resource/client/registry-client.ts';
import {
  packageRevisionKind,
  type PackageRevision as RevisionObject,
} from '../../../resource/kinds/porch/package-revision.ts';
import { Registry } from '../../../resource/storage/registry.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { PackageRevisionStorage } from './package-revision-storage.ts';

async function setUp(scratch: Scratch) {
  const { store } = await scratch.open();
  const registry = new Registry();
  registry.register(new PackageRevisionStorage(store, new EventLog({ clock: scratch.clock })));
  const client = new RegistryClient(registry, anna.actor, 'cli');
  const created = await client.create(packageRevisionKind, {
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevision',
    metadata: { name: 'ignored', namespace: 'default', labels: { team: 'a' } },
    spec: {
      repository: 'packages',
      packageName: 'shop',
      workspaceName: 'v1',
      tasks: [{ type: 'init', init: { description: 'a shop' } }],
    },
  });
  return { store, registry, client, created };
}

test('a package revision is created, described and named as Porch does', async () => {
  await using scratch = await scratchRepository();
  const { created } = await setUp(scratch);
  expect(created.metadata).toMatchObject({
    name: 'packages.shop.v1',
    namespace: 'default',
    labels: { team: 'a' },
    creationTimestamp: '2026-01-02T03:04:05Z',
  });
  expect(created.spec).toMatchObject({ lifecycle: 'Draft', packageName: 'shop', tasks: [{ type: 'init' }] });
  expect(created.spec.revision).toBeUndefined();
  expect(created.status?.selfLock?.git).toMatchObject({ directory: 'shop', ref: 'drafts/shop/v1', repo: scratch.path });
});

test('the lifecycle moves through the main resource, publication only through approval', async () => {
  await using scratch = await scratchRepository();
  const { client, created } = await setUp(scratch);
  const to = (object: RevisionObject, lifecycle: NonNullable<RevisionObject['spec']['lifecycle']>) => ({
    ...object,
    spec: { ...object.spec, lifecycle },
  });
  const approval = client.subResource('approval');
  expect(await outcomeOf(approval.update(packageRevisionKind, to(created, 'Published')))).toContain(
    'cannot approve package with Draft lifecycle value; only Proposed packages can be approved',
  );
  const proposed = await client.update(packageRevisionKind, to(created, 'Proposed'));
  expect(proposed.spec.lifecycle).toBe('Proposed');
  expect(await outcomeOf(client.update(packageRevisionKind, to(proposed, 'Published')))).toMatch(/^InvalidInput/);
  const published = await approval.update(packageRevisionKind, to(proposed, 'Published'));
  expect(published.spec).toMatchObject({ lifecycle: 'Published', revision: 1 });
  expect(published.metadata.labels).toEqual({ team: 'a', 'kpt.dev/latest-revision': 'true' });
  expect(published.status).toMatchObject({ publishedBy: 'anna' });
  expect(await outcomeOf(client.delete(packageRevisionKind, { name: created.metadata.name }))).toContain(
    'must be proposed for deletion',
  );
  const marked = await client.update(packageRevisionKind, to(published, 'DeletionProposed'));
  await client.delete(packageRevisionKind, { name: marked.metadata.name });
  expect(await client.find(packageRevisionKind, { name: created.metadata.name })).toBeUndefined();
});

test('a caller undoes its own deletion proposal with the object from before it, and no other caller does', async () => {
  await using scratch = await scratchRepository();
  const { store, registry, client, created } = await setUp(scratch);
  const { name } = created.metadata;
  await store.update(name, { action: 'propose' }, anna);
  await store.update(name, { action: 'approve' }, anna);
  const seen = await client.get(packageRevisionKind, { name });
  const to = (lifecycle: NonNullable<RevisionObject['spec']['lifecycle']>) => ({
    ...seen,
    spec: { ...seen.spec, lifecycle },
  });
  const stepAs = async (actor: string, lifecycle: NonNullable<RevisionObject['spec']['lifecycle']>) => {
    const approval = new RegistryClient(registry, { name: actor }, 'cli').subResource('approval');
    return outcomeOf(approval.update(packageRevisionKind, to(lifecycle)));
  };
  expect(await stepAs('anna', 'DeletionProposed')).toBe('succeeded');
  // Ben has not seen the proposal, so that he cannot mean to reject it.
  expect(await stepAs('ben', 'Published')).toMatch(/^Conflict: .*the object has been modified/);
  expect(await stepAs('anna', 'Published')).toBe('succeeded');
  expect(await stepAs('anna', 'DeletionProposed')).toBe('succeeded');
  // What the object says besides is not written by a lifecycle step, and a write of it must know the current state.
  expect(await outcomeOf(client.update(packageRevisionKind, to('Published')))).toMatch(/^Conflict/);
  await store.update(name, { action: 'undo-deletion' }, { ...anna, actor: { name: 'ben' } });
  expect(await stepAs('anna', 'DeletionProposed')).toMatch(/^Conflict/);
});

test('a revision stays created when it was, whether or not a record outlives its publication', async () => {
  await using scratch = await scratchRepository();
  const { store, client, created } = await setUp(scratch);
  await store.create('packages', { package: 'web', workspace: 'v1', source: { type: 'init' } }, anna);
  scratch.clock.advance(60_000);
  for (const name of [created.metadata.name, 'packages.web.v1']) {
    await store.update(name, { action: 'propose' }, anna);
    await store.update(name, { action: 'approve' }, anna);
    const { metadata, status } = await client.get(packageRevisionKind, { name });
    expect(metadata.creationTimestamp).toBe('2026-01-02T03:04:05Z');
    expect(status?.publishTimestamp).toBe('2026-01-02T03:05:05Z');
  }
});

test('a version that is not current is a conflict; conditions and gates can be written; a watch reports all', async () => {
  await using scratch = await scratchRepository();
  const { store, client, created } = await setUp(scratch);
  const stop = new AbortController();
  const seen: string[] = [];
  const { resourceVersion } = await client.list(packageRevisionKind);
  const watching = (async () => {
    for await (const event of client.watch(packageRevisionKind, { resourceVersion, signal: stop.signal })) {
      if (event.type !== 'BOOKMARK')
        seen.push(`${event.type} ${event.object.metadata.name} ${event.object.spec.lifecycle}`);
    }
  })();
  const gated = await client.update(packageRevisionKind, {
    ...created,
    spec: {
      ...created.spec,
      readinessGates: [{ conditionType: 'tested' }],
      packageMetadata: { annotations: { a: 'b' } },
    },
  });
  expect(gated.spec.packageMetadata?.annotations).toMatchObject({ a: 'b' });
  const stale = { ...created, spec: { ...created.spec, lifecycle: 'Proposed' as const } };
  expect(await outcomeOf(client.update(packageRevisionKind, stale))).toMatch(
    /^Conflict: Operation cannot be fulfilled/,
  );
  const given = await client.updateStatus(packageRevisionKind, {
    ...gated,
    status: { ...gated.status, conditions: [{ type: 'tested', status: 'True', reason: 'Ok' }] },
  });
  expect(given.status?.conditions).toEqual([
    { type: 'tested', status: 'True', reason: 'Ok' },
    { type: 'sluice.dev/Ready', status: 'True', reason: 'AllGatesOpen', message: 'the gate is open' },
  ]);
  expect((await store.evaluate(created.metadata.name)).gates[0]?.state).toBe('Open');
  const label = { ...given, metadata: { ...given.metadata, labels: { 'kpt.dev/latest-revision': 'true' } } };
  expect(await outcomeOf(client.update(packageRevisionKind, label))).toContain('Forbidden');
  await expect.poll(() => seen.length).toBeGreaterThanOrEqual(2);
  stop.abort();
  await watching;
  expect(new Set(seen)).toEqual(new Set(['MODIFIED packages.shop.v1 Draft']));
});

test('a revision with an unreadable Kptfile reports it', async () => {
  await using scratch = await scratchRepository();
  const { store, client } = await setUp(scratch);
  const git = await openRepository(scratch.path);
  await commitFiles(git, { 'bad/Kptfile': 'a: [' }, 0, { branch: 'drafts/bad/v1', from: 'refs/heads/main' });
  await git.close();
  await store.repository('packages').refresh();
  const { metadata } = await client.get(packageRevisionKind, { name: 'packages.bad.v1' });
  expect(metadata.annotations?.['sluice.dev/problem']).toMatch(/YAML/);
});

test('finalizers hold a deletion back', async () => {
  await using scratch = await scratchRepository();
  const { client, created } = await setUp(scratch);
  const held = await client.update(packageRevisionKind, {
    ...created,
    metadata: { ...created.metadata, finalizers: ['example.com/hold'] },
  });
  const deleting = await client.delete(packageRevisionKind, { name: held.metadata.name });
  expect(deleting.metadata.deletionTimestamp).toBeDefined();
  await client.update(packageRevisionKind, { ...deleting, metadata: { ...deleting.metadata, finalizers: [] } });
  expect(await client.find(packageRevisionKind, { name: created.metadata.name })).toBeUndefined();
});

test('what the deletion of the last revision leaves on the main branch came through the gates, although older revisions remain', async () => {
  await using scratch = await scratchRepository();
  const { store } = await packageKinds(scratch);
  const first = await draft(store);
  await publish(store, first);
  const next = async (workspace: string, files: Record<string, string>) => {
    const source = { type: 'copy', source: first } as const;
    const { name } = await store.create('packages', { package: 'shop', workspace, source }, anna);
    const edits = Object.entries(files).map(([path, text]): [string, Buffer] => [path, Buffer.from(text)]);
    await store.change(name, { files: new Map(edits) }, anna);
    await publish(store, name);
    return name;
  };
  const remove = async (name: string) => {
    await store.update(name, { action: 'propose-deletion' }, anna);
    await store.update(name, { action: 'delete' }, anna);
  };
  const flaw = () => store.get('packages.shop.main').outOfBand?.reason;
  const second = await next('v2', { 'a.yaml': 'a: 2\n' });
  const leftTree = store.get(second).tip.tree;
  await remove(second);
  expect(flaw()).toBeUndefined();
  // What was deleted does not count again after the next publication.
  await next('v3', { 'a.yaml': 'a: 3\n' });
  expect(flaw()).toBeUndefined();
  const git = await openRepository(scratch.path);
  await commitFiles(git, { 'shop/a.yaml': 'a: 2\n' }, scratch.clock.now());
  await git.close();
  await store.repository('packages').refresh();
  expect(store.get('packages.shop.main').tip.tree).toBe(leftTree);
  expect(flaw()).toBe('MainDiffers');
});

test('the placeholder of the main branch keeps its version when the last published revision is deleted, and names no publisher', async () => {
  await using scratch = await scratchRepository();
  const { revisions, store } = await packageKinds(scratch);
  const name = await draft(store);
  await publish(store, name);
  const main = () => revisions.get(anna, { name: 'packages.shop.main' });
  const before = await main();
  expect(before.status?.publishedBy).toBeUndefined();
  await store.update(name, { action: 'propose-deletion' }, anna);
  await store.update(name, { action: 'delete' }, anna);
  expect(await main()).toEqual(before);
  // What others put there is flagged all the same.
  const git = await openRepository(scratch.path);
  await commitFiles(git, { 'shop/a.yaml': 'a: 1\n' }, scratch.clock.now());
  await git.close();
  await store.repository('packages').refresh();
  expect((await main()).status?.outOfBand?.reason).toBe('NotPublished');
});
