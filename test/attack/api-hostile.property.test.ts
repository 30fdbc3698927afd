import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { APPLY_PATCH, JSON_PATCH, MERGE_PATCH, type SendOptions, STRATEGIC_PATCH } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { runs } from '../support/runs.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const YAML = 'application/yaml';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

let folder: string;
let up: RunningUp;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-hostile-'));
  up = await RunningUp.start(join(folder, 'data'));
  const { status } = await up.api.post(MAPS, { metadata: { name: 'victim' }, data: { a: 'b' } });
  expect(status).toBe(201);
});

/** Whatever was asked, the server goes on, has the same object, and has nothing to blame itself for. */
afterEach(async () => {
  expect((await up.api.get(`${MAPS}/victim`)).body.data).toEqual({ a: 'b' });
  expect((await up.api.get('/livez')).status).toBe(200);
  expect(up.ownFailures()).toEqual([]);
});

afterAll(async () => {
  expect(await up.end()).toBe(0);
  await rm(folder, { recursive: true });
});

/** Sends something that must be refused as the sender's fault. */
async function refused(method: string, path: string, body: unknown, type = 'application/json', headers = {}) {
  const answer = await up.api.send(method, path, {
    body,
    headers: { 'content-type': type, ...headers },
  } as SendOptions);
  const what = `${method} ${path.slice(0, 100)}: ${answer.text.slice(0, 300)}`;
  expect(answer.status, what).toBeGreaterThanOrEqual(400);
  expect(answer.status, what).toBeLessThan(500);
  return answer;
}

