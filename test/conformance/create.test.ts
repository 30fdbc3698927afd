import { describe, expect, test } from 'vitest';
import { APPLY_PATCH, MERGE_PATCH, STRATEGIC_PATCH } from '../support/api/kube-api.ts';
import { configMap, failure, made, usePlace } from './support/place.ts';

const place = usePlace();
const path = (name = '') => place.path('configmaps', ...(name === '' ? [] : [name]));

describe('create', () => {
  test('answers with the object, once', async () => {
    expect(await place.api.post(path(), configMap('once', { a: 'b' }))).toMatchObject({
      status: 201,
      body: { apiVersion: 'v1', kind: 'ConfigMap', data: { a: 'b' } },
    });
    expect(await place.api.post(path(), configMap('once'))).toEqual(
      failure(409, 'AlreadyExists', {
        message: 'configmaps "once" already exists',
        details: { name: 'once', kind: 'configmaps' },
      }),
    );
  });

  test('takes no version', async () => {
    const { status, body } = await place.api.post(path(), configMap('versioned', {}, { resourceVersion: '5' }));
    // kube-apiserver responds with 500, as if the request could succeed later.
    expect([400, 500]).toContain(status);
    const message = 'resourceVersion should not be set on objects to be created';
    expect(body).toMatchObject({ kind: 'Status', status: 'Failure', message });
  });

  test('is not done by an update of what is not there', async () => {
    expect(await place.api.put(path('nothing'), configMap('nothing'))).toEqual(
      failure(404, 'NotFound', { message: 'configmaps "nothing" not found' }),
    );
    expect(await place.api.patch(path('nothing'), {})).toEqual(failure(404, 'NotFound'));
  });
});

describe('a dry run', () => {
  test('answers as the real one would, and changes nothing', async () => {
    const tried = await place.api.post(`${path()}?dryRun=All`, configMap('tried', { a: 'b' }));
    expect(tried).toMatchObject({ status: 201, body: { metadata: { name: 'tried', uid: expect.any(String) } } });
    expect((await place.api.get(path('tried'))).status).toBe(404);
    expect((await place.api.post(`${path()}?dryRun=All`, configMap('Tried'))).status).toBe(422);

    const real = made(await place.api.post(path(), configMap('tried', { a: 'b' })));
    expect((await place.api.post(`${path()}?dryRun=All`, configMap('tried'))).status).toBe(409);
    const put = await place.api.put(`${path('tried')}?dryRun=All`, configMap('tried', { a: 'c' }));
    expect(put).toMatchObject({ status: 200, body: { data: { a: 'c' } } });
    for (const type of [MERGE_PATCH, APPLY_PATCH]) {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', data: { b: 'd' } };
      const patched = await place.api.patch(`${path('tried')}?dryRun=All&fieldManager=x`, body, type);
      expect(patched).toMatchObject({ status: 200, body: { data: { a: 'b', b: 'd' } } });
    }
    expect((await place.api.delete(`${path('tried')}?dryRun=All`)).status).toBe(200);
    expect((await place.api.delete(path('tried'), { dryRun: ['All'] })).status).toBe(200);
    expect((await place.api.delete(`${path()}?dryRun=All`)).status).toBe(200);
    expect(made(await place.api.get(path('tried')))).toEqual(real);
  });

  test('is requested by one word only', async () => {
    const refused = failure(422, 'Invalid', { message: expect.stringContaining('supported values: "All"') });
    expect(await place.api.post(`${path()}?dryRun=Some`, configMap('word'))).toEqual(refused);
    expect(await place.api.post(`${path()}?dryRun=`, configMap('word'))).toEqual(refused);
    expect((await place.api.get(path('word'))).status).toBe(404);
  });
});

describe('unknown fields', () => {
  const unknown = (name: string) => ({ ...configMap(name), dat: { a: 'b' } });

  test('are refused if the client is strict', async () => {
    const strict = await place.api.post(`${path()}?fieldValidation=Strict`, unknown('strict'));
    expect(strict).toEqual(
      failure(400, 'BadRequest', { message: expect.stringContaining('strict decoding error: unknown field "dat"') }),
    );
    made(await place.api.post(path(), configMap('strict')));
    const put = await place.api.put(`${path('strict')}?fieldValidation=Strict`, unknown('strict'));
    expect(put).toEqual(failure(400, 'BadRequest'));
    const patch = await place.api.patch(`${path('strict')}?fieldValidation=Strict`, { dat: {} });
    expect(patch).toEqual(failure(422, 'Invalid', { message: expect.stringContaining('unknown field "dat"') }));
  });

  test('cause warnings by default, or on request', async () => {
    for (const query of ['', '?fieldValidation=Warn']) {
      const answer = await place.api.post(`${path()}${query}`, unknown(`warned${query.length}`));
      expect(answer).toMatchObject({
        status: 201,
        headers: { warning: expect.stringContaining('299 - "unknown field \\"dat\\"') },
      });
      expect(answer.body).not.toHaveProperty('dat');
    }
  });

  test('are left out without a word if the client does not care', async () => {
    const answer = await place.api.post(`${path()}?fieldValidation=Ignore`, unknown('ignored'));
    expect(answer.status).toBe(201);
    expect(answer.headers).not.toHaveProperty('warning');
  });

  test('are distinguished from repeated fields', async () => {
    const twice = (name: string) => `{"metadata":{"name":"${name}"},"data":{"a":"b"},"data":{"c":"d"}}`;
    const warned = await place.api.post(path(), twice('twice'));
    expect(warned).toMatchObject({ status: 201, headers: { warning: '299 - "duplicate field \\"data\\""' } });
    const strict = await place.api.post(`${path()}?fieldValidation=Strict`, twice('twice-strict'));
    expect(strict).toEqual(failure(400, 'BadRequest', { message: expect.stringContaining('duplicate field "data"') }));
  });

  test('are dealt with in one of three ways', async () => {
    expect(await place.api.post(`${path()}?fieldValidation=Loose`, configMap('loose'))).toEqual(
      failure(422, 'Invalid'),
    );
  });
});

