import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RequestContext } from '../resource/object/request-context.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { createWidget, send, startTestServer, type TestServer, WIDGETS } from './testing.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

const CONTEXT: RequestContext = { actor: { name: 'test' }, face: 'api' };

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

describe('lists', () => {
  test('are paged over one snapshot', async () => {
    for (const name of ['a', 'b', 'c']) await createWidget(api, name);
    const first = await json(api.fetch(`${WIDGETS}?limit=2`));
    expect(first).toMatchObject({ kind: 'WidgetList', metadata: { remainingItemCount: 1 } });
    await createWidget(api, 'd');
    const { metadata } = first as unknown as { metadata: { continue: string; resourceVersion: string } };
    const second = await json(api.fetch(`${WIDGETS}?limit=2&continue=${metadata.continue}`));
    expect(second).toMatchObject({
      metadata: { resourceVersion: metadata.resourceVersion },
      items: [{ metadata: { name: 'c' } }],
    });
    expect(await json(api.fetch(`${WIDGETS}?limit=-1`))).toMatchObject({ code: 400 });
    expect(await json(api.fetch(`${WIDGETS}?continue=nonsense`))).toMatchObject({ code: 400 });
  });

  test('by label and by field; a selector that cannot be read is a bad request', async () => {
    await createWidget(api, 'a', { size: 1 }, { labels: { tier: 'x' } });
    await createWidget(api, 'b', { size: 2 });
    const names = async (query: string) => {
      const list = (await json(api.fetch(`${WIDGETS}?${query}`))) as unknown as {
        items: { metadata: { name: string } }[];
      };
      return list.items.map(({ metadata }) => metadata.name);
    };
    expect(await names('labelSelector=tier+in+(x,y)')).toEqual(['a']);
    expect(await names('fieldSelector=spec.size%3D2')).toEqual(['b']);
    for (const query of ['labelSelector=((', 'fieldSelector=spec.size', 'fieldSelector=spec.parts%3D1'])
      expect(await json(api.fetch(`${WIDGETS}?${query}`))).toMatchObject({ code: 400, reason: 'BadRequest' });
  });

  test('of a version: the present one will do, a past one is not kept, a future one has to wait', async () => {
    const { metadata } = await createWidget(api, 'a');
    await createWidget(api, 'b');
    const list = (query: string) => json(api.fetch(`${WIDGETS}?${query}`));
    const past = metadata.resourceVersion;
    for (const query of [
      '',
      'resourceVersion=0',
      `resourceVersion=${past}`,
      `resourceVersion=${past}&resourceVersionMatch=NotOlderThan`,
    ])
      expect(await list(query)).toMatchObject({ kind: 'WidgetList' });
    expect(await list(`resourceVersion=${past}&resourceVersionMatch=Exact`)).toMatchObject({
      code: 410,
      reason: 'Expired',
    });
    expect(await list('resourceVersion=999')).toMatchObject({
      ...{ code: 504, reason: 'Timeout', message: 'Too large resource version: 999, current: 2' },
      details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
    });
    // The same holds for one object.
    const get = (version: string) => json(api.fetch(`${WIDGETS}/a?resourceVersion=${version}`));
    for (const version of ['0', past, '2']) expect(await get(version)).toMatchObject({ kind: 'Widget' });
    expect(await get('999')).toMatchObject({
      ...{ code: 504, reason: 'Timeout', message: 'Too large resource version: 999, current: 2' },
      details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
    });
    for (const query of [
      'resourceVersionMatch=Exact',
      'resourceVersion=0&resourceVersionMatch=Exact',
      'sendInitialEvents=true',
    ])
      expect(await list(query)).toMatchObject({ code: 422 });
  });
});

describe('forms', () => {
  test('tables, metadata alone, YAML and pretty JSON', async () => {
    await createWidget(api, 'a');
    const as = (accept: string, path = WIDGETS) => api.fetch(path, { headers: { accept } });
    expect(await json(as(TABLE))).toMatchObject({ kind: 'Table', rows: [{ cells: ['a', expect.any(String)] }] });
    expect(await json(as(TABLE, `${WIDGETS}/a?includeObject=Object`))).toMatchObject({
      rows: [{ object: { kind: 'Widget' } }],
    });
    const partial = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    expect(await json(as(partial))).toMatchObject({
      kind: 'PartialObjectMetadataList',
      items: [{ kind: 'PartialObjectMetadata', metadata: { name: 'a' } }],
    });
    const yaml = await as('application/yaml', `${WIDGETS}/a`);
    expect(yaml.headers.get('content-type')).toBe('application/yaml');
    expect(await yaml.text()).toContain('kind: Widget\n');
    expect(await (await api.fetch(`${WIDGETS}/a?pretty=true`)).text()).toContain('\n  "kind": "Widget"');
    expect(await json(as('application/vnd.kubernetes.protobuf'))).toMatchObject({ code: 406 });
  });

  test('bodies in YAML', async () => {
    const body = 'metadata:\n  name: a\nspec:\n  size: 4\n';
    expect(await json(send(api, 'POST', WIDGETS, body, 'application/yaml'))).toMatchObject({ spec: { size: 4 } });
  });

  test('large answers are compressed for who can read that', async () => {
    for (let index = 0; index < 4; index += 1)
      await createWidget(api, `w${index}`, {}, { annotations: { a: 'x'.repeat(50_000) } });
    const response = await api.fetch(WIDGETS);
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(await json(response)).toMatchObject({ kind: 'WidgetList' });
    const plain = await api.fetch(WIDGETS, { headers: { 'accept-encoding': 'identity' } });
    expect(plain.headers.get('content-encoding')).toBeNull();
  });
});

test('long lists are written in parts, also to clients that disconnect', async () => {
  const storage = api.registry.storage(widgetKind);
  const spec = { size: 1, note: 'x'.repeat(500) };
  for (let number = 0; number < 2500; number += 1)
    await storage.create(
      CONTEXT,
      widgetKind.complete({ metadata: { name: `w${number}`, namespace: 'default' }, spec }),
    );
  const { items } = await storage.list(CONTEXT);
  const wanted = { kind: 'WidgetList', apiVersion: 'test.sluice.dev/v1', items };
  for (const encoding of ['identity', 'gzip']) {
    const response = await api.fetch(WIDGETS, { headers: { 'accept-encoding': encoding } });
    expect(response.headers.get('content-length')).toBeNull();
    expect(response.headers.get('content-encoding')).toBe(encoding === 'gzip' ? 'gzip' : null);
    expect(await json(response)).toMatchObject(wanted);
  }
  expect(await json(api.fetch(`${WIDGETS}?pretty=true`))).toMatchObject(wanted);
  const head = await api.fetch(WIDGETS, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
  const left = await api.fetch(WIDGETS);
  await left.body?.cancel();
  expect(await json(api.fetch(`${WIDGETS}/w7`))).toMatchObject({ metadata: { name: 'w7' } });
});
