import { expect, test } from 'vitest';
import { configMap, failure, made, usePlace } from './support/place.ts';
import { configMapProtobuf } from './support/protobuf.ts';

const place = usePlace();
const path = (name = '') => place.path('configmaps', ...(name === '' ? [] : [name]));

test('YAML requests and responses are supported', async () => {
  const yaml = 'metadata:\n  name: yaml\n  labels: {a: "1"}\ndata:\n  text: |\n    two\n    lines\n  number: "1"\n';
  const headers = { 'content-type': 'application/yaml' };
  const created = await place.api.send('POST', path(), { body: yaml, headers });
  expect(made(created)).toMatchObject({
    metadata: { labels: { a: '1' } },
    data: { text: 'two\nlines\n', number: '1' },
  });
  const shown = await place.api.get(path('yaml'), { accept: 'application/yaml' });
  expect(shown.headers['content-type']).toBe('application/yaml');
  expect(shown.text).toMatch(/^kind: ConfigMap$/m);
  expect(shown.text).toContain('resourceVersion:');
});

test('the protobuf of clients written in Go is understood', async () => {
  const headers = { 'content-type': 'application/vnd.kubernetes.protobuf' };
  const body = configMapProtobuf('protobuf', { a: 'b', 'c.d': 'ä' });
  expect(made(await place.api.send('POST', path(), { body, headers }))).toMatchObject({
    ...{ kind: 'ConfigMap', metadata: { name: 'protobuf' }, data: { a: 'b', 'c.d': 'ä' } },
  });
  expect((await place.api.send('POST', path(), { body: body.subarray(0, 20), headers })).status).toBe(400);
});

test('a client that prefers protobuf and accepts JSON gets one of them', async () => {
  made(await place.api.post(path(), configMap('either')));
  const accept = 'application/vnd.kubernetes.protobuf,application/json';
  const { status, headers } = await place.api.get(path('either'), { accept });
  expect(status).toBe(200);
  expect(headers['content-type']).toMatch(/^application\/(json|vnd\.kubernetes\.protobuf)$/);
});

test('long answers are compressed for those who can read that', async () => {
  const data = { text: 'x'.repeat(200_000) };
  made(await place.api.post(path(), configMap('long', data)));
  const compressed = await place.api.get(path('long'), { 'accept-encoding': 'gzip' });
  expect(compressed.headers['content-encoding']).toBe('gzip');
  expect(made(compressed).data).toEqual(data);
  expect((await place.api.get(path('long'))).headers).not.toHaveProperty('content-encoding');
});

test('responses are indented if the client requests it', async () => {
  made(await place.api.post(path(), configMap('pretty')));
  expect((await place.api.get(`${path('pretty')}?pretty=true`)).text).toMatch(/\n {2}"kind": "ConfigMap"/);
});

test('a body has a limit', async () => {
  const { status, body } = await place.api.post(path(), configMap('huge', { text: 'x'.repeat(4 * 1024 * 1024) }));
  expect([413, 422]).toContain(status);
  expect(body).toMatchObject({ kind: 'Status' });
  expect(await place.api.get(path('huge'))).toEqual(failure(404, 'NotFound'));
});