describe('kinds', () => {
  test('a Secret keeps what is given as text, as the base64 of it', async () => {
    const secret = { metadata: { name: 'secret' }, data: { a: 'YQ==' }, stringData: { b: 'b', a: 'c' } };
    const stored = made(await place.api.post(place.path('secrets'), secret));
    expect(stored).toMatchObject({ type: 'Opaque', data: { a: 'Yw==', b: 'Yg==' } });
    expect(stored).not.toHaveProperty('stringData');
    const noBase64 = await place.api.post(place.path('secrets'), { metadata: { name: 'no' }, data: { a: '%' } });
    expect([400, 422]).toContain(noBase64.status);
    const type = await place.api.patch(place.path('secrets', 'secret'), { type: 'example.com/other' });
    expect(type).toEqual(failure(422, 'Invalid'));
  });

  test('what is immutable stays so', async () => {
    const sealed = { ...configMap('sealed', { a: 'b' }), immutable: true };
    made(await place.api.post(path(), sealed));
    expect(await place.api.patch(path('sealed'), { data: { a: 'c' } })).toEqual(failure(422, 'Invalid'));
    expect(await place.api.patch(path('sealed'), { immutable: false })).toEqual(failure(422, 'Invalid'));
    expect((await place.api.patch(path('sealed'), { metadata: { labels: { a: 'b' } } })).status).toBe(200);
  });

  test('a Lease counts in whole seconds and fine times', async () => {
    const leases = place.path('coordination.k8s.io/v1/leases');
    const spec = { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2026-01-02T03:04:05.123456Z' };
    expect(made(await place.api.post(leases, { metadata: { name: 'lease' }, spec })).spec).toEqual(spec);
    const zero = { metadata: { name: 'zero' }, spec: { leaseDurationSeconds: 0 } };
    expect(await place.api.post(leases, zero)).toEqual(failure(422, 'Invalid'));
  });

  test('an Event is about something in its namespace', async () => {
    const involvedObject = { kind: 'ConfigMap', name: 'x', namespace: place.namespace, apiVersion: 'v1' };
    const event = { metadata: { name: 'event' }, involvedObject, reason: 'Tested', type: 'Normal', count: 1 };
    expect(made(await place.api.post(place.path('events'), event))).toMatchObject({ reason: 'Tested', count: 1 });
    const elsewhere = {
      ...event,
      metadata: { name: 'e2', namespace: place.namespace },
      involvedObject: { ...involvedObject, namespace: 'other' },
    };
    expect(await place.api.post(place.path('events'), elsewhere)).toEqual(failure(422, 'Invalid'));
    const selector = 'involvedObject.name%3Dx,reason%3DTested,type%3DNormal';
    expect(made(await place.api.list(`${place.path('events')}?fieldSelector=${selector}`)).items).toHaveLength(1);
  });

  test('an Event is the same object in both groups', async () => {
    const [core, newer] = [place.path('events'), place.path('events.k8s.io/v1/events')];
    const regarding = { kind: 'ConfigMap', name: 'both', namespace: place.namespace, apiVersion: 'v1' };
    const written = {
      ...{ metadata: { name: 'both' }, regarding, reason: 'Tested', action: 'Test', note: 'a note', type: 'Normal' },
      ...{ reportingController: 'example.com/tester', reportingInstance: 'tester-1' },
      eventTime: '2026-01-02T03:04:05.123456Z',
    };
    const event = made(await place.api.post(newer, written));
    expect(event).toMatchObject({ ...written, metadata: { name: 'both', namespace: place.namespace } });
    const { uid, resourceVersion } = event.metadata;
    expect(made(await place.api.get(`${core}/both`))).toMatchObject({
      ...{ apiVersion: 'v1', kind: 'Event', involvedObject: regarding, message: 'a note' },
      ...{ reportingComponent: 'example.com/tester', metadata: { uid, resourceVersion } },
    });
    const series = { count: 2, lastObservedTime: '2026-01-02T03:05:05.123456Z' };
    const again = await place.api.patch(`${newer}/both`, { series }, STRATEGIC_PATCH);
    expect(made(again)).toMatchObject({ series, note: 'a note' });
    expect(made(await place.api.get(`${core}/both`))).toMatchObject({ series });
    const find = (path: string, selector: string) =>
      place.api.list(`${path}?fieldSelector=${encodeURIComponent(selector)}`);
    expect(made(await find(newer, 'regarding.name=both,reason=Tested')).items).toHaveLength(1);
    expect(await find(newer, 'involvedObject.name=both')).toEqual(failure(400, 'BadRequest'));
    expect((await place.api.delete(`${core}/both`)).status).toBe(200);
    expect(await place.api.get(`${newer}/both`)).toEqual(failure(404, 'NotFound'));
  });
});
