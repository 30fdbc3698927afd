import { describe, expect, test } from 'vitest';
import { packageKinds, revision, to } from '../../../../test/support/package-kinds.ts';
import { anna, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft, outcomeOf, publish } from '../../../../test/support/shop.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import {
  packageRevisionKind,
  type PackageRevision as RevisionObject,
} from '../../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../../resource/kinds/porch/package-revision-resources.ts';
import type { ManagedFieldsEntry } from '../../../resource/object/object.ts';
import { APPROVAL_ANNOTATIONS } from '../../model/revision/lifecycle-annotations.ts';

const kind = packageRevisionKind;
const name = 'packages.shop.v1';
const dry = { ...anna, dryRun: true };

describe('requests on one package revision at the same time', () => {
  const busy = `Busy: another request is already in progress on package revision "default/${name}"`;

  test.each([
    ['create', undefined],
    ['label', (object: RevisionObject) => ({ ...object, metadata: { ...object.metadata, labels: { a: 'b' } } })],
    ['propose', (object: RevisionObject) => to(object, 'Proposed')],
  ])('%s: one succeeds, the other one is refused and not queued', async (_what, change) => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    if (change !== undefined) await draft(store);
    const object = change === undefined ? revision('shop') : change(await revisions.get(anna, { name }));
    const write = () => (change === undefined ? revisions.create(anna, object) : revisions.update(anna, object));
    expect((await Promise.all([outcomeOf(write()), outcomeOf(write())])).sort()).toEqual([busy, 'succeeded']);
  });

  test('the files are the same revision', async () => {
    await using scratch = await scratchRepository();
    const { revisions, resources, store } = await packageKinds(scratch);
    await draft(store);
    const files = await resources.get(anna, { name });
    const object = await revisions.get(anna, { name });
    const spec = { ...files.spec, resources: { ...files.spec.resources, 'a.yaml': 'a: 1\n' } };
    const outcomes = await Promise.all([
      outcomeOf(resources.update(anna, { ...files, spec })),
      outcomeOf(revisions.delete(anna, { name })),
      outcomeOf(revisions.updateSubResource(anna, 'approval', to(object, 'Published'))),
    ]);
    expect(outcomes).toEqual(['succeeded', busy, busy]);
  });
});

