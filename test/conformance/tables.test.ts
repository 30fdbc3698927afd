import { expect, test } from 'vitest';
import type { KubeList } from '../support/api/kube-api.ts';
import { beforeAllServed, configMap, failure, made, usePlace } from './support/place.ts';
import { useWidgets } from './support/widgets.ts';

interface Table {
  readonly kind: string;
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly columnDefinitions: readonly { readonly name: string; readonly type: string; readonly priority: number }[];
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: unknown }[];
}

const place = usePlace();
const widgets = useWidgets(place);
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' };
const PARTIAL = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json' };
const PARTIALS = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json' };
const path = (query = '') => `${place.path('configmaps')}${query}`;

beforeAllServed(async () => {
  for (const name of ['a', 'b'])
    made(await place.api.post(path(), configMap(name, { x: 'y' }, { labels: { tabled: 'yes' } })));
});

test('a list is a table for clients that request one', async () => {
  const answer = await place.api.get<Table>(path('?labelSelector=tabled'), TABLE);
  const table = made(answer);
  expect(table).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
  expect(table.columnDefinitions.map(({ name, type }) => `${name} ${type}`)).toEqual([
    ...['Name string', 'Data string', expect.stringMatching(/^Age (string|date)$/)],
  ]);
  expect(table.rows.map(({ cells }) => cells.slice(0, 2))).toEqual([
    ['a', 1],
    ['b', 1],
  ]);
  expect(table.rows[0]?.object).toMatchObject({
    ...{ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' },
    metadata: { name: 'a', namespace: place.namespace },
  });
  expect(table.metadata.resourceVersion).toMatch(/./);
});

test('rows contain the object, or nothing, if the client requests it', async () => {
  const rows = async (include: string) =>
    made(await place.api.get<Table>(path(`?labelSelector=tabled&includeObject=${include}`), TABLE)).rows;
  expect((await rows('None'))[0]?.object ?? null).toBe(null);
  expect((await rows('Object'))[0]?.object).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', data: { x: 'y' } });
  expect((await rows('Metadata'))[0]?.object).not.toHaveProperty('data');
});

test('one object is a table of one row, and a page a table with a continue token', async () => {
  const one = made(await place.api.get<Table>(`${path()}/a`, TABLE));
  expect(one.rows.map(({ cells }) => cells[0])).toEqual(['a']);
  const page = made(await place.api.get<Table>(path('?limit=1'), TABLE));
  expect(page.rows).toHaveLength(1);
  expect(page.metadata.continue).toMatch(/./);
});

test('the columns of a defined kind are those of its definition', async () => {
  made(await place.api.post(widgets.path(), widgets.body('w', { size: 7 })));
  const table = made(await place.api.get<Table>(widgets.path(), TABLE));
  expect(table.columnDefinitions.map(({ name, type, priority }) => [name, type, priority])).toEqual([
    ['Name', 'string', 0],
    ['Size', 'integer', 0],
    ['Ready', 'boolean', 1],
  ]);
  expect(table.rows[0]?.cells).toEqual(['w', 7, null]);
});

test('metadata alone is returned on request', async () => {
  const one = made(await place.api.get(`${path()}/a`, PARTIAL));
  expect(one).toMatchObject({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'a' } });
  expect(one).not.toHaveProperty('data');
  const list = made(await place.api.get<KubeList>(path('?labelSelector=tabled'), PARTIALS));
  expect(list).toMatchObject({ kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' });
  expect(list.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
  expect(list.items[0]).not.toHaveProperty('data');
});

test('a failure is a Status, also for clients that request a table', async () => {
  expect(await place.api.get(`${path()}/missing`, TABLE)).toEqual(failure(404, 'NotFound'));
});
