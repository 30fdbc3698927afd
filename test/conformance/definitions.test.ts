import { describe, expect, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { failure, gone, made, pathOf, usePlace } from './support/place.ts';
import { definition, randomGroup, served, useWidgets, version } from './support/widgets.ts';

const place = usePlace();
const widgets = useWidgets(place);
const DEFINITIONS = pathOf('apiextensions.k8s.io/v1/customresourcedefinitions');
const create = (name: string, spec: object, more = {}) =>
  place.api.post(widgets.path(), widgets.body(name, spec, more));

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

describe('a definition', () => {
  test('reports what is served', async () => {
    const { status, spec } = made(await place.api.get(widgets.definitionPath));
    const { conditions, acceptedNames, storedVersions } = status as Record<string, unknown> & {
      conditions: Condition[];
    };
    expect(conditions.map(({ type, status: is, reason }) => `${type}=${is} ${reason}`)).toEqual(
      expect.arrayContaining(['NamesAccepted=True NoConflicts', 'Established=True InitialNamesAccepted']),
    );
    expect(acceptedNames).toMatchObject({
      plural: 'widgets',
      kind: 'Widget',
      listKind: 'WidgetList',
      shortNames: ['wg'],
    });
    expect(storedVersions).toEqual(['v1']);
    expect(spec).toMatchObject({ conversion: { strategy: 'None' } });
  });

  test('is in discovery and in OpenAPI', async () => {
    const { body } = await place.api.get(`/apis/${widgets.group}/v1`);
    // kube-apiserver sorts the verbs of its own kinds only.
    const resources = body.resources as readonly { readonly verbs: readonly string[] }[];
    expect(resources.map((resource) => ({ ...resource, verbs: resource.verbs.toSorted() }))).toEqual([
      expect.objectContaining({
        ...{ name: 'widgets', singularName: 'widget', namespaced: true, kind: 'Widget', shortNames: ['wg'] },
        verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      }),
      expect.objectContaining({ name: 'widgets/status', verbs: ['get', 'patch', 'update'] }),
    ]);
    await eventually(
      () => place.api.get(`/openapi/v3/apis/${widgets.group}/v1`),
      ({ text }) => text.includes('"x-kubernetes-list-map-keys":["name"]'),
    );
  });

  test('that makes no sense is refused', async () => {
    const group = randomGroup();
    const refused = [
      definition(group, { scope: 'Everywhere' }),
      definition(group, { versions: [] }),
      definition(group, { versions: [version('v1'), version('v1')] }),
      definition(group, { versions: [version('v1', { storage: false })] }),
      definition(group, { versions: [version('v1', { schema: undefined })] }),
      definition(group, { versions: [version('v1', {}, { type: 'object', properties: { a: {} } })] }),
      definition(group, {
        versions: [version('v1', {}, { type: 'object', 'x-kubernetes-validations': [{ rule: 'self.nothing > (' }] })],
      }),
      { ...definition(group), metadata: { name: `gadgets.${group}` } },
    ];
    for (const [index, body] of refused.entries())
      expect(await place.api.post(DEFINITIONS, body), `case ${index}`).toEqual(failure(422, 'Invalid'));
  });

  test('is served until its last object is deleted', async () => {
    const group = randomGroup();
    made(await place.api.post(DEFINITIONS, definition(group)));
    await served(place, group);
    const path = place.path(`${group}/v1/widgets`);
    const held = {
      apiVersion: `${group}/v1`,
      kind: 'Widget',
      metadata: { name: 'w', finalizers: ['example.com/hold'] },
    };
    made(await place.api.post(path, held));
    made(await place.api.delete(`${DEFINITIONS}/widgets.${group}`));
    await eventually(
      () => place.api.get(`${path}/w`),
      ({ body }) => body.metadata.deletionTimestamp !== undefined,
    );
    expect((await place.api.get(`${DEFINITIONS}/widgets.${group}`)).status).toBe(200);
    made(await place.api.patch(`${path}/w`, { metadata: { finalizers: null } }));
    await gone(place.api, `${DEFINITIONS}/widgets.${group}`);
    await gone(place.api, path);
  });

  test('whose names are taken is not served', async () => {
    const group = randomGroup();
    const path = `${DEFINITIONS}/gadgets.${widgets.group}`;
    const body = definition(widgets.group, { names: { plural: 'gadgets', kind: 'Widget' } });
    made(await place.api.post(DEFINITIONS, { ...body, metadata: { name: `gadgets.${widgets.group}` } }));
    const { body: rejected } = await eventually(
      () => place.api.get(path),
      ({ body: { status } }) => ((status as { conditions?: Condition[] })?.conditions?.length ?? 0) > 0,
    );
    expect((rejected.status as { conditions: Condition[] }).conditions).toEqual(
      expect.arrayContaining([expect.objectContaining({ type: 'NamesAccepted', status: 'False' })]),
    );
    expect((await place.api.get(`/apis/${group}/v1/gadgets`)).status).toBe(404);
    made(await place.api.delete(path));
  });
});

describe('the schema of a definition', () => {
  test('fills in defaults and drops what it does not know', async () => {
    const { spec } = made(await create('defaults', { extra: 'x', free: { any: { thing: [1] } }, options: { a: 'b' } }));
    expect(spec).toEqual({ size: 1, free: { any: { thing: [1] } }, options: { a: 'b' } });
    const strict = widgets.body('strict', { extra: 'x' });
    expect(await place.api.post(`${widgets.path()}?fieldValidation=Strict`, strict)).toEqual(
      failure(400, 'BadRequest', { message: expect.stringContaining('unknown field "spec.extra"') }),
    );
  });

  test('keeps null where it is permitted, and drops it elsewhere', async () => {
    const { spec } = made(await create('nulls', { empty: null, size: null }));
    expect(spec).toEqual({ empty: null, size: 1 });
    expect(made(await create('nulls-2', { color: null })).spec).toEqual({ size: 1 });
  });

  test('keeps the rules of lists', async () => {
    expect(await create('set', { tags: ['a', 'a'] })).toEqual(
      failure(422, 'Invalid', { message: expect.stringContaining('spec.tags[1]: Duplicate value: "a"') }),
    );
    expect(await create('map', { ports: [{ name: 'a' }, { name: 'a' }] })).toEqual(
      failure(422, 'Invalid', { message: expect.stringContaining('Duplicate value: {"name":"a"}') }),
    );
  });

  test('keeps its rules, those between two states too', async () => {
    expect(await create('ruled', { min: 5, size: 3 })).toEqual(
      failure(422, 'Invalid', { message: expect.stringContaining('min must not be above size') }),
    );
    made(await create('ruled', { min: 1, size: 3, kept: 'a' }));
    expect(await place.api.patch(widgets.path('ruled'), { spec: { kept: 'b' } })).toEqual(
      failure(422, 'Invalid', { message: expect.stringContaining('kept is immutable') }),
    );
    expect((await place.api.patch(widgets.path('ruled'), { spec: { kept: 'a', size: 4 } })).status).toBe(200);
  });

  test('can change, for what is written from then on', async () => {
    const group = randomGroup();
    made(await place.api.post(DEFINITIONS, definition(group)));
    await served(place, group);
    const path = place.path(`${group}/v1/widgets`);
    const body = (name: string, spec: object) => ({
      apiVersion: `${group}/v1`,
      kind: 'Widget',
      metadata: { name },
      spec,
    });
    made(await place.api.post(path, body('before', { size: 50 })));
    const narrow = { type: 'object', properties: { size: { type: 'integer', maximum: 10, default: 5 } } };
    const versions = [version('v1', { selectableFields: undefined }, narrow)];
    made(await place.api.patch(`${DEFINITIONS}/widgets.${group}`, { spec: { versions } }));
    const last = await eventually(
      () => place.api.post(`${path}?dryRun=All`, body('after', {})),
      (answer) => (answer.body.spec as { size?: number } | undefined)?.size === 5,
    );
    expect(last.status).toBe(201);
    expect((await place.api.post(path, body('after', { size: 50 }))).status).toBe(422);
    expect(made(await place.api.get(`${path}/before`)).spec).toEqual({ size: 50 });
    made(await place.api.delete(`${DEFINITIONS}/widgets.${group}`));
  });
});

describe('versions of a definition', () => {
  test('show the same objects', async () => {
    const group = randomGroup();
    const versions = [
      version('v1beta1', { storage: false, deprecated: true }),
      version('v1'),
      version('v0', { storage: false, served: false }),
    ];
    made(await place.api.post(DEFINITIONS, definition(group, { versions })));
    await served(place, group);
    await served(place, group, 'v1beta1');
    const [old, now] = [place.path(`${group}/v1beta1/widgets`), place.path(`${group}/v1/widgets`)];
    const created = await place.api.post(old, {
      kind: 'Widget',
      apiVersion: `${group}/v1beta1`,
      metadata: { name: 'w' },
    });
    expect(made(created).apiVersion).toBe(`${group}/v1beta1`);
    expect(created.headers.warning).toMatch(/deprecated/);
    const seen = made(await place.api.get(`${now}/w`));
    expect(seen).toMatchObject({ apiVersion: `${group}/v1`, metadata: { uid: created.body.metadata.uid } });
    made(await place.api.patch(`${now}/w`, { spec: { size: 9 } }));
    expect(made(await place.api.get(`${old}/w`))).toMatchObject({ apiVersion: `${group}/v1beta1`, spec: { size: 9 } });
    expect((await place.api.get(place.path(`${group}/v0/widgets`))).status).toBe(404);
    const groups = (await place.api.get(`/apis/${group}`)).body;
    expect(groups.preferredVersion).toEqual({ groupVersion: `${group}/v1`, version: 'v1' });
    made(await place.api.delete(`${DEFINITIONS}/widgets.${group}`));
  });

  test('of a kind of the whole cluster are in no namespace', async () => {
    const group = randomGroup();
    made(await place.api.post(DEFINITIONS, definition(group, { scope: 'Cluster' })));
    await served(place, group);
    const body = { kind: 'Widget', apiVersion: `${group}/v1`, metadata: { name: 'w' } };
    expect(made(await place.api.post(`/apis/${group}/v1/widgets`, body)).metadata).not.toHaveProperty('namespace');
    expect((await place.api.post(place.path(`${group}/v1/widgets`), body)).status).toBe(404);
    made(await place.api.delete(`${DEFINITIONS}/widgets.${group}`));
  });
});