describe('create', () => {
  test('ignores the name of the client, with a warning', async () => {
    await using scratch = await scratchRepository();
    const { revisions } = await packageKinds(scratch);
    const warnings: string[] = [];
    const context = { ...anna, warn: (message: string) => warnings.push(message) };
    await revisions.create(context, revision('shop', 'v1', { metadata: { name } }));
    expect(warnings).toEqual([]);
    await revisions.create(context, revision('web', 'v1', { metadata: { name: 'mine' } }));
    expect(warnings).toEqual(['metadata.name "mine" was ignored; the name is "packages.web.v1"']);
  });

  test('puts gates and package metadata into the Kptfile of the first commit, so that the draft is never without them', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    const spec = {
      readinessGates: [{ conditionType: 'shop.example.com/Complete' }],
      packageMetadata: { labels: { tier: 'front' }, annotations: { note: 'yes' } },
    };
    const made = await revisions.create(anna, revision('shop', 'v1', { spec }));
    expect(made.spec).toMatchObject(spec);
    expect(await store.history(name)).toHaveLength(1);
  });

  test('without a task makes an empty package with a description', async () => {
    await using scratch = await scratchRepository();
    const { revisions } = await packageKinds(scratch);
    const made = await revisions.create(anna, revision('net/upf'));
    expect(made.spec.tasks).toEqual([{ type: 'init', init: { description: 'upf description' } }]);
    expect(made.status?.conditions).toEqual([{ type: 'Rendered', status: 'True', reason: 'RenderSuccess' }]);
  });

  test.each([
    [{ lifecycle: 'Proposed' }, 'spec.lifecycle: Invalid value: "Proposed": value can be only created as Draft'],
    [{ tasks: [{ type: 'init' }, { type: 'init' }] }, 'task list must not contain more than one task'],
    [{ tasks: [{ type: 'init', init: { description: 'a\ud800' } }] }, 'half of a surrogate pair'],
    [{ tasks: [{ type: 'render' }] }, 'spec.tasks[0].type: Invalid value: "render"'],
    [{ tasks: [{ type: 'edit' }] }, 'a task of type edit needs this part'],
    [{ tasks: [{ type: 'clone', clone: { upstreamRef: {} } }] }, 'upstreamRef.name of a package revision, or git'],
    [{ tasks: [{ type: 'init', init: { subpackage: 'x' } }] }, 'packages are created as a whole'],
    [{ tasks: [{ type: 'edit', edit: { sourceRef: { name: 'packages.none.v1' } } }] }, '"packages.none.v1" not found'],
    [{ repository: 'none' }, 'repository "none" is not registered'],
    [{ workspaceName: 'V_1' }, 'workspace name "V_1"'],
  ])('refuses %j', async (spec, message) => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    expect(await outcomeOf(revisions.create(anna, revision('shop', 'v1', { spec })))).toContain(message);
    expect(store.list()).toEqual([]);
  });

  test('refuses what is there, in the words of Porch', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    await draft(store);
    expect(await outcomeOf(revisions.create(anna, revision('shop', 'v2')))).toBe(
      'AlreadyExists: package "shop" already exists in repository "packages"',
    );
    expect(await outcomeOf(revisions.create(anna, revision('shop')))).toContain('workspaceNames must be unique;');
    expect(await outcomeOf(revisions.create(anna, revision('shop/inner')))).toContain('packages cannot be nested');
    const labelled = revision('web', 'v1', { metadata: { labels: { 'kpt.dev/latest-revision': 'true' } } });
    expect(await outcomeOf(revisions.create(anna, labelled))).toMatch(
      /metadata\.labels\[kpt\.dev\/latest-revision\]: Forbidden: label is managed/,
    );
  });

  test('neither puts packages into a repository of another namespace nor takes them from there', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    await publish(store, await draft(store));
    const elsewhere = { metadata: { namespace: 'elsewhere' } };
    expect(await outcomeOf(revisions.create(anna, revision('web', 'v1', elsewhere)))).toBe(
      'NotFound: repository "packages" is not registered in namespace elsewhere, or not ready; see "sluice repo get -n elsewhere"',
    );
    await using other = await scratchRepository();
    const { repository } = await other.open({ name: 'others', namespace: 'elsewhere' });
    await store.add(repository);
    const tasks = [{ type: 'clone', clone: { upstreamRef: { upstreamRef: { name } } } }];
    const clone = revision('web', 'v1', { ...elsewhere, spec: { repository: 'others', tasks } });
    expect(await outcomeOf(revisions.create(anna, clone))).toBe(
      `NotFound: packagerevisions.porch.kpt.dev "${name}" not found`,
    );
    await store.remove('others');
  });
});

describe('update', () => {
  test('of metadata and lifecycle is one transaction and one event', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store, client, log } = await packageKinds(scratch);
    await draft(store);
    const object = await revisions.get(anna, { name });
    const from = log.version;
    const wanted = to({ ...object, metadata: { ...object.metadata, labels: { a: 'b' } } }, 'Proposed');
    const after = await client.update(kind, wanted);
    expect(after).toMatchObject({ metadata: { labels: { a: 'b' } }, spec: { lifecycle: 'Proposed' } });
    expect(BigInt(log.version)).toBe(BigInt(from) + 1n);
    expect(after.metadata.resourceVersion).toBe(log.version);
  });

  test.each([
    [{ packageName: 'other' }, 'spec.packageName: Invalid value: "other": field is immutable'],
    [{ repository: 'other' }, 'spec.repository: Invalid value: "other": field is immutable'],
    [{ workspaceName: 'other' }, 'spec.workspaceName: Invalid value: "other": field is immutable'],
    [{ lifecycle: 'Published' }, 'value can be only updated to Draft,Proposed'],
  ])('refuses %j', async (spec, message) => {
    await using scratch = await scratchRepository();
    const { client, store } = await packageKinds(scratch);
    await draft(store);
    const object = await client.get(kind, { name });
    expect(await outcomeOf(client.update(kind, { ...object, spec: { ...object.spec, ...spec } as never }))).toContain(
      message,
    );
  });

  test('of what is published changes metadata and the wish to delete it, and nothing else', async () => {
    await using scratch = await scratchRepository();
    const { client, store } = await packageKinds(scratch);
    await publish(store, await draft(store));
    const object = await client.get(kind, { name });
    const gated = { ...object, spec: { ...object.spec, readinessGates: [{ conditionType: 'x' }] } };
    expect(await outcomeOf(client.update(kind, gated))).toContain('spec can only update package with lifecycle value');
    expect(await outcomeOf(client.update(kind, to(object, 'Draft')))).toContain('Published,DeletionProposed');
    const labels = { ...object.metadata.labels, a: 'b' };
    const marked = to({ ...object, metadata: { ...object.metadata, labels } }, 'DeletionProposed');
    expect(await client.update(kind, marked)).toMatchObject({
      metadata: { labels },
      spec: { lifecycle: 'DeletionProposed' },
    });
  });

  test('refuses a change of tasks', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    await draft(store);
    const object = await revisions.get(anna, { name });
    const warnings: string[] = [];
    const context = { ...anna, warn: (message: string) => warnings.push(message) };
    await revisions.update(context, { ...object, spec: { ...object.spec, tasks: [] } });
    expect(warnings).toEqual(['spec.tasks of an existing package revision cannot change and was ignored']);
  });
});