describe('bodies', () => {
  test.each([
    ['half an object', '{"metadata": {"name": "x"'],
    ['text behind the object', '{"metadata": {"name": "x"}} {"metadata": {}}'],
    ['a byte order mark in the middle', '{"metadata": \ufeff{}}'],
    ['lists 100,000 levels deep', `{"metadata": {"name": "x"}, "data": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['objects 100,000 levels deep', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['a million values', `{"metadata": {"name": "x"}, "data": [${'0,'.repeat(1_000_000)}0]}`],
    ['numbers beyond all bounds', '{"metadata": {"name": "x", "generation": 1e999999}, "data": 1e-999999}'],
    ['a name of a prototype', '{"metadata": {"name": "__proto__"}}'],
    ['broken UTF-8', Buffer.from('{"metadata": {"name": "\xff\xfe"}}', 'latin1')],
    ['half a surrogate pair', '{"metadata": {"name": "\\ud800"}}'],
  ])('of JSON: %s', async (_what, body) => {
    await refused('POST', MAPS, body);
    await refused('PUT', `${MAPS}/victim`, body);
  });

  test.each([
    [
      'aliases upon aliases',
      `a: &a [${'x,'.repeat(60)}]\nb: &b [${'*a,'.repeat(60)}]\nc: &c [${'*b,'.repeat(60)}]\nd: [${'*c,'.repeat(60)}]\n`,
    ],
    ['a merge of itself', 'metadata: &a\n  name: x\n  <<: *a\n'],
    ['endless nesting', `${'- '.repeat(20_000)}x`],
    ['brackets', '['.repeat(100_000)],
    ['tags of functions', 'metadata: {name: !!js/function "function(){}"}'],
    ['binary', 'metadata: {name: x}\ndata: {a: !!binary "gIGC"}\n---\nkind: x\n'],
    ['tabs', '\tmetadata:\n\t\tname: x\n'],
    ['a long line', `metadata: {name: "${'x'.repeat(2_000_000)}"}`],
  ])('of YAML: %s', async (_what, body) => {
    await refused('POST', MAPS, body, YAML);
    await refused('PATCH', `${MAPS}/victim?fieldManager=x`, body, APPLY_PATCH);
  });

  test.each([
    ['nothing but the mark', Buffer.from('k8s\0')],
    ['another mark', Buffer.from('k9s\0abcdef')],
    ['a length beyond the end', Buffer.from([0x6b, 0x38, 0x73, 0, 0x0a, 0xff, 0xff, 0xff, 0x7f])],
    ['an endless number', Buffer.from([0x6b, 0x38, 0x73, 0, ...Array(64).fill(0xff)])],
    ['a group', Buffer.from([0x6b, 0x38, 0x73, 0, 0x0b, 0x0b, 0x0b])],
    ['100,000 levels', Buffer.concat([Buffer.from('k8s\0'), Buffer.alloc(100_000, 0x12)])],
  ])('of protobuf: %s', async (_what, body) => {
    await refused('POST', MAPS, body, PROTOBUF);
  });

  test('that are bombs when they are inflated', async () => {
    const bomb = gzipSync(Buffer.alloc(200_000_000, 0x20));
    const answer = await refused('POST', MAPS, bomb, 'application/json', { 'content-encoding': 'gzip' });
    expect(answer.status).toBe(413);
    await refused('POST', MAPS, gzipSync(bomb), 'application/json', { 'content-encoding': 'gzip' });
    await refused('POST', MAPS, Buffer.from('no gzip'), 'application/json', { 'content-encoding': 'gzip' });
    await refused('POST', MAPS, '{}', 'application/json', { 'content-encoding': 'gzip, gzip' });
  });
});

test('keys of prototypes are refused, or are keys like any other, or are left out with a warning', async () => {
  const bodies = ['"labels": {"__proto__": "a"}', '"annotations": {"constructor": "a"}', '"__proto__": {"name": "y"}'];
  for (const [index, field] of bodies.entries()) {
    const body = `{"metadata": {"name": "proto-${index}", ${field}}, "data": {"__proto__": "x"}}`;
    const { status, headers, text } = await up.api.post(MAPS, body);
    expect([201, 422], text).toContain(status);
    if (status === 201) expect(`${headers.warning} ${text}`).toContain('data.__proto__');
    expect((await up.api.post(`${MAPS}?fieldValidation=Strict`, body)).status).toBeGreaterThanOrEqual(400);
  }
});

describe('patches', () => {
  test('that grow with every operation', async () => {
    const doubling = [
      { op: 'add', path: '/metadata/annotations', value: { a: 'x'.repeat(1000) } },
      ...Array.from({ length: 60 }, (_, index) => ({
        op: 'copy',
        from: '/metadata',
        path: `/metadata/annotations/k${index}`,
      })),
    ];
    await refused('PATCH', `${MAPS}/victim`, doubling, JSON_PATCH);
    const many = Array.from({ length: 100_000 }, () => ({ op: 'test', path: '/data/a', value: 'b' }));
    await refused('PATCH', `${MAPS}/victim`, many, JSON_PATCH);
  });

  test('that reach for prototypes', async () => {
    for (const path of ['/__proto__/polluted', '/constructor/prototype/polluted', '/metadata/__proto__/polluted'])
      for (const op of ['add', 'replace'])
        await refused('PATCH', `${MAPS}/victim`, [{ op, path, value: 'yes' }], JSON_PATCH);
    const merged = '{"__proto__": {"polluted": "yes"}, "data": {"__proto__": null}}';
    for (const type of [MERGE_PATCH, STRATEGIC_PATCH])
      expect((await up.api.patch(`${MAPS}/victim`, merged, type)).status).toBeLessThan(500);
    expect((await up.api.get(`${MAPS}/victim`)).text).not.toContain('polluted');
  });

  test('with directives that make no sense', async () => {
    for (const body of [{ $patch: 'explode' }, { metadata: { '$deleteFromPrimitiveList/finalizers': 'x' } }])
      await refused('PATCH', `${MAPS}/victim`, body, STRATEGIC_PATCH);
    await refused('PATCH', `${MAPS}/victim`, `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`, MERGE_PATCH);
  });

  test('that claim to own strange fields', async () => {
    const managedFields = (fieldsV1: unknown) => ({
      metadata: {
        managedFields: [{ manager: 'x', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 }],
      },
    });
    const deep = JSON.parse(`${'{"f:a":'.repeat(90)}{}${'}'.repeat(90)}`);
    for (const fields of [deep, { 'f:__proto__': {} }, { 'k:{': {} }, { 'q:a': {} }, [1], 'x'])
      expect((await up.api.patch(`${MAPS}/victim?dryRun=All`, managedFields(fields))).status).toBeLessThan(500);
  });
});

describe('addresses', () => {
  test.each([
    `${MAPS}/..%2f..%2fsecrets`,
    `${MAPS}/%2e%2e/secrets`,
    `${MAPS}/../secrets/x`,
    `${MAPS}/a%00b`,
    `${MAPS}/a%0d%0aX-Injected:%20yes`,
    `${MAPS}/%ff%fe`,
    `${MAPS}/%`,
    `${MAPS}//victim`,
    `${MAPS}/victim/status/x/y`,
    `${MAPS}/${'a'.repeat(5000)}`,
    '/api/v1/namespaces/..%2fdefault/configmaps',
    '/api/v1/namespaces/__proto__/configmaps/x',
    '/api/v1/__proto__',
    '/apis/constructor/prototype/toString',
    '/apis/__proto__/v1/x',
    '/openapi/v3/../../../etc/passwd',
    '/openapi/v3/__proto__',
    '//etc/passwd',
    '/\\..\\..\\windows',
  ])('%s', async (path) => {
    const answer = await refused('GET', path, undefined);
    expect(answer.headers).not.toHaveProperty('x-injected');
    await refused('DELETE', path, undefined);
  });

  test('with parameters of all kinds', async () => {
    for (const query of [
      `labelSelector=${encodeURIComponent('a=~^(a+)+$')}`,
      `labelSelector=${encodeURIComponent(`a in (${'('.repeat(5000)}`)}`,
      'fieldSelector=__proto__%3Dx',
      'fieldSelector=metadata.constructor%3Dx',
      'limit=-1',
      'limit=1e9',
      'limit=99999999999999999999',
      'continue=%00',
      `continue=${'A'.repeat(10_000)}`,
      'resourceVersion=-1&resourceVersionMatch=Exact',
      'watch=true&timeoutSeconds=abc',
      'watch=true&resourceVersion=1&sendInitialEvents=maybe&resourceVersionMatch=Exact',
    ])
      await refused('GET', `${MAPS}?${query}`, undefined);
    const name = encodeURIComponent('metadata.name=~(x+x+)+y');
    expect((await up.api.list(`${MAPS}?fieldSelector=${name}`)).body.items).toEqual([]);
    // Parameters that are unknown, and prototypes among them, are ignored.
    expect((await up.api.get(`${MAPS}?__proto__=x&constructor=y&toString=z`)).status).toBe(200);
  });

  test('with selectors of every length up to the one that is too long', async () => {
    const terms = (count: number) => encodeURIComponent(Array.from({ length: count }, (_, i) => `k${i}!=v`).join(','));
    expect((await up.api.get(`${MAPS}?labelSelector=${terms(500)}`)).status).toBe(200);
    const long = await up.api.get(`${MAPS}?labelSelector=${terms(20_000)}`);
    expect([400, 414, 431]).toContain(long.status);
    const values = Array.from({ length: 2000 }, (_, index) => `v${index}`).join(',');
    const inSet = await up.api.get(`${MAPS}?labelSelector=${encodeURIComponent(`k in (${values})`)}`);
    expect([200, 400]).toContain(inSet.status);
  });

  test('with headers beyond the bounds', async () => {
    const big = await up.api.get(MAPS, { 'x-big': 'x'.repeat(200_000) });
    expect(big.status).toBe(431);
    const wanted = Array.from({ length: 2000 }, (_, index) => `application/x${index};q=0.${index}`).join(',');
    expect([200, 400, 406]).toContain((await up.api.get(MAPS, { accept: wanted })).status);
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`impersonate-extra-k${index}`, 'v']));
    await refused('GET', MAPS, undefined, 'application/json', { 'impersonate-user': 'x', ...many });
  });
});

