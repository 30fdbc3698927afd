import { describe, expect, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import type { KubeObject } from '../support/api/kube-api.ts';
import { configMap, failure, gone, made, usePlace } from './support/place.ts';

const place = usePlace();
const HOLD = 'conformance.example.com/hold';
const path = (name: string) => place.path('configmaps', name);

async function create(name: string, metadata: object = {}): Promise<KubeObject> {
  return made(await place.api.post(place.path('configmaps'), configMap(name, {}, metadata)));
}

const release = (name: string) => place.api.patch(path(name), { metadata: { finalizers: null } });

describe('one object', () => {
  test('does not exist any more, and watches get its deletion', async () => {
    const { metadata } = await create('simple');
    expect(await place.api.delete(path('simple'))).toMatchObject({
      status: 200,
      body: {
        ...{ kind: 'Status', apiVersion: 'v1', status: 'Success' },
        details: { name: 'simple', kind: 'configmaps', uid: metadata.uid },
      },
    });
    expect(await place.api.delete(path('simple'))).toEqual(failure(404, 'NotFound'));
  });

  test('stays until its finalizers are removed, and accepts no new ones', async () => {
    await create('held', { finalizers: [HOLD] });
    const deleted = await place.api.delete(path('held'));
    expect(deleted).toMatchObject({ status: 200, body: { metadata: { finalizers: [HOLD] } } });
    const { deletionTimestamp } = deleted.body.metadata;
    expect(deletionTimestamp).toMatch(/Z$/);
    expect(made(await place.api.patch(path('held'), { data: { still: 'here' } })).data).toEqual({ still: 'here' });
    expect(await place.api.patch(path('held'), { metadata: { finalizers: [HOLD, `${HOLD}2`] } })).toEqual(
      failure(422, 'Invalid', { message: expect.stringContaining('metadata.finalizers') }),
    );
    expect(made(await place.api.delete(path('held'))).metadata.deletionTimestamp).toBe(deletionTimestamp);
    expect((await place.api.post(place.path('configmaps'), configMap('held'))).status).toBe(409);
    made(await release('held'));
    expect((await place.api.get(path('held'))).status).toBe(404);
  });

  test('is only deleted if the preconditions match', async () => {
    const first = await create('meant');
    const changed = made(await place.api.patch(path('meant'), { data: { a: 'b' } }));
    const { uid } = first.metadata;
    for (const preconditions of [{ uid: 'another' }, { resourceVersion: first.metadata.resourceVersion }])
      expect(await place.api.delete(path('meant'), { preconditions })).toEqual(failure(409, 'Conflict'));
    const preconditions = { uid, resourceVersion: changed.metadata.resourceVersion };
    expect((await place.api.delete(path('meant'), { preconditions })).status).toBe(200);
  });

  test('takes options that make sense', async () => {
    await create('options');
    for (const options of [{ propagationPolicy: 'Sideways' }, { propagationPolicy: 'Orphan', orphanDependents: true }])
      expect(await place.api.delete(path('options'), options)).toEqual(failure(422, 'Invalid'));
    expect(
      (await place.api.delete(`${path('options')}?gracePeriodSeconds=0&propagationPolicy=Background`)).status,
    ).toBe(200);
  });
});

describe('many objects', () => {
  test('are deleted as they are selected, and shown', async () => {
    for (const name of ['many-a', 'many-b']) await create(name, { labels: { many: 'yes' } });
    await create('many-c', { labels: { many: 'no' } });
    const deleted = await place.api.send('DELETE', `${place.path('configmaps')}?labelSelector=many%3Dyes`);
    expect(deleted.status).toBe(200);
    for (const name of ['many-a', 'many-b']) expect((await place.api.get(path(name))).status).toBe(404);
    expect((await place.api.get(path('many-c'))).status).toBe(200);
    expect(
      (await place.api.send('DELETE', `${place.path('configmaps')}?fieldSelector=metadata.name%3Dmany-c`)).status,
    ).toBe(200);
    expect((await place.api.get(path('many-c'))).status).toBe(404);
  });

  test('of all namespaces are not deleted at once', async () => {
    expect(await place.api.delete('/api/v1/configmaps')).toEqual(failure(405, 'MethodNotAllowed'));
  });
});

describe('dependents', () => {
  const ownedBy = ({ metadata }: KubeObject, more: object = {}) => ({
    ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: metadata.name, uid: metadata.uid, ...more }],
  });

  test('are deleted in the background after their owner', async () => {
    const owner = await create('background');
    await create('background-child', ownedBy(owner));
    made(await place.api.delete(path('background'), { propagationPolicy: 'Background' }));
    expect((await place.api.get(path('background'))).status).toBe(404);
    await gone(place.api, path('background-child'));
  });

  test('are deleted before their owner in the foreground', async () => {
    const owner = await create('foreground');
    await create('foreground-child', { ...ownedBy(owner, { blockOwnerDeletion: true }), finalizers: [HOLD] });
    const deleted = made(await place.api.delete(path('foreground'), { propagationPolicy: 'Foreground' }));
    expect(deleted.metadata.finalizers).toEqual(['foregroundDeletion']);
    await eventually(
      () => place.api.get(path('foreground-child')),
      ({ body }) => body.metadata.deletionTimestamp !== undefined,
    );
    expect((await place.api.get(path('foreground'))).status).toBe(200);
    made(await release('foreground-child'));
    await gone(place.api, path('foreground'));
  });

  test('stay as orphans if that is wanted', async () => {
    const owner = await create('orphan');
    await create('orphan-child', ownedBy(owner));
    made(await place.api.delete(path('orphan'), { propagationPolicy: 'Orphan' }));
    await gone(place.api, path('orphan'));
    const child = made(await place.api.get(path('orphan-child')));
    expect(child.metadata.ownerReferences ?? []).toEqual([]);
    expect(child.metadata).not.toHaveProperty('deletionTimestamp');
  });

  test('stay as long as one owner is left', async () => {
    const [one, two] = [await create('owner-one'), await create('owner-two')];
    const both = { ownerReferences: [...ownedBy(one).ownerReferences, ...ownedBy(two).ownerReferences] };
    await create('of-two', both);
    const witness = await create('witness', ownedBy(one));
    made(await place.api.delete(path('owner-one')));
    await gone(place.api, path(witness.metadata.name));
    expect(made(await place.api.get(path('of-two'))).metadata).not.toHaveProperty('deletionTimestamp');
    made(await place.api.delete(path('owner-two')));
    await gone(place.api, path('of-two'));
  });

  test('of an owner that never existed are deleted too', async () => {
    const owner = { metadata: { name: 'never', uid: '00000000-0000-4000-8000-000000000000' } } as KubeObject;
    await create('of-none', ownedBy(owner));
    await gone(place.api, path('of-none'));
  });
});