test('clients that do not know spec.packageMetadata remove nothing, and one that writes it does', async () => {
  await using scratch = await scratchRepository();
  const { revisions } = await packageKinds(scratch);
  const labels = { tier: 'front' };
  const made = await revisions.create(anna, revision('shop', 'v1', { spec: { packageMetadata: { labels } } }));
  const { packageMetadata: _unknown, ...spec } = made.spec;
  const kept = await revisions.update(anna, { ...made, spec: { ...spec, lifecycle: 'Proposed' } });
  expect(kept.spec).toMatchObject({ lifecycle: 'Proposed', packageMetadata: { labels } });
  const back = await revisions.update(anna, { ...kept, spec: { ...kept.spec, lifecycle: 'Draft' } });
  const cleared = await revisions.update(anna, { ...back, spec: { ...back.spec, packageMetadata: { labels: {} } } });
  expect(cleared.spec.packageMetadata?.labels).toBeUndefined();
});

test('an affirmed condition counts for the current content, without a commit and without closing its gate', async () => {
  await using scratch = await scratchRepository();
  const { revisions, store } = await packageKinds(scratch);
  const spec = { readinessGates: [{ conditionType: 'Tested' }] };
  let object = await revisions.create(anna, revision('shop', 'v1', { spec }));
  const conditions = [...(object.status?.conditions ?? []), { type: 'Tested', status: 'True' as const }];
  await revisions.updateSubResource(anna, 'status', { ...object, status: { ...object.status, conditions } } as never);
  const edited = new Map([['a.yaml', Buffer.from('a: 1\n')]]);
  await store.change(name, { files: edited }, anna);
  const gate = async () => (await store.evaluate(name)).gates.find(({ type }) => type === 'Tested')?.state;
  expect(await gate()).toBe('Stale');
  const { commit } = store.get(name);
  object = await revisions.get(anna, { name });
  await revisions.updateSubResource(anna, 'status', object);
  expect(await gate(), 'carried along').toBe('Stale');
  const annotations = { ...object.metadata.annotations, 'sluice.dev/affirm': 'Tested' };
  const affirmed = { ...object, metadata: { ...object.metadata, annotations } };
  const after = await revisions.updateSubResource(anna, 'status', affirmed);
  expect(await gate()).toBe('Open');
  expect(store.get(name).commit).toBe(commit);
  expect(after.metadata.annotations ?? {}).not.toHaveProperty('sluice.dev/affirm');
});

describe('delete', () => {
  test('keeps to the rules of Porch', async () => {
    await using scratch = await scratchRepository();
    const users: string[] = [];
    const { client, store, revisions } = await packageKinds(scratch, { dependentsOf: () => users });
    await publish(store, await draft(store));
    const refused =
      'Refused: packagerevisions.porch.kpt.dev "packages.shop.v1" is forbidden: published PackageRevisions must be proposed for deletion by setting spec.lifecycle to \'DeletionProposed\' prior to deletion';
    for (const propagationPolicy of ['Background', 'Foreground', 'Orphan'] as const)
      expect(await outcomeOf(revisions.delete(anna, { name }, { propagationPolicy }))).toBe(refused);
    await client.update(kind, to(await client.get(kind, { name }), 'DeletionProposed'));
    users.push('packages.web.v1', 'packages.web.v2');
    expect(await outcomeOf(client.delete(kind, { name }))).toBe(
      'Refused: packagerevisions.porch.kpt.dev "packages.shop.v1" is forbidden: cannot delete package revision, it is referenced as upstream by: packages.web.v1, packages.web.v2',
    );
  });

  test.each([
    ['Foreground', 'foregroundDeletion'],
    ['Orphan', 'orphan'],
  ] as const)('%s waits for who takes the finalizer off', async (propagationPolicy, finalizer) => {
    await using scratch = await scratchRepository();
    const { client, store, revisions } = await packageKinds(scratch);
    await draft(store);
    const marked = await revisions.delete(anna, { name }, { propagationPolicy });
    expect(marked.metadata).toMatchObject({ finalizers: [finalizer], deletionTimestamp: '2026-01-02T03:04:05Z' });
    expect(await client.get(kind, { name })).toEqual(marked);
    await client.update(kind, { ...marked, metadata: { ...marked.metadata, finalizers: [] } });
    expect(store.find(name)).toBeUndefined();
  });
});

