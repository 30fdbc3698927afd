import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { isSluiceError } from '../foundation/sluice-error.ts';
import { secretKind } from '../resource/kinds/core/secret.ts';
import { type Widget, widgetKind } from '../resource/schema/testing.ts';
import type { Connection } from './connection/connection.ts';
import type { HttpClient } from './http-client.ts';
import { sendJson, sendStatus, WidgetApi, WireServer, wireWidget } from './testing.ts';

let server: WireServer;
let api: WidgetApi;
let connection: Connection;
let client: HttpClient;

beforeEach(async () => {
  server = await new WireServer().start();
  api = await WidgetApi.start();
  server.handle = api.handle;
  ({ connection, client } = server.client());
});

afterEach(async () => {
  await connection.close();
  await server.stop();
  await api.stop();
});

const last = () => server.received.at(-1);

describe('objects', () => {
  test('are created, read, changed and deleted', async () => {
    const made = await client.create(widgetKind, { metadata: { name: 'a', labels: { tier: 'web' } }, spec: {} });
    expect(made).toMatchObject({ metadata: { name: 'a', namespace: 'default' }, spec: { size: 1 } });
    expect(Object.isFrozen(made.spec)).toBe(true);
    expect((await client.get(widgetKind, { name: 'a' })).metadata.uid).toBe(made.metadata.uid);
    const updated = await client.update(widgetKind, { ...made, spec: { ...made.spec, color: 'red' } });
    expect(updated.spec).toEqual({ size: 1, color: 'red' });
    const withStatus = await client.updateStatus(widgetKind, { ...updated, status: { ready: true } });
    expect(withStatus.status).toEqual({ ready: true });
    const patched = await client
      .subResource('status')
      .patch(widgetKind, { name: 'a' }, { status: { note: 'n' }, spec: { size: 9 } });
    expect(patched).toMatchObject({ spec: { size: 1 }, status: { ready: true, note: 'n' } });
    expect(last()?.path).toBe('/apis/test.sluice.dev/v1/namespaces/default/widgets/a/status');
    const deleted = await client.delete(widgetKind, { name: 'a' }, { uid: made.metadata.uid });
    expect(deleted).toEqual(patched);
    expect(await client.find(widgetKind, { name: 'a' })).toBeUndefined();
    await expect(client.get(widgetKind, { name: 'a' })).rejects.toMatchObject({ code: 'NotFound' });
  });

  test('an update without a version is sent without one', async () => {
    const { metadata, ...made } = await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    const { resourceVersion: _version, ...unversioned } = metadata;
    server.received.length = 0;
    const object = { ...made, metadata: unversioned };
    await client.update(widgetKind, object);
    await client.updateStatus(widgetKind, object);
    expect(server.received.map(({ method }) => method)).toEqual(['PUT', 'PUT']);
    for (const { body } of server.received) expect(JSON.parse(body).metadata).not.toHaveProperty('resourceVersion');
  });

  test('share connections', async () => {
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    for (let index = 0; index < 100; index += 1) await client.get(widgetKind, { name: 'a' });
    // The pool opens another one if a response is not completely consumed when the next call begins.
    expect(server.connections).toBeLessThan(10);
  });

  test('a delete sends its preconditions and the propagation policy', async () => {
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    const options = { uid: 'other', resourceVersion: '7', propagationPolicy: 'Foreground' } as const;
    await expect(client.delete(widgetKind, { name: 'a' }, options)).rejects.toMatchObject({ code: 'Conflict' });
    expect(JSON.parse(last()?.body ?? '')).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'other', resourceVersion: '7' },
    });
  });

  test('a patch is a merge patch, retried after a conflict unless it names a version', async () => {
    let conflicts = 2;
    server.handle = (_request, response) => {
      conflicts -= 1;
      if (conflicts >= 0) sendStatus(response, 409, 'Conflict', 'the object has been modified', { name: 'a' });
      else sendJson(response, 200, wireWidget('a'));
    };
    await client.patch(widgetKind, { name: 'a' }, { spec: { color: null } });
    expect(last()).toMatchObject({ method: 'PATCH', body: '{"spec":{"color":null}}' });
    expect(last()?.headers['content-type']).toBe('application/merge-patch+json');
    expect(server.received).toHaveLength(3);
    conflicts = 1;
    const pinned = client.patch(widgetKind, { name: 'a' }, { metadata: { resourceVersion: '1' } });
    await expect(pinned).rejects.toMatchObject({ code: 'Conflict', message: 'the object has been modified' });
    expect(server.received).toHaveLength(4);
    const rename = client.patch(widgetKind, { name: 'a' }, { metadata: { name: 'b' } });
    await expect(rename).rejects.toThrow('a patch cannot change name or namespace');
    const move = client.patch(widgetKind, { name: 'a' }, { metadata: { namespace: 'b' } });
    await expect(move).rejects.toThrow('a patch cannot change name or namespace');
  });

  test('a change keeps unknown fields, and defaults that the server omitted are set', async () => {
    const hostile = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 5}');
    const foreign = wireWidget('a', '1', {
      spec: { parts: [{ name: 'x', weight: 3 }], future: { deep: [1, { a: null }] }, ...{} },
      extra: hostile,
    });
    server.handle = ({ body }, response) => sendJson(response, 200, body === '' ? foreign : JSON.parse(body));
    const read = await client.get(widgetKind, { name: 'a' });
    expect(read.spec.size).toBe(1);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    const written = await client.update(widgetKind, { ...read, spec: { ...read.spec, color: 'blue' } });
    const sent = JSON.parse(last()?.body ?? '');
    expect(sent.spec).toEqual({
      size: 1,
      color: 'blue',
      parts: [{ name: 'x', weight: 3 }],
      future: { deep: [1, { a: null }] },
    });
    expect(JSON.stringify(sent.extra)).toBe('{"__proto__":{"polluted":true},"constructor":5}');
    expect(written).toEqual(sent);
  });

  test('an object that violates the schema is returned unchanged', async () => {
    const odd = wireWidget('Not_A_Name', '1', { spec: { size: 'huge', color: 'ultraviolet' } });
    server.handle = (_request, response) => sendJson(response, 200, odd);
    expect(await client.get(widgetKind, { name: 'a' })).toEqual(odd);
  });

  test('a response that is no object of the kind, no JSON, or nested too deeply is an error', async () => {
    const answers: [string, object][] = [
      [
        '<html>Log in</html>',
        { code: 'Unavailable', message: expect.stringContaining('is it a Kubernetes API server?') },
      ],
      ['{"metadata": {"name": "a"', { code: 'Unavailable' }],
      [
        '{"metadata": {"name": "a"}}',
        { code: 'Unavailable', message: 'the server sent an object that is not a Widget' },
      ],
      ['[]', { code: 'Unavailable' }],
      [
        `{"metadata":{"name":"a","resourceVersion":"1"},"spec":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`,
        { code: 'LimitExceeded' },
      ],
    ];
    for (const [text, error] of answers) {
      server.handle = (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(text);
      await expect(client.get(widgetKind, { name: 'a' })).rejects.toMatchObject(error);
    }
  });

  test('names cannot redirect the path', async () => {
    for (const name of ['', '.', '..', 'a/b', 'a%2fb', 'a\0b'])
      await expect(client.get(widgetKind, { name })).rejects.toThrow(/cannot be part of the address/);
    await client.find(secretKind, { namespace: 'n', name: 'system:a?b#c' }).catch(() => undefined);
    expect(last()?.path).toBe('/api/v1/namespaces/n/secrets/system%3Aa%3Fb%23c');
  });
});

