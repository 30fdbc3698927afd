import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { ALL_VERBS } from '../../resource/storage/storage.ts';
import type { Served } from './discovery/served.ts';
import type { Document } from './document.ts';
import { DocumentCache } from './document-cache.ts';
import { servedForTests } from './testing.ts';

const AGGREGATED = (version: string) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;

function start(served: Served = servedForTests) {
  const state = { served, generation: 1, reads: 0 };
  const cache = new DocumentCache({
    served: () => {
      state.reads += 1;
      return state.served;
    },
    generation: () => state.generation,
    version: '0.1.0',
    platform: 'linux/amd64',
    fields: { 'test.sluice.dev': { 'sluice.dev/system-namespace': 'platform' } },
  });
  const get = (path: string, accept?: string) => cache.find(path, accept) as Document;
  return { state, cache, get, read: (path: string, accept?: string) => JSON.parse(get(path, accept).body.toString()) };
}

describe('DocumentCache', () => {
  test.each([
    ['/version', undefined, { major: '1', platform: 'linux/amd64' }],
    ['/api', undefined, { kind: 'APIVersions' }],
    ['/api/v1', undefined, { kind: 'APIResourceList', groupVersion: 'v1' }],
    ['/apis', undefined, { kind: 'APIGroupList' }],
    ['/apis/test.sluice.dev', undefined, { kind: 'APIGroup' }],
    [
      '/apis/test.sluice.dev/v1',
      undefined,
      { groupVersion: 'test.sluice.dev/v1', 'sluice.dev/system-namespace': 'platform' },
    ],
    ['/openapi/v2', undefined, { swagger: '2.0' }],
    ['/openapi/v3/api/v1', undefined, { openapi: '3.0.0' }],
    ['/openapi/v3/apis/test.sluice.dev/v1', '*/*', { openapi: '3.0.0' }],
  ])('%s', (path, accept, part) => {
    const { get, read } = start();
    expect(read(path, accept)).toMatchObject(part);
    expect(get(path, accept).contentType).toBe('application/json');
  });

  test('clients that know aggregated discovery get it', () => {
    const { get, read } = start();
    const accept = `${AGGREGATED('v2')},${AGGREGATED('v2beta1')},application/json`;
    expect(get('/apis', accept).contentType).toBe(AGGREGATED('v2'));
    const names = (path: string) =>
      read(path, accept).items.map((item: { metadata: { name: string } }) => item.metadata.name);
    expect(names('/api')).toEqual(['']);
    expect(names('/apis')).toEqual(['test.sluice.dev', 'authorization.k8s.io', 'authentication.k8s.io']);
    expect(read('/apis', AGGREGATED('v2beta1')).apiVersion).toBe('apidiscovery.k8s.io/v2beta1');
    expect(read('/apis', `${AGGREGATED('v9')},application/json;q=0.5`).kind).toBe('APIGroupList');
    expect(read('/apis', `${AGGREGATED('v2')};q=0.1,application/json`).kind).toBe('APIGroupList');
  });

  test('OpenAPI v2 has the form that client-go reads', () => {
    const { get } = start();
    const document = get('/openapi/v2', 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf');
    expect(document.contentType).toBe('application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
    expect(document.body.subarray(0, 5)).toEqual(Buffer.from([0x0a, 3, 0x32, 0x2e, 0x30]));
  });

  test('what is not there is undefined, what is not there in a wanted form is refused', () => {
    const { cache } = start();
    for (const path of ['/apis/none', '/openapi/v3/apis/none/v1', '/api/v2', '/__proto__', '/openapi/v1'])
      expect(cache.find(path, undefined)).toBeUndefined();
    expect(() => cache.find('/apis', 'text/html')).toThrow(
      expect.toSatisfy((error) => isSluiceError(error, 'NotAcceptable')),
    );
  });

  test('the index names every document with the hash of its content', () => {
    const { get, read } = start();
    const { paths } = read('/openapi/v3');
    expect(Object.keys(paths)).toEqual([
      'api/v1',
      'apis/test.sluice.dev/v1',
      'apis/authorization.k8s.io/v1',
      'apis/authentication.k8s.io/v1',
    ]);
    const { hash, etag } = get('/openapi/v3/api/v1');
    expect(paths['api/v1'].serverRelativeURL).toBe(`/openapi/v3/api/v1?hash=${hash}`);
    expect(etag).toBe(`"${hash}"`);
  });

  test('documents are built once, compressed or not', async () => {
    const { state, get } = start();
    const document = get('/openapi/v2');
    expect(get('/openapi/v2')).toBe(document);
    const packed = await document.gzip();
    expect(gunzipSync(packed)).toEqual(document.body);
    expect(await document.gzip()).toBe(packed);
    expect(state.reads).toBe(1);
  });

  test('when what is served changes, only documents that depend on it are built again', () => {
    const { state, get, read } = start();
    const [core, widgets] = [get('/openapi/v3/api/v1'), get('/openapi/v3/apis/test.sluice.dev/v1')];
    const kinds = [...servedForTests.kinds, { kind: configMapKind, verbs: ALL_VERBS, subResources: [] }];
    state.served = { ...servedForTests, kinds };
    expect(get('/openapi/v3/api/v1')).toBe(core);
    state.generation = 2;
    expect(get('/openapi/v3/api/v1')).not.toBe(core);
    expect(get('/openapi/v3/apis/test.sluice.dev/v1')).toBe(widgets);
    expect(read('/api/v1').resources).toHaveLength(2);
    state.served = { kinds: [], reviews: [] };
    state.generation = 3;
    expect(get('/openapi/v3/api/v1')).toBeUndefined();
    expect(read('/openapi/v3').paths).toEqual({});
  });
});