test('dry runs of every write change nothing and return what would be', async () => {
  await using scratch = await scratchRepository();
  const { revisions, store, log } = await packageKinds(scratch);
  const created = await revisions.create(dry, revision('shop'));
  expect(created).toMatchObject({ metadata: { name }, spec: { lifecycle: 'Draft' } });
  await draft(store);
  const object = await revisions.get(anna, { name });
  const { version } = log;
  const labelled = await revisions.update(
    dry,
    to({ ...object, metadata: { ...object.metadata, labels: { a: 'b' } } }, 'Proposed'),
  );
  expect(labelled).toMatchObject({ metadata: { labels: { a: 'b' } }, spec: { lifecycle: 'Proposed' } });
  expect(labelled.metadata.resourceVersion).toBe(object.metadata.resourceVersion);
  const conditions = [{ type: 'tested', status: 'True' as const }];
  const given = await revisions.updateSubResource(dry, 'status', { ...object, status: { conditions } });
  expect(given.status?.conditions).toEqual(conditions);
  expect(await revisions.delete(dry, { name })).toEqual(object);
  expect(await revisions.delete(dry, { name }, { propagationPolicy: 'Orphan' })).toMatchObject({
    metadata: { finalizers: ['orphan'] },
  });
  await store.update(name, { action: 'propose' }, anna);
  const proposed = await revisions.get(anna, { name });
  const approved = await revisions.updateSubResource(dry, 'approval', to(proposed, 'Published'));
  expect(approved).toMatchObject({ spec: { lifecycle: 'Published', revision: 1 }, status: { publishedBy: 'anna' } });
  expect(await revisions.get(anna, { name })).toEqual(proposed);
  expect(BigInt(log.version)).toBe(BigInt(version) + 1n);
});

describe('owners of fields', () => {
  const entry = (manager: string): ManagedFieldsEntry => ({
    ...{ manager, operation: 'Apply', apiVersion: 'porch.kpt.dev/v1alpha1', fieldsType: 'FieldsV1' },
    fieldsV1: { 'f:metadata': {} },
  });

  test('are created and deleted with the object, in one event', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store, log } = await packageKinds(scratch);
    const made = await revisions.create(anna, revision('shop', 'v1', { metadata: { managedFields: [entry('a')] } }));
    expect(made.metadata.managedFields).toEqual([entry('a')]);
    let from = BigInt(log.version);
    const labelled = await revisions.update(anna, {
      ...made,
      metadata: { ...made.metadata, labels: { a: 'b' }, managedFields: [entry('b')] },
    });
    expect(labelled.metadata.managedFields).toEqual([entry('b')]);
    expect(BigInt(log.version)).toBe(from + 1n);
    // Others' changes keep them; a write that says nothing keeps them too.
    await store.change(name, { metadata: { labels: { c: 'd' } } }, anna);
    const now = await revisions.get(anna, { name });
    expect(now.metadata.managedFields).toEqual([entry('b')]);
    from = BigInt(log.version);
    const { commit } = store.get(name);
    const owned = await revisions.update(anna, { ...now, metadata: { ...now.metadata, managedFields: [entry('c')] } });
    expect(owned.metadata).toMatchObject({ managedFields: [entry('c')], resourceVersion: String(from + 1n) });
    expect(store.get(name).commit).toBe(commit);
    const forgotten = await revisions.update(anna, { ...owned, metadata: { ...owned.metadata, managedFields: [] } });
    expect(forgotten.metadata.managedFields).toBeUndefined();
    await revisions.update(anna, { ...forgotten, metadata: { ...forgotten.metadata, managedFields: [entry('d')] } });
    await revisions.delete(anna, { name });
    expect((await revisions.create(anna, revision('shop'))).metadata.managedFields).toBeUndefined();
  });

  test('a write that is refused leaves none behind', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    await draft(store);
    const object = await revisions.get(anna, { name });
    const wanted = to({ ...object, metadata: { ...object.metadata, managedFields: [entry('a')] } }, 'Published');
    expect(await outcomeOf(revisions.updateSubResource(anna, 'approval', wanted))).toMatch(/^Refused/);
    await store.change(name, { metadata: { labels: { c: 'd' } } }, anna);
    expect((await revisions.get(anna, { name })).metadata.managedFields).toBeUndefined();
  });

  test('of the files are others than those of the package revision', async () => {
    await using scratch = await scratchRepository();
    const { client, store } = await packageKinds(scratch);
    await draft(store);
    const files = await client.get(packageRevisionResourcesKind, { name });
    const owned = await client.update(packageRevisionResourcesKind, {
      ...files,
      metadata: { ...files.metadata, managedFields: [entry('a')] },
    });
    expect(owned.metadata.managedFields).toEqual([entry('a')]);
    expect((await client.get(kind, { name })).metadata.managedFields).toBeUndefined();
    await client.delete(kind, { name });
    await draft(store);
    expect((await client.get(packageRevisionResourcesKind, { name })).metadata.managedFields).toBeUndefined();
  });
});

