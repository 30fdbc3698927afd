import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestServer, type TestServer } from './testing.ts';

const WIDGETS = '/apis/test.sluice.dev/v1/namespaces/default/widgets';
const JSON_BODY = { 'content-type': 'application/json' };

let api: TestServer;

beforeEach(async () => {
  api = await startTestServer();
});
afterEach(async () => {
  await api.stop();
  expect(api.errors).toEqual([]);
});

function widget(name: string, spec: object = { size: 1 }, metadata: object = {}) {
  return { apiVersion: 'test.sluice.dev/v1', kind: 'Widget', metadata: { name, ...metadata }, spec };
}

function send(method: string, path: string, body: unknown, headers: Record<string, string> = JSON_BODY) {
  return api.fetch(path, { method, headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
}

async function created(name: string, spec?: object, metadata?: object) {
  const response = await send('POST', WIDGETS, widget(name, spec, metadata));
  expect(response.status).toBe(201);
  return response.json() as Promise<ReturnType<typeof widget> & { metadata: { resourceVersion: string; uid: string } }>;
}

test('create, get, list, update, patch, delete', async () => {
  const made = await created('a');
  expect(made).toMatchObject({ metadata: { name: 'a', namespace: 'default', generation: 1 }, spec: { size: 1 } });
  expect(await (await api.fetch(`${WIDGETS}/a`)).json()).toEqual(made);
  const list = await (await api.fetch(WIDGETS)).json();
  expect(list).toEqual({
    kind: 'WidgetList',
    apiVersion: 'test.sluice.dev/v1',
    metadata: { resourceVersion: made.metadata.resourceVersion },
    items: [made],
  });
  const put = await send('PUT', `${WIDGETS}/a`, { ...made, spec: { size: 2 } });
  expect(await put.json()).toMatchObject({ spec: { size: 2 }, metadata: { generation: 2 } });
  const stale = await send('PUT', `${WIDGETS}/a`, { ...made, spec: { size: 3 } });
  expect(await stale.json()).toMatchObject({ code: 409, reason: 'Conflict' });
  const merge = { 'content-type': 'application/merge-patch+json' };
  const patched = await send('PATCH', `${WIDGETS}/a`, { spec: { color: 'red' } }, merge);
  expect(await patched.json()).toMatchObject({ spec: { size: 2, color: 'red' } });
  const status = await send('PATCH', `${WIDGETS}/a/status`, { status: { ready: true } }, merge);
  expect(await status.json()).toMatchObject({ status: { ready: true } });
  const gone = await api.fetch(`${WIDGETS}/a`, { method: 'DELETE' });
  expect(await gone.json()).toEqual({
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

test('a watch tells the present state and then every change', async () => {
  await created('a');
  const response = await api.fetch(`${WIDGETS}?watch=true`);
  expect(response.headers.get('content-type')).toBe('application/json');
  const lines = linesOf(response);
  expect(await lines.next()).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
  await created('b');
  expect(await lines.next()).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'b' } } });
  await send('PATCH', `${WIDGETS}/a`, { spec: { size: 9 } }, { 'content-type': 'application/merge-patch+json' });
  expect(await lines.next()).toMatchObject({ type: 'MODIFIED', object: { spec: { size: 9 } } });
  await api.fetch(`${WIDGETS}/b`, { method: 'DELETE' });
  expect(await lines.next()).toMatchObject({ type: 'DELETED', object: { metadata: { name: 'b' } } });
});

/** Reads a watch line by line. */
function linesOf(response: Response): { next(): Promise<unknown> } {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  return {
    async next() {
      for (;;) {
        const end = rest.indexOf('\n');
        if (end >= 0) {
          const line = rest.slice(0, end);
          rest = rest.slice(end + 1);
          return JSON.parse(line);
        }
        const chunk = await reader?.read();
        if (chunk === undefined || chunk.done) return undefined;
        rest += chunk.value;
      }
    },
  };
}