describe('definitions', () => {
  let number = 0;
  /** A definition whose spec has this schema, in a group of its own. */
  const definition = (spec: object, more: object = {}) => {
    number += 1;
    const group = `h${number}.hostile.example.com`;
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
    return {
      metadata: { name: `things.${group}` },
      spec: {
        ...{ group, scope: 'Namespaced', names: { plural: 'things', kind: 'Thing' } },
        versions: [{ name: 'v1', served: true, storage: true, schema, ...more }],
      },
    };
  };

  test('whose schema is a trap are refused', async () => {
    let deep: object = { type: 'string' };
    for (let level = 0; level < 200; level += 1) deep = { type: 'object', properties: { a: deep } };
    const rule = (text: string) => ({ type: 'object', 'x-kubernetes-validations': [{ rule: text }] });
    const list = { type: 'array', items: { type: 'array', items: { type: 'array', items: { type: 'string' } } } };
    for (const spec of [
      deep,
      { type: 'string', pattern: '(' },
      { $ref: '#/definitions/x' },
      rule('self.a.b.c('),
      rule('"x".matches("(((((a+)+)+)+)+)+$'),
      { ...list, 'x-kubernetes-validations': [{ rule: 'self.all(' }] },
    ])
      await refused('POST', DEFINITIONS, definition(spec));
  });

  test('whose rules and patterns do not end are refused or aborted', async () => {
    const spec = {
      type: 'object',
      properties: {
        text: { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' },
        list: {
          type: 'array',
          items: { type: 'integer' },
          'x-kubernetes-validations': [
            { rule: 'self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))' },
          ],
        },
      },
    };
    const body = definition(spec);
    const { status, text } = await up.api.post(DEFINITIONS, body);
    expect(status, text).toBeLessThan(500);
    if (status !== 201) return;
    const path = `/apis/${body.spec.group}/v1/namespaces/default/things`;
    await eventually(
      () => up.api.get(path),
      (answer) => answer.status === 200,
    );
    const create = (name: string, wanted: object) => up.api.post(path, { metadata: { name }, spec: wanted });
    const answers = await Promise.all([
      create('pattern', { text: `${'a'.repeat(50_000)}!` }),
      create('rule', { list: Array.from({ length: 2000 }, () => 1) }),
      // Others are served meanwhile.
      up.api.get(`${MAPS}/victim`),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual([422, 422, 200]);
    expect((await up.api.delete(`${DEFINITIONS}/${body.metadata.name}`)).status).toBe(200);
  });

  test('that take names which are taken do not take them', async () => {
    const taken = definition({ type: 'object' });
    const spec = {
      ...taken.spec,
      group: 'porch.kpt.dev',
      names: { plural: 'packagerevisions', kind: 'PackageRevision' },
    };
    const { status } = await up.api.post(DEFINITIONS, { metadata: { name: 'packagerevisions.porch.kpt.dev' }, spec });
    expect(status).toBeLessThan(500);
    const { body } = await up.api.get('/apis/porch.kpt.dev/v1alpha1/packagerevisions');
    expect(body.kind).toBe('PackageRevisionList');
    const { text } = await up.api.get('/apis/porch.kpt.dev/v1alpha1');
    expect(text).toContain('packagerevisions/approval');
  });
});

test('whatever bytes come at whatever place, the fault is the sender\u2019s', async () => {
  const paths = [
    ...[MAPS, `${MAPS}/fuzzed`, '/api/v1/namespaces/default/secrets', '/api/v1/namespaces/default/events'],
    ...[DEFINITIONS, '/apis/rbac.authorization.k8s.io/v1/clusterroles/fuzzed', '/api/v1/namespaces'],
    '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions',
    '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisionresources/x',
    '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    '/apis/authentication.k8s.io/v1/tokenreviews',
  ];
  const types = ['application/json', YAML, PROTOBUF, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH];
  const json = fc.json({ maxDepth: 6 });
  const object = fc
    .record(
      {
        apiVersion: fc.constantFrom('v1', 'x/v1', ''),
        metadata: fc.oneof(
          fc.object({ maxDepth: 3 }),
          fc.record({ name: fc.string(), labels: fc.dictionary(fc.string(), fc.string()) }),
        ),
        spec: fc.anything({ maxDepth: 4 }),
        data: fc.anything({ maxDepth: 3 }),
        rules: fc.anything({ maxDepth: 3 }),
      },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify(value, (_key, inner) => (typeof inner === 'bigint' ? String(inner) : inner)));
  const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
  const prefixed = bytes.map((tail) => Buffer.concat([Buffer.from('k8s\0'), tail]));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('POST', 'PUT', 'PATCH', 'DELETE'),
      fc.constantFrom(...paths),
      fc.constantFrom(...types),
      fc.oneof(json, object, bytes, prefixed),
      fc.constantFrom('', '?fieldManager=f', '?fieldValidation=Strict', '?dryRun=All&fieldManager=f&force=true'),
      async (method, path, type, body, query) => {
        // A deletion of everything would take the objects of the other tests.
        const target = method === 'DELETE' && !path.endsWith('/fuzzed') ? `${path}/fuzzed` : path;
        const answer = await up.api.send(method, `${target}${query}`, { body, headers: { 'content-type': type } });
        expect(answer.status, answer.text).toBeLessThan(500);
      },
    ),
    { numRuns: runs(1500), interruptAfterTimeLimit: 60_000 },
  );
});
