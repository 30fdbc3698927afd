import { expect, test } from 'vitest';
import { DEFAULT_FUNCTION_LIMITS } from '../model/pipeline.ts';
import { readResources } from '../resource/read-resources.ts';
import { Resource } from '../resource/resource.ts';
import { writeResources } from '../resource/write-resources.ts';
import { readResourceList, writeResourceList } from './resource-list-text.ts';
import { sinkPackage, sourcePackage } from './source-package.ts';

const DEPLOYMENT = `# Serves the shop.
apiVersion: apps/v1
kind: Deployment
metadata: # kpt-merge: shop/web
  name: web
  labels: {app: web}
spec:
    replicas: 3 # kpt-set: \${replicas}
    template:
        spec:
            containers:
            - name: web   # the main one
              image: "web:v1"
            - name: side
              image: side:v1
`;

function sendBack(files: Record<string, string>, change: (text: string) => string) {
  const read = readResources(new Map(Object.entries(files)));
  const text = change(writeResourceList({ items: read.resources, config: undefined }));
  const { items, results } = readResourceList(text, { sent: read.resources });
  return { edits: writeResources(read, items), items, results };
}

test('a package as a ResourceList, in the form of kpt', () => {
  const { text, notes } = sourcePackage(
    new Map([
      [
        'f1.yaml',
        'kind: Deployment\nmetadata:\n  name: foo\n  annotations:\n    app: nginx2\nspec:\n  list:\n    - 1 # one\n---\nkind: Service\nmetadata: # kpt-merge: /foo\n  name: foo\n',
      ],
      ['values.yaml', 'a: 1\n'],
    ]),
    Resource.from({ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' } }),
  );
  expect(text).toBe(`apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- kind: Deployment
  metadata:
    name: foo
    annotations:
      app: nginx2
      config.kubernetes.io/index: '0'
      config.kubernetes.io/path: 'f1.yaml'
      internal.config.kubernetes.io/index: '0'
      internal.config.kubernetes.io/path: 'f1.yaml'
      internal.config.kubernetes.io/seqindent: 'wide'
  spec:
    list:
    - 1 # one
- kind: Service
  metadata: # kpt-merge: /foo
    name: foo
    annotations:
      config.kubernetes.io/index: '1'
      config.kubernetes.io/path: 'f1.yaml'
      internal.config.kubernetes.io/index: '1'
      internal.config.kubernetes.io/path: 'f1.yaml'
      internal.config.kubernetes.io/seqindent: 'compact'
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  data:
    a: "1"
`);
  expect(notes).toEqual(['values.yaml:1: not a KRM resource: it has no kind']);
});

test('a function without changes returns its input byte for byte', () => {
  const config = 'kind: A\nmetadata:\n  annotations:\n    config.kubernetes.io/path: kept.yaml\n';
  const files = { 'a/web.yaml': `${DEPLOYMENT}---\nkind: Bare\n`, 'b.yaml': config.replaceAll('\n', '\r\n') };
  expect(sendBack(files, (text) => text).edits).toEqual(new Map());
  // Without comments, and in another order.
  const stripped = sendBack(files, (text) => JSON.stringify(sorted(JSON.parse(JSON.stringify(plainListOf(text))))));
  expect(stripped.edits).toEqual(new Map());
});

function plainListOf(text: string): unknown {
  return Resource.parse(text, { file: 'list', index: 0 }).value;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}

test('a change of a function is a change of that line alone', () => {
  const { edits } = sendBack({ 'web.yaml': DEPLOYMENT }, (text) =>
    text
      .replace('replicas: 3', 'replicas: 5')
      .replace('"web:v1"', 'web:v2')
      .replace(/ *# .*/g, ''),
  );
  expect(edits.get('web.yaml')).toBe(DEPLOYMENT.replace('replicas: 3', 'replicas: 5').replace('"web:v1"', 'web:v2'));
});

test('a removed item of a list takes no comments of others with it', () => {
  const { edits } = sendBack({ 'web.yaml': DEPLOYMENT }, (text) => text.replace(/ *- name: side\n.*\n/, ''));
  expect(edits.get('web.yaml')).toBe(DEPLOYMENT.slice(0, DEPLOYMENT.indexOf('            - name: side')));
});

test('numbers of many digits are distinguished, others are not rewritten', () => {
  const files = { 'a.yaml': 'kind: A\nbig: 12345678901234567890\nsmall: 1.0\n' };
  const { edits } = sendBack(files, (text) => text.replace('01234567890', '01234567891').replace('1.0', '1'));
  expect(edits.get('a.yaml')).toBe('kind: A\nbig: 12345678901234567891\nsmall: 1.0\n');
});

test('resources are added, removed and moved', () => {
  const files = { 'a.yaml': 'kind: A\nmetadata:\n  name: a # one\n---\nkind: B\nmetadata:\n  name: b\n' };
  const { edits } = sendBack(files, (text) => {
    const items = plainListOf(text) as { items: Record<string, unknown>[] };
    const [a] = items.items;
    const annotations = {
      'internal.config.kubernetes.io/path': './x/b.yaml',
      'internal.config.kubernetes.io/index': '0',
    };
    const moved = { ...a, metadata: { name: 'a', annotations } };
    return JSON.stringify({ ...items, items: [moved, { kind: 'C', metadata: { name: 'new' } }] });
  });
  expect(edits).toEqual(
    new Map([
      ['a.yaml', null],
      ['x/b.yaml', 'kind: A\nmetadata:\n  name: a # one\n'],
      ['c_new.yaml', 'kind: C\nmetadata:\n  name: new\n'],
    ]),
  );
});

test('a function that knows the older annotations alone moves resources too', () => {
  const { edits } = sendBack({ 'a.yaml': 'kind: A\n' }, (text) =>
    text.replace("  config.kubernetes.io/path: 'a.yaml'", "  config.kubernetes.io/path: 'b.yaml'"),
  );
  expect([...edits.keys()].sort()).toEqual(['a.yaml', 'b.yaml']);
});

test('comments that a function adds are kept', () => {
  const { edits } = sendBack({ 'a.yaml': 'kind: A\nspec:\n  x: 1\n  list:\n    - a\n' }, (text) =>
    text.replace('x: 1', 'x: 1 # kpt-set: $x').replace('list:', 'list: # kpt-set: $list'),
  );
  expect(edits.get('a.yaml')).toBe('kind: A\nspec:\n  x: 1 # kpt-set: $x\n  list: # kpt-set: $list\n    - a\n');
});

test('results, with what Go leaves empty left out', () => {
  const { results } = sendBack({ 'a.yaml': 'kind: A\n' }, (text) => {
    return `${text}results:
- message: too few
  severity: warning
  resourceRef: {apiVersion: v1, kind: A, name: a, namespace: ""}
  field: {path: spec.replicas, currentValue: 1}
  file: {path: a.yaml, index: 0}
- message: bad
`;
  });
  expect(results).toEqual([
    {
      message: 'too few',
      severity: 'warning',
      resourceRef: { apiVersion: 'v1', kind: 'A', name: 'a' },
      field: { path: 'spec.replicas', currentValue: 1 },
      file: { path: 'a.yaml', index: 0 },
    },
    { message: 'bad', severity: 'error' },
  ]);
});

const HEAD = 'apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n';
const at = (path: string, index = '0') =>
  `- kind: A\n  metadata: {name: x, annotations: {config.kubernetes.io/path: '${path}', config.kubernetes.io/index: '${index}'}}\n`;

test.each([
  ['', 'it printed no ResourceList'],
  ['{', 'not valid YAML'],
  ['kind: ResourceList\n', 'not config.kubernetes.io/v1 ResourceList'],
  ['apiVersion: config.kubernetes.io/v1\nkind: List\n', 'not config.kubernetes.io/v1 ResourceList'],
  [`${HEAD}items: {}\n`, 'its items are not a list'],
  [`${HEAD}items: [a]\n`, 'item 0 is not a resource'],
  [`${HEAD}items:\n- kind: A\n- metadata: {}\n`, 'item 1 is not a resource'],
  [`${HEAD}items:\n- kind: A\n  kind: B\n`, 'occurs twice'],
  [`${HEAD}items:\n${at('a.yaml')}${at('a.yaml')}`, 'same path and the same index 0'],
  [`${HEAD}items:\n${at('../a.yaml')}`, 'refused'],
  [`${HEAD}items:\n${at('/etc/a.yaml')}`, 'refused'],
  [`${HEAD}items:\n${at('.git/a.yaml')}`, 'refused'],
  [`${HEAD}items:\n${at('a.yaml', '-1')}`, 'not a number'],
  [`${HEAD}results: {}\n`, 'results'],
  [`${HEAD}results: [1]\n`, 'results[0]'],
  [`${HEAD}results: [{message: a, severity: fatal}]\n`, 'results[0].severity'],
  [`${HEAD}results: [{message: {}}]\n`, 'results[0].message'],
])('an invalid output of a function is reported: %j', (text, message) => {
  expect(() => readResourceList(text)).toThrow(
    expect.objectContaining({ code: 'InvalidInput', message: expect.stringContaining(message) }),
  );
});

test('older versions of the ResourceList are read', () => {
  for (const version of ['v1alpha1', 'v1beta1', 'v1']) {
    const { items } = readResourceList(
      `apiVersion: config.kubernetes.io/${version}\nkind: ResourceList\nitems:\n- kind: A\n`,
    );
    expect(items.map(({ kind }) => kind)).toEqual(['A']);
  }
});

test('too much output is refused', () => {
  const limits = { ...DEFAULT_FUNCTION_LIMITS, outputBytes: 100, resources: 1 };
  const list = `${HEAD}items: [{kind: A}, {kind: B}]\n`;
  expect(() => readResourceList(list, { limits })).toThrow(expect.objectContaining({ code: 'LimitExceeded' }));
  expect(() => readResourceList(list + '#'.repeat(100), { limits })).toThrow('100 bytes');
});

test('source and sink are each the inverse of the other for what is written as kpt writes it', () => {
  const files = new Map([
    ['Kptfile', 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x\n'],
    ['a/b.yaml', 'kind: A # c\nmetadata: # kpt-merge: /a\n  name: a\n---\nkind: B\nspec:\n  list:\n    - a\n'],
  ]);
  expect(sinkPackage(sourcePackage(files).text)).toEqual(files);
});
