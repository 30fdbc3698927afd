import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { namespaceKind } from '../resource/kinds/core/namespace.ts';
import { secretKind } from '../resource/kinds/core/secret.ts';
import type { Kind } from '../resource/schema/kind.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import type { PlannedWrite } from './handlers/handler.ts';
import { createWidget, MERGE_PATCH, send, startTestServer, type TestServer, WIDGETS, widgetBody } from './testing.ts';

let api: TestServer;

beforeEach(async () => {
  api = await startTestServer();
});
afterEach(async () => {
  await api.stop();
  expect(api.errors).toEqual([]);
});

const json = async (response: Promise<Response> | Response) =>
  (await response).json() as Promise<Record<string, never>>;
const patch = (path: string, body: unknown, type = MERGE_PATCH) => send(api, 'PATCH', path, body, type);

describe('one object', () => {
  test('is created, read, replaced, patched and deleted', async () => {
    const made = await createWidget(api, 'a');
    expect(made).toMatchObject({ metadata: { name: 'a', namespace: 'default', generation: 1 }, spec: { size: 1 } });
    expect(await json(api.fetch(`${WIDGETS}/a`))).toEqual(made);
    const put = await json(send(api, 'PUT', `${WIDGETS}/a`, { ...made, spec: { size: 2 } }));
    expect(put).toMatchObject({ spec: { size: 2 }, metadata: { generation: 2 } });
    const stale = await json(send(api, 'PUT', `${WIDGETS}/a`, { ...made, spec: { size: 3 } }));
    expect(stale).toMatchObject({ code: 409, reason: 'Conflict', details: { name: 'a', kind: 'widgets' } });
    expect(await json(patch(`${WIDGETS}/a`, { spec: { color: 'red' } }))).toMatchObject({
      spec: { size: 2, color: 'red' },
    });
    const removed = await json(api.fetch(`${WIDGETS}/a`, { method: 'DELETE' }));
    expect(removed).toEqual({
      ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 200 },
      details: { name: 'a', group: 'test.sluice.dev', kind: 'widgets', uid: made.metadata.uid },
    });
    const missing = await api.fetch(`${WIDGETS}/a`);
    expect([missing.status, await missing.json()]).toEqual([
      404,
      {
        ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 404, reason: 'NotFound' },
        message: 'widgets.test.sluice.dev "a" not found',
        details: { name: 'a', group: 'test.sluice.dev', kind: 'widgets' },
      },
    ]);
  });

  test('a replacement creates nothing, and must be of the place that the URL names', async () => {
    expect(await json(send(api, 'PUT', `${WIDGETS}/a`, widgetBody('a')))).toMatchObject({ code: 404 });
    await createWidget(api, 'a');
    expect(await json(send(api, 'PUT', `${WIDGETS}/a`, widgetBody('b')))).toMatchObject({
      code: 400,
      message: 'the name of the object (b) does not match the name on the URL (a)',
    });
    const elsewhere = widgetBody('a', {}, { namespace: 'other' });
    for (const [method, path] of [
      ['PUT', `${WIDGETS}/a`],
      ['POST', WIDGETS],
    ] as const)
      expect(await json(send(api, method, path, elsewhere))).toMatchObject({
        code: 400,
        message: 'the namespace of the provided object does not match the namespace sent on the request',
      });
  });

  test('names can be generated; a name that is in use is a conflict', async () => {
    const made = await json(send(api, 'POST', WIDGETS, widgetBody('', {}, { generateName: 'x-' })));
    expect((made as unknown as { metadata: { name: string } }).metadata.name).toMatch(/^x-[0-9a-z]{5}$/);
    await createWidget(api, 'a');
    expect(await json(send(api, 'POST', WIDGETS, widgetBody('a')))).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
      message: 'widgets.test.sluice.dev "a" already exists',
      details: { name: 'a', group: 'test.sluice.dev', kind: 'widgets' },
    });
  });

  test('a replacement without a version replaces any version', async () => {
    await createWidget(api, 'a');
    const body = (size: number) => widgetBody('a', { size }, { resourceVersion: '', uid: '' });
    const answers = await Promise.all([2, 3, 4, 5].map((size) => send(api, 'PUT', `${WIDGETS}/a`, body(size))));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(await json(api.fetch(`${WIDGETS}/a`))).toMatchObject({ metadata: { generation: 5 } });
  });

  test('of another kind or version is refused', async () => {
    expect(await json(send(api, 'POST', WIDGETS, { ...widgetBody('a'), kind: 'Gadget' }))).toMatchObject({ code: 400 });
    expect(await json(send(api, 'POST', WIDGETS, { ...widgetBody('a'), apiVersion: 'v1' }))).toMatchObject({
      message: 'the API version in the data (v1) does not match the expected API version (test.sluice.dev/v1)',
    });
  });

  test('what is invalid is reported by field', async () => {
    expect(await json(send(api, 'POST', WIDGETS, widgetBody('a', { size: 'x', color: 'pink' })))).toMatchObject({
      code: 422,
      reason: 'Invalid',
      details: {
        name: 'a',
        group: 'test.sluice.dev',
        kind: 'Widget',
        causes: [
          { reason: 'FieldValueInvalid', field: 'spec.size' },
          { reason: 'FieldValueNotSupported', field: 'spec.color' },
        ],
      },
    });
  });

  test('the status is written through its sub-resource only', async () => {
    const made = await createWidget(api, 'a');
    const status = { ready: true };
    const plain = await json(send(api, 'PUT', `${WIDGETS}/a`, { ...made, status }));
    expect(plain).not.toHaveProperty('status');
    const written = await json(send(api, 'PUT', `${WIDGETS}/a/status`, { ...made, status, spec: { size: 9 } }));
    expect(written).toMatchObject({ status, spec: { size: 1 } });
    expect(await json(api.fetch(`${WIDGETS}/a/status`))).toEqual(written);
    expect(await json(patch(`${WIDGETS}/a/status`, { status: { note: 'x' } }))).toMatchObject({
      status: { ready: true, note: 'x' },
    });
    expect(await json(api.fetch(`${WIDGETS}/a/approval`))).toMatchObject({ code: 404 });
  });

  test('unknown and repeated fields are reported, refused or ignored as requested', async () => {
    const body = '{"metadata": {"name": "a"}, "spec": {"size": 1, "size": 2, "colour": "red"}}';
    const strict = await json(send(api, 'POST', `${WIDGETS}?fieldValidation=Strict`, body));
    expect(strict).toMatchObject({
      code: 400,
      message:
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: ' +
        'duplicate field "spec.size", unknown field "spec.colour"; did you mean color?',
    });
    const silent = await send(api, 'POST', `${WIDGETS}?fieldValidation=Ignore&dryRun=All`, body);
    expect([silent.status, silent.headers.get('warning')]).toEqual([201, null]);
    const warned = await send(api, 'POST', WIDGETS, body);
    expect([warned.status, warned.headers.get('warning')]).toEqual([
      201,
      '299 - "duplicate field \\"spec.size\\"", 299 - "unknown field \\"spec.colour\\"; did you mean color?"',
    ]);
    expect(await json(patch(`${WIDGETS}/a?fieldValidation=Strict`, { spec: { x: 1 } }))).toMatchObject({
      code: 422,
      message: expect.stringContaining('strict decoding error: unknown field "spec.x"'),
    });
    expect(await json(patch(`${WIDGETS}/a?fieldValidation=Strickt`, {}))).toMatchObject({ code: 422 });
  });

  test('a dry run validates and writes nothing', async () => {
    expect((await send(api, 'POST', `${WIDGETS}?dryRun=All`, widgetBody('a'))).status).toBe(201);
    expect((await api.fetch(`${WIDGETS}/a`)).status).toBe(404);
    await createWidget(api, 'a');
    expect(await json(patch(`${WIDGETS}/a?dryRun=All`, { spec: { size: 7 } }))).toMatchObject({ spec: { size: 7 } });
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', dryRun: ['All'] };
    expect((await send(api, 'DELETE', `${WIDGETS}/a`, options)).status).toBe(200);
    expect(await json(api.fetch(`${WIDGETS}/a`))).toMatchObject({ spec: { size: 1 } });
    expect(await json(patch(`${WIDGETS}/a?dryRun=Some`, {}))).toMatchObject({ code: 422 });
  });
});