describe('a namespace', () => {
  const NAMESPACES = '/api/v1/namespaces';

  test('is active, and is deleted with its objects', async () => {
    const { metadata, status, spec } = made(
      await place.api.post(NAMESPACES, { metadata: { generateName: 'conformance-gone-' } }),
    );
    expect([spec, status]).toEqual([{ finalizers: ['kubernetes'] }, { phase: 'Active' }]);
    const inside = `${NAMESPACES}/${metadata.name}/configmaps`;
    made(await place.api.post(inside, configMap('a')));
    made(await place.api.post(inside, configMap('held', {}, { finalizers: [HOLD] })));
    made(await place.api.delete(`${NAMESPACES}/${metadata.name}`));
    expect(await place.api.post(inside, configMap('late'))).toEqual(
      failure(403, 'Forbidden', {
        message: expect.stringContaining('because it is being terminated'),
        details: expect.objectContaining({ causes: [expect.objectContaining({ reason: 'NamespaceTerminating' })] }),
      }),
    );
    await gone(place.api, `${inside}/a`);
    await eventually(
      () => place.api.get(`${NAMESPACES}/${metadata.name}`),
      ({ body }) =>
        (body.status as { phase: string }).phase === 'Terminating' &&
        ((body.status as { conditions?: { type: string; status: string }[] }).conditions ?? []).some(
          (one) => one.type === 'NamespaceFinalizersRemaining' && one.status === 'True',
        ),
    );
    made(await place.api.patch(`${inside}/held`, { metadata: { finalizers: null } }));
    await gone(place.api, `${NAMESPACES}/${metadata.name}`);
  });

  test('that the system needs cannot be deleted', async () => {
    for (const name of ['default', 'kube-system']) {
      expect(made(await place.api.get(`${NAMESPACES}/${name}`)).status).toEqual({ phase: 'Active' });
      expect(await place.api.delete(`${NAMESPACES}/${name}`)).toEqual(failure(403, 'Forbidden'));
    }
  });

  test('has a label with its name', async () => {
    const { metadata } = made(await place.api.get(`${NAMESPACES}/${place.namespace}`));
    expect(metadata.labels).toMatchObject({ 'kubernetes.io/metadata.name': place.namespace });
  });
});
