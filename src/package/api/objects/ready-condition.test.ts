import { expect, test } from 'vitest';
import { packageKinds, revision, to } from '../../../../test/support/package-kinds.ts';
import { anna, commitFiles, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { KPTFILE } from '../../../../test/support/shop.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { type PackageRevision, packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../../resource/kinds/porch/package-revision-resources.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../../model/policy/policy.ts';

const key = { namespace: 'default', name: 'packages.shop.v1' };
const gates = (...types: string[]) => ({
  spec: { readinessGates: types.map((conditionType) => ({ conditionType })), tasks: [{ type: 'init' }] },
});
const readyOf = ({ status }: PackageRevision) =>
  status?.conditions?.find(({ type }) => type === 'sluice.dev/Ready') ?? null;
const wide = (object: PackageRevision) =>
  Object.fromEntries(packageRevisionKind.printerColumns.map(({ name, value }) => [name, value(object as never)]));

test('Ready is True only while every gate is open for the current content, and names those that are closed', async () => {
  await using scratch = await scratchRepository();
  const { client, store } = await packageKinds(scratch);
  const created = await client.create(packageRevisionKind, revision('shop', 'v1', gates('tested', 'reviewed')));
  expect(readyOf(created)).toEqual({
    ...{ type: 'sluice.dev/Ready', status: 'False', reason: 'GatesClosed' },
    message: expect.stringMatching(/^2 of 2 gates closed: tested \(.+\), reviewed \(.+\)$/),
  });
  await store.change(key.name, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
  const half = await client.get(packageRevisionKind, key);
  expect(readyOf(half)?.message).toMatch(/^1 of 2 gates closed: reviewed \(/);
  expect(wide(half)).toMatchObject({ Ready: 'False', Gates: '1/2', Reason: expect.stringMatching(/^reviewed \(/) });
  await store.change(key.name, { conditions: [{ type: 'reviewed', status: 'True' }] }, anna);
  expect(readyOf(await client.get(packageRevisionKind, key))).toMatchObject({ status: 'True', reason: 'AllGatesOpen' });
  await store.change(key.name, { files: new Map([['a.yaml', Buffer.from('a: 1\n')]]) }, anna);
  const edited = await client.get(packageRevisionKind, key);
  expect(readyOf(edited)).toMatchObject({ status: 'False', message: expect.stringContaining('changed since') });
  for (const type of ['tested', 'reviewed'])
    await store.change(key.name, { conditions: [{ type, status: 'True' }] }, anna);
  await store.update(key.name, { action: 'propose' }, anna);
  await store.update(key.name, { action: 'approve' }, anna);
  expect(readyOf(await client.get(packageRevisionKind, key))).toMatchObject({ status: 'True' });
  expect(readyOf(await client.get(packageRevisionKind, { ...key, name: 'packages.shop.main' }))).toBeNull();
});

test('a revision without gates has no such condition, one whose gate a policy requires has', async () => {
  await using scratch = await scratchRepository();
  let policy: EffectivePolicy = DEFAULT_POLICY;
  const { client, changePolicy } = await packageKinds(scratch, { policyFor: () => policy });
  const created = await client.create(packageRevisionKind, revision('shop', 'v1', gates()));
  expect(readyOf(created)).toBeNull();
  policy = { ...policy, requiredGates: [{ conditionType: 'reviewed', approveOnly: true, policy: 'p' }] };
  changePolicy();
  expect(readyOf(await client.get(packageRevisionKind, key))).toMatchObject({ status: 'False' });
});

test('what a client writes of it is ignored, and neither Git nor the content digest has it', async () => {
  await using scratch = await scratchRepository();
  const { client, store } = await packageKinds(scratch);
  const created = await client.create(packageRevisionKind, revision('shop', 'v1', gates('tested')));
  const { content } = (await store.evaluate(key.name)).content;
  const forged = { type: 'sluice.dev/Ready', status: 'True' as const, reason: 'Forged' };
  const written = await client.updateStatus(packageRevisionKind, {
    ...created,
    status: { ...created.status, publishTimestamp: null, conditions: [forged] },
  });
  expect(readyOf(written)?.status).toBe('False');
  await store.change(key.name, { conditions: [forged] }, anna);
  const files = await client.get(packageRevisionResourcesKind, key);
  const kptfile = `${files.spec.resources?.Kptfile}status:\n  conditions:\n    - type: sluice.dev/Ready\n      status: "True"\n`;
  const resources = { ...files.spec.resources, Kptfile: kptfile };
  await client.update(packageRevisionResourcesKind, { ...files, spec: { ...files.spec, resources } });
  expect((await store.content(key.name)).files.get('Kptfile')?.toString()).not.toContain('sluice.dev/Ready');
  expect((await store.evaluate(key.name)).content.content).toBe(content);
  expect(readyOf(await client.get(packageRevisionKind, key))?.status).toBe('False');
});

test('a gate of this type is never open', async () => {
  await using scratch = await scratchRepository();
  const { client, store } = await packageKinds(scratch);
  await client.create(packageRevisionKind, revision('shop', 'v1', gates('sluice.dev/Ready')));
  expect((await store.evaluate(key.name)).gates[0]?.state).toBe('NotAllowed');
});

test('a later evaluation is sent to watchers, and is no conflict for a client that read the object before', async () => {
  await using scratch = await scratchRepository();
  let policy: EffectivePolicy = DEFAULT_POLICY;
  const { client, revisions, changePolicy } = await packageKinds(scratch, { policyFor: () => policy });
  revisions.table.startEvaluations();
  const created = await client.create(packageRevisionKind, revision('shop', 'v1', gates('tested')));
  const given = await client.updateStatus(packageRevisionKind, {
    ...created,
    status: { ...created.status, publishTimestamp: null, conditions: [{ type: 'tested', status: 'True' }] },
  });
  const stop = new AbortController();
  const watching = (async () => {
    const options = { resourceVersion: given.metadata.resourceVersion, signal: stop.signal };
    for await (const event of client.watch(packageRevisionKind, options))
      if (event.type === 'MODIFIED') return readyOf(event.object);
    return undefined;
  })();
  policy = { ...policy, requiredGates: [{ conditionType: 'reviewed', approveOnly: true, policy: 'p' }] };
  changePolicy();
  expect(await watching).toMatchObject({ status: 'False', message: expect.stringContaining('1 of 2 gates closed') });
  stop.abort();
  const now = await client.get(packageRevisionKind, key);
  expect(now.metadata.resourceVersion).not.toBe(given.metadata.resourceVersion);
  expect((await client.update(packageRevisionKind, to(given, 'Proposed'))).spec.lifecycle).toBe('Proposed');
});

test('an edit of the package on the main branch is sent to watchers of its proposals without gates, and so is its end', async () => {
  await using scratch = await scratchRepository();
  const { client, repository, revisions } = await packageKinds(scratch);
  revisions.table.startEvaluations();
  const created = await client.create(packageRevisionKind, revision('shop', 'v1'));
  const { metadata } = await client.update(packageRevisionKind, to(created, 'Proposed'));
  const stop = new AbortController();
  const options = { resourceVersion: metadata.resourceVersion, signal: stop.signal };
  const events = client.watch(packageRevisionKind, options)[Symbol.asyncIterator]();
  const edit = async (text: string | null) => {
    const git = await openRepository(scratch.path);
    await commitFiles(git, { 'shop/data.yaml': text, 'shop/Kptfile': text && KPTFILE }, scratch.clock.now());
    await git.close();
    await repository.refresh();
  };
  const next = async (): Promise<ReturnType<typeof readyOf>> => {
    const { value } = await events.next();
    if (value?.type === 'ERROR') throw new Error('the watch ended');
    return value?.object.metadata.name === key.name ? readyOf(value.object) : next();
  };
  await edit('a: 1\n');
  expect(await next()).toMatchObject({ status: 'False', reason: 'Conflicted' });
  await edit(null);
  expect(await next()).toBeNull();
  stop.abort();
});

test('a gate that expires closes the condition at that moment', async () => {
  await using scratch = await scratchRepository();
  const policy = { ...DEFAULT_POLICY, validFor: [{ conditionType: 'tested', milliseconds: 60_000 }] };
  const { client, store, revisions, log } = await packageKinds(scratch, { policyFor: () => policy });
  revisions.table.startEvaluations();
  await client.create(packageRevisionKind, revision('shop', 'v1', gates('tested')));
  await store.change(key.name, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
  const open = await client.get(packageRevisionKind, key);
  expect(readyOf(open)?.status).toBe('True');
  scratch.clock.advance(61_000);
  await expect.poll(() => log.version).not.toBe(open.metadata.resourceVersion);
  const [listed] = (await client.list(packageRevisionKind)).items;
  expect(listed && readyOf(listed)).toMatchObject({
    status: 'False',
    message: expect.stringContaining('counted until'),
  });
});

test('a failed evaluation has a reason, and an evaluation of a closed repository is ignored', async () => {
  await using scratch = await scratchRepository();
  let isBroken = false;
  const policyFor = () => {
    if (isBroken) throw new Error('policies cannot be read');
    return DEFAULT_POLICY;
  };
  const { client, store, revisions, changePolicy } = await packageKinds(scratch, { policyFor });
  revisions.table.startEvaluations();
  const created = await client.create(packageRevisionKind, revision('shop', 'v1', gates('tested')));
  expect(readyOf(created)?.status).toBe('False');
  isBroken = true;
  changePolicy();
  expect(readyOf(await client.get(packageRevisionKind, key))).toMatchObject({
    ...{ status: 'Unknown', reason: 'NotEvaluated', message: 'policies cannot be read' },
  });
  changePolicy();
  await store.close();
  await revisions.table.evaluated(key);
});