test('lists are paged over one snapshot and selected by index', async () => {
  await using scratch = await scratchRepository();
  const { revisions, client, store } = await packageKinds(scratch);
  for (const packageName of ['c', 'a', 'b']) await draft(store, packageName);
  const first = await revisions.list(anna, { limit: 2 });
  expect(first.remainingItemCount).toBe(1);
  await store.update('packages.b.v1', { action: 'delete' }, anna);
  await draft(store, 'd');
  const rest = await revisions.list(anna, { limit: 2, continue: first.continue });
  expect([...first.items, ...rest.items].map(({ spec }) => spec.packageName)).toEqual(['a', 'b', 'c']);
  expect(rest.resourceVersion).toBe(first.resourceVersion);
  await store.change('packages.a.v1', { metadata: { labels: { team: 'x' } } }, anna);
  await store.change('packages.c.v1', { kptfile: [{ op: 'setLabel', key: 'tier', value: 'db' }] }, anna);
  const names = async (options: Parameters<typeof client.list>[1]) =>
    (await client.list(kind, options)).items.map((item) => item.metadata.name);
  expect(await names({ labelSelector: 'team=x' })).toEqual(['packages.a.v1']);
  expect(await names({ labelSelector: '!team', namespace: 'default' })).toEqual(['packages.c.v1', 'packages.d.v1']);
  expect(await names({ fieldSelector: 'spec.packageMetadata.labels[tier]=db' })).toEqual(['packages.c.v1']);
  expect(await names({ fieldSelector: 'spec.lifecycle=Draft,spec.revision=0,spec.packageName!=a' })).toHaveLength(2);
  await publish(store, 'packages.d.v1');
  expect(await names({ labelSelector: 'kpt.dev/latest-revision=true' })).toEqual(['packages.d.v1']);
  expect(await names({ fieldSelector: 'spec.revision=1' })).toEqual(['packages.d.v1']);
});

describe('rights that are decided by a query', () => {
  const annotated = (object: RevisionObject, annotations: Record<string, string>) => ({
    ...object,
    metadata: { ...object.metadata, resourceVersion: undefined, annotations },
  });

  test('a write fails where the right cannot be decided', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    await draft(store);
    const before = await revisions.get(anna, { name });
    const context = { ...anna, mayApprove: () => Promise.reject(new SluiceError('Unavailable', 'no answer')) };
    const labelled = { ...before, metadata: { ...before.metadata, labels: { a: 'b' } } };
    expect(await outcomeOf(revisions.update(context, labelled))).toBe('Unavailable: no answer');
    expect(await outcomeOf(revisions.delete(context, { name }))).toBe('Unavailable: no answer');
    expect(await outcomeOf(revisions.create(context, revision('web')))).toBe('Unavailable: no answer');
    expect((await revisions.list(anna, {})).items).toEqual([before]);
  });

  test('an approval annotation that is removed during authorisation is not restored', async () => {
    await using scratch = await scratchRepository();
    const { revisions, store } = await packageKinds(scratch);
    await draft(store);
    const key = APPROVAL_ANNOTATIONS[0] ?? '';
    const before = await revisions.update(anna, annotated(await revisions.get(anna, { name }), { [key]: 'x' }));
    expect(before.metadata.annotations).toMatchObject({ [key]: 'x' });
    const mayApprove = async () => {
      await revisions.update(anna, annotated(before, {}));
      return false;
    };
    const after = await revisions.update({ ...anna, mayApprove }, annotated(before, { [key]: 'x', mine: 'y' }));
    expect(after.metadata.annotations).toEqual({ mine: 'y' });
  });
});