describe('lists', () => {
  test('are read page by page, sorted, with selectors', async () => {
    for (let index = 0; index < 7; index += 1)
      await client.create(widgetKind, {
        metadata: { name: `w${6 - index}`, labels: { odd: String(index % 2) } },
        spec: {},
      });
    server.handle = (request, response) => {
      if (request.query.get('limit') === '500') request.query.set('limit', '3');
      return api.handle(request, response);
    };
    server.received.length = 0;
    const { items, resourceVersion } = await client.list(widgetKind);
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['w0', 'w1', 'w2', 'w3', 'w4', 'w5', 'w6']);
    expect(server.received).toHaveLength(3);
    expect(resourceVersion).toBe(items[0]?.metadata.resourceVersion);
    const odd = await client.list(widgetKind, { namespace: 'default', labelSelector: { matchLabels: { odd: '1' } } });
    expect(odd.items.map(({ metadata }) => metadata.name)).toEqual(['w1', 'w3', 'w5']);
    await client
      .list(widgetKind, {
        labelSelector: 'a in (b,c)',
        fieldSelector: { requirements: [{ path: 'spec.color', operator: '=', value: 'a,b' }] },
      })
      .catch(() => undefined);
    expect(last()?.query.get('labelSelector')).toBe('a in (b,c)');
    expect(last()?.query.get('fieldSelector')).toBe('spec.color=a\\,b');
  });

  test('that expire between two pages are read again, once, in one page', async () => {
    const all = [wireWidget('a'), wireWidget('b')];
    let forgets = 1;
    server.handle = ({ query }, response) => {
      if (query.get('continue') !== null && forgets > 0) {
        forgets -= 1;
        return sendStatus(response, 410, 'Expired', 'The provided continue parameter is too old');
      }
      const whole = query.get('limit') === null;
      const metadata = whole ? { resourceVersion: '9' } : { resourceVersion: '8', continue: 'next' };
      sendJson(response, 200, { items: whole ? all : [all[0]], metadata });
    };
    const { items, resourceVersion } = await client.list(widgetKind);
    expect(items).toHaveLength(2);
    expect(resourceVersion).toBe('9');
    server.handle = (_request, response) => sendStatus(response, 410, 'Expired', 'too old');
    server.received.length = 0;
    await expect(client.list(widgetKind)).rejects.toMatchObject({ code: 'Expired' });
    expect(server.received).toHaveLength(2);
  });

  test.each([
    ['of large objects are read in smaller pages', 700, ['500', '62', '7', '7', '7', '7']],
    ['of objects larger than a page are read one by one', 9000, ['500', '62', '7', ...Array<string>(23).fill('1')]],
  ])('%s', async (_name, length, limits) => {
    const few = server.client({ limits: { pageBytes: 8192 } });
    onTestFinished(() => few.connection.close());
    const spec = { size: 1, color: 'x'.repeat(length) };
    const names = Array.from({ length: 23 }, (_, index) => `w${String(index).padStart(2, '0')}`);
    const all = names.map((name) => wireWidget(name, '1', { spec }));
    server.received.length = 0;
    server.handle = ({ query }, response) => {
      const from = Number(query.get('continue') ?? 0);
      const limit = Number(query.get('limit'));
      const rest = from + limit < all.length ? { continue: String(from + limit) } : {};
      sendJson(response, 200, { items: all.slice(from, from + limit), metadata: { resourceVersion: '9', ...rest } });
    };
    const { items } = await few.client.list(widgetKind);
    expect(items.map(({ metadata }) => metadata.name)).toEqual(names);
    expect(server.received.map(({ query }) => query.get('limit'))).toEqual(limits);
  });

  test('with an object that is nested too deeply have the others, and that one without what is too deep', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(300)}1${'}'.repeat(300)}`) as object;
    const items = [wireWidget('a', '1', { deep }), wireWidget('b')];
    server.handle = (_request, response) => sendJson(response, 200, { items, metadata: { resourceVersion: '2' } });
    const listed = await client.list(widgetKind);
    expect(listed.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
    expect(JSON.stringify(listed.items[0])).toContain('"a":{"a":null}');
  });

  test('may have items without kind, and null for none', async () => {
    const { kind: _kind, apiVersion: _apiVersion, ...bare } = wireWidget('a');
    server.handle = (_request, response) =>
      sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: [bare] });
    expect((await client.list(widgetKind)).items).toMatchObject([{ kind: 'Widget', apiVersion: 'test.sluice.dev/v1' }]);
    server.handle = (_request, response) => sendJson(response, 200, { metadata: {}, items: null });
    expect(await client.list(widgetKind)).toEqual({ items: [], resourceVersion: '' });
  });
});

describe('the user of a request', () => {
  test('is the user of the connection, or the impersonated user', async () => {
    expect(client.actor).toEqual({ name: 'anna' });
    await client.find(widgetKind, { name: 'a' });
    expect(last()?.headers).toMatchObject({ authorization: 'Bearer secret', 'user-agent': 'sluice' });
    expect(last()?.headers).not.toHaveProperty('impersonate-user');
    const other = client.as({ name: 'zoë', groups: ['dev', 'ops'] }, 'controller');
    expect(other).toMatchObject({ actor: { name: 'zoë' }, face: 'controller' });
    await other.get(widgetKind, { name: 'a' }, { reason: 'because: ü' }).catch(() => undefined);
    // After a 403 the client also reads the list of kinds.
    const { headers } = server.received.findLast(({ path }) => path.endsWith('/widgets/a')) ?? {};
    expect(Buffer.from(String(headers?.['impersonate-user']), 'latin1').toString('utf8')).toBe('zoë');
    expect(headers?.['impersonate-group']).toBe('dev, ops');
    expect(decodeURIComponent(String(headers?.['sluice-reason']))).toBe('because: ü');
    expect(() => client.as({ name: 'a\r\nx: y' })).toThrow(/is not a valid name/);
    expect(() => client.as({ name: '' })).toThrow(/without a name/);
  });
});

describe('errors', () => {
  test('have the message of the server', async () => {
    const message = 'PackageRevision.porch.kpt.dev "x" is invalid: spec.lifecycle: Invalid value: "Published"';
    const causes = [
      { reason: 'FieldValueInvalid', message: 'Invalid value: "x"', field: 'spec.parts[0].labels[a.b/c]' },
    ];
    const cases: [number, string, string][] = [
      [422, 'Invalid', 'InvalidInput'],
      [409, 'AlreadyExists', 'AlreadyExists'],
      [409, 'Conflict', 'Conflict'],
      [403, 'Forbidden', 'Refused'],
      [404, 'NotFound', 'NotFound'],
      [410, 'Gone', 'Expired'],
      [413, 'RequestEntityTooLarge', 'LimitExceeded'],
      [405, 'MethodNotAllowed', 'Unsupported'],
      [500, 'InternalError', 'Internal'],
      [503, 'ServiceUnavailable', 'Unavailable'],
      [504, 'Timeout', 'Timeout'],
      [500, 'ServerTimeout', 'Timeout'],
      [400, 'BadRequest', 'BadRequest'],
      [418, 'SomethingNew', 'BadRequest'],
      [502, 'SomethingNew', 'Unavailable'],
    ];
    for (const [status, reason, code] of cases) {
      server.handle = ({ path }, response) =>
        path.endsWith('/v1')
          ? sendJson(response, 200, {})
          : sendStatus(response, status, reason, message, { name: 'x', causes });
      const error = await client.get(widgetKind, { name: 'a' }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        code,
        message,
        details: { status, reason, causes: [{ ...causes[0], path: ['spec', 'parts', 0, 'labels', 'a.b/c'] }] },
      });
    }
  });

  test('a concurrent request on the same object is Busy', async () => {
    const message = 'another request is already in progress on package revision "default/x"';
    server.handle = (_request, response) => sendStatus(response, 409, 'Conflict', message, { name: 'x' });
    await expect(client.patch(widgetKind, { name: 'a' }, {})).rejects.toMatchObject({ code: 'Busy', message });
    expect(server.received).toHaveLength(1);
  });

  test('a kind that the server does not serve is Unsupported and not NotFound', async () => {
    server.handle = (_request, response) => void response.writeHead(404).end('404 page not found\n');
    const expected = {
      code: 'Unsupported',
      message: expect.stringMatching(/does not serve widgets\.test\.sluice\.dev in version v1.*404 page not found/),
    };
    await expect(client.find(widgetKind, { name: 'a' })).rejects.toMatchObject(expected);
    await expect(client.list(widgetKind)).rejects.toMatchObject(expected);
    const watch = client.watch(widgetKind, { resourceVersion: '1', signal: new AbortController().signal });
    await expect(watch[Symbol.asyncIterator]().next()).rejects.toMatchObject(expected);
  });

  test('a refusal is distinguished from a kind that is not served', async () => {
    const message = 'widgets.test.sluice.dev is forbidden: User "anna" cannot list resource "widgets"';
    let known = true;
    server.handle = ({ path }, response) => {
      if (path !== '/apis/test.sluice.dev/v1') return sendStatus(response, 403, 'Forbidden', message);
      if (known) return sendJson(response, 200, { kind: 'APIResourceList' });
      response.writeHead(404).end('404 page not found');
    };
    await expect(client.list(widgetKind)).rejects.toMatchObject({ code: 'Refused', message });
    known = false;
    await expect(client.list(widgetKind)).rejects.toMatchObject({ code: 'Unsupported' });
  });

  test('the error about refused credentials names the user and no secret', async () => {
    server.handle = (_request, response) => sendStatus(response, 401, 'Unauthorized', 'Unauthorized');
    const error = await client.list(widgetKind).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'Unauthenticated' });
    expect(isSluiceError(error) && error.message).toMatch(/user "anna", context "test" of \/kubeconfig.*log in again/);
    expect(JSON.stringify(error) + String(error)).not.toContain('secret');
  });
});

describe('raw', () => {
  test('requests any path and returns the text', async () => {
    server.handle = ({ headers }, response) =>
      void response.writeHead(200, { 'content-type': 'text/plain' }).end(`metric 1 ${headers.accept}`);
    const answer = await client.raw('GET', '/metrics?x=y');
    expect(answer).toEqual({ status: 200, contentType: 'text/plain', text: 'metric 1 */*' });
    await client.as({ name: 'ben' }).raw('POST', '/apis/x/v1/things', '{"a":1}', { accept: 'application/json' });
    expect(last()).toMatchObject({ body: '{"a":1}', headers: { 'impersonate-user': 'ben' } });
    for (const path of ['metrics', '', '/a b', '/a\r\nb', 'http://elsewhere/'])
      await expect(client.raw('GET', path)).rejects.toThrow(/a path begins with/);
    await client.raw('GET', '//elsewhere/x');
    expect(server.received).toHaveLength(3);
    server.handle = (_request, response) => void response.writeHead(500).end('[-]worker failed');
    await expect(client.raw('GET', '/livez')).rejects.toMatchObject({ message: '[-]worker failed' });
  });
});

test('writes of a typed object keep its type', async () => {
  const made: Widget = await client.create(widgetKind, { metadata: { generateName: 'w-' }, spec: { size: 4 } });
  expect(made.metadata.name).toMatch(/^w-/);
});
