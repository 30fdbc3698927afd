import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { NO_LOAD } from './metrics/request-metrics.ts';
import { createWidget, send, startTestServer, type TestServer, WIDGETS, widgetBody } from './testing.ts';

let api: TestServer;

beforeEach(async () => {
  api = await startTestServer({ limits: { maxBodyBytes: 64 * 1024, discardTimeoutMs: 50 } });
});
afterEach(async () => {
  await api.stop();
  expect(api.errors).toEqual([]);
});

const json = async (response: Promise<Response>) => (await response).json() as Promise<Record<string, never>>;

/** Sends bytes as they are and returns all that comes back until the server closes. */
function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(api.listener.port, '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

function request(line: string, ...headers: string[]): string {
  return [`${line} HTTP/1.1`, 'Host: x', 'Authorization: Bearer admin', 'Connection: close', ...headers, '', ''].join(
    '\r\n',
  );
}

describe('bodies', () => {
  test.each([
    ['nothing', '', 400],
    ['null', 'null', 422],
    ['a list', '[]', 400],
    ['half an object', '{"metadata"', 400],
    ['deep nesting', `{"spec":${'['.repeat(50_000)}`, 400],
    ['broken UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22]), 400],
  ])('%s', async (_what, body, code) => {
    const response = await api.fetch(WIDGETS, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: body as string,
    });
    expect(response.status).toBe(code);
    expect(await response.json()).toMatchObject({ kind: 'Status', code });
  });

  test('a body that is too large is not read to its end, with or without a length', async () => {
    const large = widgetBody('a', { size: 1 }, { annotations: { a: 'x'.repeat(100_000) } });
    expect(await json(send(api, 'POST', WIDGETS, large))).toMatchObject({
      ...{ code: 413, reason: 'RequestEntityTooLarge', message: 'Request entity too large: limit is 65536' },
    });
    const chunk = `8000\r\n${' '.repeat(0x8000)}\r\n`;
    const head = request(`POST ${WIDGETS}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked');
    expect(await raw(head + chunk.repeat(3))).toMatch(/^HTTP\/1.1 413 /);
  });

  test('compressed bodies are read, and count as what they are when they are not', async () => {
    const post = (bytes: Buffer, encoding = 'gzip') =>
      api.fetch(WIDGETS, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-encoding': encoding },
        body: new Uint8Array(bytes),
      });
    expect((await post(gzipSync(JSON.stringify(widgetBody('a'))))).status).toBe(201);
    const bomb = gzipSync(Buffer.alloc(50_000_000, 0x20));
    expect(bomb.length).toBeLessThan(64 * 1024);
    expect((await post(bomb)).status).toBe(413);
    expect((await post(Buffer.from('no gzip'))).status).toBe(400);
    expect((await post(Buffer.from('{}'), 'br')).status).toBe(415);
  });

  test('YAML with aliases, tags or endless nesting is refused', async () => {
    const post = (text: string) => json(send(api, 'POST', WIDGETS, text, 'application/yaml'));
    const bomb = `a: &a [${'x,'.repeat(50)}]\nb: &b [${'*a,'.repeat(50)}]\nc: [${'*b,'.repeat(50)}]\n`;
    expect(await post(bomb)).toMatchObject({ code: 400 });
    expect(await post('a: !!js/function "x"')).toMatchObject({ code: 400 });
    expect(await post('- '.repeat(10_000))).toMatchObject({ code: 400 });
    expect(await post(`metadata: {name: a}\nmetadata: {name: b}`)).toMatchObject({ code: 400 });
  });

  test('unknown media types are refused', async () => {
    for (const type of ['text/plain', 'application/xml', 'application/vnd.kubernetes.protobuf', 'constructor'])
      expect(await json(send(api, 'POST', WIDGETS, widgetBody('a'), type))).toMatchObject({ code: 415 });
  });

  test('keys of prototypes are data', async () => {
    const body = `{"metadata": {"name": "a", "annotations": {"constructor": "c"}, "__proto__": {"finalizers": ["x/y"]}},
      "spec": {"__proto__": {"color": "red"}}, "__proto__": {"polluted": true}}`;
    const made = await json(send(api, 'POST', WIDGETS, body));
    expect(made).toMatchObject({ metadata: { annotations: { constructor: 'c' } }, spec: { size: 1 } });
    expect(made).not.toHaveProperty('spec.color');
    for (const type of ['application/merge-patch+json', 'application/apply-patch+yaml'])
      await send(api, 'PATCH', `${WIDGETS}/a?fieldManager=x`, body, type);
    const pointer = [{ op: 'add', path: '/__proto__/polluted', value: true }];
    await send(api, 'PATCH', `${WIDGETS}/a`, pointer, 'application/json-patch+json');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(await json(api.fetch(`${WIDGETS}/a`))).not.toHaveProperty('polluted');
  });
});

describe('authentication', () => {
  test('requests without valid credentials get 401, for any headers', async () => {
    const forged = {
      ...{ 'x-remote-user': 'admin', 'x-remote-group': 'system:masters', 'x-forwarded-user': 'admin' },
      'impersonate-user': 'admin',
    };
    const response = await fetch(`${api.listener.url}${WIDGETS}`, { headers: forged });
    expect([response.status, await response.json()]).toEqual([
      401,
      {
        ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 401 },
        ...{ message: 'Unauthorized', reason: 'Unauthorized' },
      },
    ]);
  });

  test('a refusal names the resource, and forged headers change nothing', async () => {
    const headers = { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' };
    const refused = (path: string, method = 'GET') => json(api.fetch(path, { method, headers }, 'anna'));
    const approval = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions/x/approval';
    expect(await refused(approval, 'PUT')).toEqual({
      ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 403, reason: 'Forbidden' },
      message:
        'packagerevisions.porch.kpt.dev "x" is forbidden: User "anna" cannot update resource ' +
        '"packagerevisions/approval" in API group "porch.kpt.dev" in the namespace "default"',
      details: { name: 'x', group: 'porch.kpt.dev', kind: 'packagerevisions' },
    });
    expect(await refused('/api/v1/namespaces')).toMatchObject({
      message:
        'namespaces is forbidden: User "anna" cannot list resource "namespaces" in API group "" at the cluster scope',
    });
    expect(await refused('/metrics')).toMatchObject({ message: 'forbidden: User "anna" cannot get path "/metrics"' });
  });
});

describe('paths and headers', () => {
  test.each([
    ['/../../etc/passwd', 400],
    ['//apis/test.sluice.dev/v1/widgets', 400],
    [`${WIDGETS}/..%2f..%2fsecrets`, 400],
    [`${WIDGETS}/a%00b`, 400],
    [`${WIDGETS}/%E0%A4%A`, 400],
    ['http://elsewhere.example/api', 400],
  ])('%s', async (path, code) => {
    expect(await raw(request(`GET ${path}`))).toMatch(new RegExp(`^HTTP/1.1 ${code} `));
  });

  test('heads that are too large or no HTTP end at the parser', async () => {
    expect(await raw(request(`GET ${WIDGETS}?x=${'y'.repeat(70_000)}`))).toMatch(/^HTTP\/1.1 431 /);
    expect(await raw('nonsense\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
    const smuggled = request(`POST ${WIDGETS}`, 'Content-Length: 5', 'Transfer-Encoding: chunked');
    expect(await raw(`${smuggled}0\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /);
  });

  test('warnings cannot split the answer', async () => {
    const response = await send(api, 'POST', WIDGETS, widgetBody('a', { 'x\r\nSet-Cookie: a=b\u2028': 1 }));
    expect(response.status).toBe(201);
    expect(response.headers.get('set-cookie')).toBeNull();
    expect(response.headers.get('warning')).toMatch(/^299 - "unknown field /);
  });

  test('selectors with more than they need are refused or answered, never followed', async () => {
    await createWidget(api, 'a');
    const many = Array.from({ length: 3000 }, (_, index) => `k${index}!=v`).join(',');
    expect(await json(api.fetch(`${WIDGETS}?labelSelector=${encodeURIComponent(many)}`))).toMatchObject({
      kind: 'WidgetList',
    });
    const pattern = encodeURIComponent('(a+)+$');
    for (const query of [`labelSelector=${pattern}`, `labelSelector=a%3D${pattern}`, `fieldSelector=${pattern}`])
      expect(await json(api.fetch(`${WIDGETS}?${query}`))).toMatchObject({ code: 400 });
  });

  test('a client that leaves in the middle of its body leaves nothing behind', async () => {
    const socket = connect(api.listener.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(`${request(`POST ${WIDGETS}`, 'Content-Type: application/json', 'Content-Length: 1000')}{"metadata":`);
    await expect.poll(() => api.server.load.bodyBytes).toBe('{"metadata":'.length);
    socket.destroy();
    await expect.poll(() => api.server.load).toEqual(NO_LOAD);
  });
});