describe('patches', () => {
  test('json patches: all operations or none', async () => {
    await createWidget(api, 'a');
    const type = 'application/json-patch+json';
    const done = await json(patch(`${WIDGETS}/a`, [{ op: 'replace', path: '/spec/size', value: 5 }], type));
    expect(done).toMatchObject({ spec: { size: 5 } });
    const failing = [
      { op: 'replace', path: '/spec/size', value: 6 },
      { op: 'test', path: '/spec/color', value: 'red' },
    ];
    expect(await json(patch(`${WIDGETS}/a`, failing, type))).toMatchObject({ code: 422 });
    expect(await json(api.fetch(`${WIDGETS}/a`))).toMatchObject({ spec: { size: 5 } });
  });

  test('patches without a version are tried again until they fit; with one they are not', async () => {
    const { metadata } = await createWidget(api, 'a', { size: 0 });
    const annotate = (index: number) => patch(`${WIDGETS}/a`, { metadata: { annotations: { [`k${index}`]: 'v' } } });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => annotate(index)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    const { resourceVersion } = metadata;
    expect(await json(patch(`${WIDGETS}/a`, { metadata: { resourceVersion }, spec: { size: 1 } }))).toMatchObject({
      code: 409,
    });
  });

  test('apply creates, owns and removes; a field of another manager is a conflict unless forced', async () => {
    const apply = (manager: string, spec: object, more = '') =>
      patch(`${WIDGETS}/a?fieldManager=${manager}${more}`, widgetBody('a', spec), 'application/apply-patch+yaml');
    const made = await apply('one', { size: 1, color: 'red' });
    expect(made.status).toBe(201);
    expect(await json(made)).toMatchObject({ metadata: { managedFields: [{ manager: 'one', operation: 'Apply' }] } });
    expect(await json(apply('two', { color: 'blue' }))).toMatchObject({
      code: 409,
      message: 'Apply failed with 1 conflict: conflict with "one": .spec.color',
      details: { causes: [{ reason: 'FieldManagerConflict', field: '.spec.color' }] },
    });
    expect(await json(apply('two', { color: 'blue' }, '&force=true'))).toMatchObject({ spec: { color: 'blue' } });
    expect(await json(apply('two', {}))).not.toHaveProperty('spec.color');
    const yaml = 'apiVersion: test.sluice.dev/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 4}\n';
    expect(await json(patch(`${WIDGETS}/a?fieldManager=one`, yaml, 'application/apply-patch+yaml'))).toMatchObject({
      spec: { size: 4 },
    });
    expect(await json(patch(`${WIDGETS}/a`, widgetBody('a'), 'application/apply-patch+yaml'))).toMatchObject({
      code: 422,
      message: expect.stringContaining('fieldManager: Required value'),
    });
    expect(await json(patch(`${WIDGETS}/a?force=true`, {}))).toMatchObject({ code: 422 });
  });

  test('who may patch but not create creates nothing by applying', async () => {
    await api.stop();
    api = await startTestServer({
      authorizer: { authorize: async ({ verb }) => ({ allowed: verb === 'patch', reason: '' }) },
    });
    const answer = await patch(`${WIDGETS}/a?fieldManager=x`, widgetBody('a'), 'application/apply-patch+yaml');
    expect(await json(answer)).toMatchObject({ code: 403, message: expect.stringContaining('cannot create resource') });
  });

  test('writers are named by themselves or by their program', async () => {
    const made = await api.fetch(`${WIDGETS}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'kubectl/v1.32 (linux)' },
      body: JSON.stringify(widgetBody('a')),
    });
    expect(await json(made)).toMatchObject({
      metadata: { managedFields: [{ manager: 'kubectl', operation: 'Update' }] },
    });
    const patched = await patch(`${WIDGETS}/a?fieldManager=mine`, { spec: { size: 3 } });
    expect(await json(patched)).toMatchObject({
      metadata: { managedFields: [{ manager: 'kubectl' }, { manager: 'mine' }] },
    });
    expect(await json(patch(`${WIDGETS}/a?fieldManager=a%0ab`, {}))).toMatchObject({ code: 422 });
  });

  test('only for kinds that Kubernetes itself knows strategic patches are taken', async () => {
    await createWidget(api, 'a');
    const type = 'application/strategic-merge-patch+json';
    expect(await json(patch(`${WIDGETS}/a`, {}, type))).toMatchObject({ code: 415, reason: 'UnsupportedMediaType' });
  });
});

describe('deletion', () => {
  test('an object with finalizers stays until the last of them is removed', async () => {
    await createWidget(api, 'a', {}, { finalizers: ['example.org/hold'] });
    const marked = await json(api.fetch(`${WIDGETS}/a`, { method: 'DELETE' }));
    expect(marked).toMatchObject({ kind: 'Widget', metadata: { deletionTimestamp: expect.any(String) } });
    await patch(`${WIDGETS}/a`, { metadata: { finalizers: null } });
    expect((await api.fetch(`${WIDGETS}/a`)).status).toBe(404);
  });

  test('options are read from the body or from the URL', async () => {
    await createWidget(api, 'a');
    const wrong = { preconditions: { uid: 'another' } };
    expect(await json(send(api, 'DELETE', `${WIDGETS}/a`, wrong))).toMatchObject({ code: 409, reason: 'Conflict' });
    expect(await json(send(api, 'DELETE', `${WIDGETS}/a`, { propagationPolicy: 'Sometimes' }))).toMatchObject({
      code: 422,
    });
    const both = { propagationPolicy: 'Orphan', orphanDependents: true };
    expect(await json(send(api, 'DELETE', `${WIDGETS}/a`, both))).toMatchObject({ code: 422 });
    const held = await json(api.fetch(`${WIDGETS}/a?propagationPolicy=Foreground`, { method: 'DELETE' }));
    expect(held).toMatchObject({ metadata: { finalizers: ['foregroundDeletion'] } });
  });

  test('of many: all that the selector selects', async () => {
    for (const name of ['a', 'b', 'c'])
      await createWidget(api, name, {}, { labels: { tier: name === 'c' ? 'x' : 'y' } });
    const removed = await json(api.fetch(`${WIDGETS}?labelSelector=tier%3Dy`, { method: 'DELETE' }));
    expect(removed).toMatchObject({
      kind: 'WidgetList',
      items: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }],
    });
    expect(await json(api.fetch(WIDGETS))).toMatchObject({ items: [{ metadata: { name: 'c' } }] });
  });
});

describe('methods and places', () => {
  test.each([
    ['POST', `${WIDGETS}/a`, 405, 'GET, PUT, PATCH, DELETE'],
    ['PUT', WIDGETS, 405, 'GET, POST, DELETE'],
    ['POST', '/apis/test.sluice.dev/v1/widgets', 405, 'GET'],
    ['DELETE', '/apis/test.sluice.dev/v1/widgets', 405, 'GET'],
    ['DELETE', `${WIDGETS}/a/status`, 405, 'GET, PUT, PATCH'],
    ['OPTIONS', WIDGETS, 405, 'GET, HEAD, POST, PUT, PATCH, DELETE'],
    ['GET', '/apis/test.sluice.dev/v1/widgets/a', 404, null],
    ['GET', '/apis/test.sluice.dev/v2/widgets', 404, null],
    ['GET', '/apis/test.sluice.dev/v1/gadgets', 404, null],
    ['GET', '/nothing', 404, null],
    ['HEAD', WIDGETS, 200, null],
  ])('%s %s is %d', async (method, path, status, allow) => {
    const response = await api.fetch(path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([status, allow]);
  });

  test('nothing is created in a namespace that is not there or that is going', async () => {
    await api.stop();
    api = await startTestServer({}, [widgetKind as Kind, namespaceKind as Kind, secretKind as Kind]);
    expect(await json(send(api, 'POST', WIDGETS, widgetBody('a')))).toMatchObject({
      ...{ code: 404, message: 'namespaces "default" not found' },
      details: { name: 'default', kind: 'namespaces' },
    });
    const namespace = { metadata: { name: 'team', finalizers: ['example.org/hold'] } };
    expect((await send(api, 'POST', '/api/v1/namespaces', namespace)).status).toBe(201);
    const team = WIDGETS.replace('default', 'team');
    expect((await send(api, 'POST', team, widgetBody('a'))).status).toBe(201);
    await api.fetch('/api/v1/namespaces/team', { method: 'DELETE' });
    expect(await json(send(api, 'POST', team, widgetBody('b')))).toMatchObject({
      code: 403,
      message:
        'widgets.test.sluice.dev "b" is forbidden: unable to create new content in namespace team because it is being terminated',
      details: { causes: [{ reason: 'NamespaceTerminating', field: 'metadata.namespace' }] },
    });
    const misplaced = { metadata: { name: 'x', namespace: 'y' } };
    expect(await json(send(api, 'POST', '/api/v1/namespaces', misplaced))).toMatchObject({ code: 422 });
    const strategic = 'application/strategic-merge-patch+json';
    const labelled = await patch('/api/v1/namespaces/team', { metadata: { labels: { a: 'b' } } }, strategic);
    expect(await json(labelled)).toMatchObject({ metadata: { labels: { a: 'b' } } });
  });
});

test('admission gets every write before the storage, and can refuse it', async () => {
  await api.stop();
  const seen: string[] = [];
  const admit = async ({ operation, object, old, subResource, user }: PlannedWrite) => {
    seen.push(`${user.name} ${operation} ${object.metadata.name} ${subResource} ${old === undefined ? 'new' : 'old'}`);
    if (object.metadata.name === 'forbidden') throw new Error('not this one');
  };
  api = await startTestServer({ admit });
  await createWidget(api, 'a');
  await patch(`${WIDGETS}/a/status`, { status: { ready: true } });
  await api.fetch(`${WIDGETS}/a`, { method: 'DELETE' });
  expect(await json(send(api, 'POST', WIDGETS, widgetBody('forbidden')))).toMatchObject({ code: 500 });
  expect((await api.fetch(`${WIDGETS}/forbidden`)).status).toBe(404);
  expect(seen).toEqual([
    'admin create a  new',
    'admin update a status old',
    'admin delete a  old',
    'admin create forbidden  new',
  ]);
  expect(api.errors.splice(0)).toHaveLength(1);
});
