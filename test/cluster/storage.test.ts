import { afterEach, describe, expect, inject, test } from 'vitest';
import { ClusterStorage } from '../../src/kubernetes/storage/cluster-storage.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { podKind } from '../../src/resource/kinds/core/pod.ts';
import { keyOf } from '../../src/resource/object/object.ts';
import { widgetKindOf } from '../../src/resource/schema/testing.ts';
import { describeStorage } from '../../src/resource/storage/storage.conformance.ts';
import { usePlace } from '../conformance/support/place.ts';
import { useWidgets } from './support/widgets.ts';

const context = { actor: { name: 'test' }, face: 'controller' } as const;
const place = usePlace();
const widgets = useWidgets();
const { kind, sample } = widgets;
const storage = () => new ClusterStorage(kind, widgets.client);

describeStorage('ClusterStorage over a kube-apiserver', { finalizers: true, remote: true }, async () => ({
  storage: storage(),
  sample: (index) => sample(`widget-${index}`),
  changeSpec: (object) => ({ ...object, spec: { ...object.spec, size: object.spec.size + 1 } }),
  changeStatus: (object) => ({ ...object, status: { ready: object.status?.ready !== true } }),
  close: widgets.deleteAll,
}));

describe('a kube-apiserver', () => {
  afterEach(async () => {
    if (inject('serverMissing') === '') await widgets.deleteAll();
  });

  test('no longer has the events of an old version: Expired, and the list leads on', async () => {
    const { signal } = new AbortController();
    const events = storage().watch(context, { resourceVersion: '1', signal })[Symbol.asyncIterator]();
    await expect(events.next()).rejects.toMatchObject({ code: 'Expired' });
    const { resourceVersion } = await storage().list(context);
    const made = await storage().create(context, sample('a'));
    const later = storage().watch(context, { resourceVersion, signal })[Symbol.asyncIterator]();
    expect(await later.next()).toEqual({ done: false, value: { type: 'ADDED', object: made } });
    await later.return?.();
  });

  test('returns pages of all namespaces by its keys, and the storage sorts whole lists', async () => {
    const longer = `${place.namespace}-x`;
    await place.api.post('/api/v1/namespaces', { metadata: { name: longer } });
    for (const namespace of [place.namespace, longer]) await storage().create(context, sample('a', namespace));
    const namespaces = ({
      items,
    }: {
      readonly items: readonly { readonly metadata: { readonly namespace?: string | undefined } }[];
    }) => items.map(({ metadata }) => metadata.namespace);
    expect(namespaces(await storage().list(context))).toEqual([place.namespace, longer]);
    // "-" is before "/", which follows the namespace in the keys of etcd.
    expect(namespaces(await storage().list(context, { limit: 2 }))).toEqual([longer, place.namespace]);
    await place.api.delete(`/api/v1/namespaces/${longer}`);
  });

  test('generates names', async () => {
    const made = await storage().create(
      context,
      kind.complete({ metadata: { generateName: 'w-', namespace: 'default' }, spec: {} }),
    );
    expect(made.metadata.name).toMatch(/^w-[a-z0-9]{5}$/);
  });

  test('deletes dependents before an owner, or lets them go', async () => {
    // The garbage collector looks for new kinds every 30 seconds only.
    const maps = new ClusterStorage(configMapKind, widgets.client);
    const { namespace } = place;
    const owned = async (name: string) => {
      const owner = await maps.create(context, configMapKind.complete({ metadata: { name, namespace } }));
      const { apiVersion, kind: ofKind, metadata } = owner;
      const ownerReferences = [{ apiVersion, kind: ofKind, name, uid: metadata.uid, blockOwnerDeletion: true }];
      const dependent = { metadata: { name: `of-${name}`, namespace, ownerReferences } };
      await maps.create(context, configMapKind.complete(dependent));
      return keyOf(owner);
    };
    await maps.delete(context, await owned('foreground'), { propagationPolicy: 'Foreground' });
    await maps.delete(context, await owned('orphan'), { propagationPolicy: 'Orphan' });
    const ours = async () => {
      const { items } = await maps.list(context, { namespace });
      return items.filter(({ metadata }) => /ground|orphan/.test(metadata.name));
    };
    await expect.poll(async () => (await ours()).map(({ metadata }) => metadata.name)).toEqual(['of-orphan']);
    expect((await ours())[0]?.metadata.ownerReferences).toBeUndefined();
  });

  test('does not serve a kind: Unsupported', async () => {
    const unknown = new ClusterStorage(widgetKindOf('unknown.example.com'), widgets.client);
    const { signal } = new AbortController();
    const calls = [
      () => unknown.list(context),
      () => unknown.get(context, { namespace: 'default', name: 'a' }),
      () => unknown.watch(context, { resourceVersion: '1', signal })[Symbol.asyncIterator]().next(),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'Unsupported' });
  });

  test('keeps fields in a patch that Sluice does not know', async () => {
    const { namespace } = place;
    await place.api.post(place.path('pods'), {
      metadata: { name: 'p', annotations: { a: '1' } },
      spec: { containers: [{ name: 'c', image: 'example.com/c', tty: true }], nodeName: 'none' },
    });
    const pods = new ClusterStorage(podKind, widgets.client);
    const patched = await pods.patch(context, { namespace, name: 'p' }, { metadata: { annotations: { b: '2' } } });
    expect(patched.metadata.annotations).toEqual({ a: '1', b: '2' });
    expect(patched).toMatchObject({ spec: { containers: [{ tty: true }] } });
  });

  test('keeps objects of its own kinds, whose updates need no version', async () => {
    const { namespace } = place;
    const maps = new ClusterStorage(configMapKind, widgets.client);
    const plain = configMapKind.complete({ metadata: { name: 'm', namespace }, data: { a: '1' } });
    const made = await maps.create(context, plain);
    const changed = await maps.update(context, { ...plain, data: { a: '2' } });
    expect(changed.metadata.uid).toBe(made.metadata.uid);
    const stale = maps.update(context, { ...made, data: { a: '3' } });
    await expect(stale).rejects.toMatchObject({ code: 'Conflict' });
    await expect(maps.updateSubResource(context, 'status', made)).rejects.toMatchObject({ code: 'Unsupported' });
  });
});
