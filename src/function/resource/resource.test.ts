import { expect, test } from 'vitest';
import { createNode, plainValue } from '../yaml/node-value.ts';
import { Resource } from './resource.ts';

const place = { file: 'a.yaml', index: 0 };

function parse(text: string): Resource {
  return Resource.parse(text, place);
}

test('the identity of a resource', () => {
  const resource = parse(
    'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n  labels: {a: b}\n  annotations:\n    config.kubernetes.io/local-config: "true"\n',
  );
  const { apiVersion, group, kind, name, namespace, isLocalConfig } = resource;
  expect({ apiVersion, group, kind, name, namespace, isLocalConfig }).toEqual({
    apiVersion: 'apps/v1',
    group: 'apps',
    kind: 'Deployment',
    name: 'web',
    namespace: 'shop',
    isLocalConfig: true,
  });
  expect(resource.label('a')).toBe('b');
  expect(resource.describe()).toBe('a.yaml: Deployment shop/web');
  expect(parse('kind: A\n')).toMatchObject({ apiVersion: '', group: '', name: '', namespace: undefined });
});

test.each([
  ['12', 12],
  ['-1.5e3', -1500],
  ['.5', 0.5],
  ['0755', 493],
  ['08', 8],
  ['0x1F', 31],
  ['0o17', 15],
  ['1_000', 1000],
  ['-0', 0],
  ['true', true],
  ['False', false],
  ['~', null],
  ['', null],
  ['"12"', '12'],
  ["'true'", 'true'],
  ['yes', 'yes'],
  ['on', 'on'],
  ['1.2.3', '1.2.3'],
  ['12:30', '12:30'],
  ['1e999', '1e999'],
  ['-', [null]],
  ['!!str 12', '12'],
  ['!!int "12"', 12],
  ['!secret 12', '12'],
  ['|\n  12\n', '12\n'],
])('the value of %j', (text, value) => {
  expect(
    parse(`kind: A\nx: ${text}${text.endsWith('\n') ? '' : '\n'}`.replace('x: -\n', 'x:\n-\n')).get(['x']),
  ).toEqual(value);
});

test.each([
  '',
  '12',
  '0755',
  '1e3',
  'true',
  'yes',
  'null',
  '~',
  '0x1F',
  '-0x1F',
  '.inf',
  '<<',
  '=',
  ' a',
  'a: b',
  '#a',
  '__proto__',
  'a\nb',
])('the text %j is written as a text', (text) => {
  const resource = Resource.from({ kind: 'A', [text]: text, list: [text] });
  const again = parse(resource.toText());
  expect(again.get([text])).toBe(text);
  expect(again.get(['list'])).toEqual([text]);
  expect(plainValue(createNode(text))).toBe(text);
});

test('setting creates missing parents, and keeps existing quotes and comments', () => {
  const resource = parse("kind: A\na: 'x' # about\nb:\nc: {}\n");
  resource.set(['a'], 'y');
  resource.set(['b', 'list', 0, 'name'], 'nn');
  resource.set(['c', 'd'], null);
  expect(resource.toText()).toBe("kind: A\na: 'y' # about\nb:\n  list:\n    - name: nn\nc:\n  d: null\n");
  expect(() => resource.set(['a', 'b'], 1)).toThrow('a.b cannot be set: a cannot contain "b"');
  expect(() => resource.set(['b', 'list', 5], 1)).toThrow(expect.objectContaining({ code: 'InvalidInput' }));
});

test('a new list keeps the comment behind its key', () => {
  const resource = parse('kind: A\nx: # kpt-set: list\n  - a # about a\n  - b\n');
  resource.set(['x'], ['c']);
  expect(resource.toText()).toBe('kind: A\nx: # kpt-set: list\n  - c\n');
});

test('deleting returns whether the field existed', () => {
  const resource = parse('kind: A\na:\n- x\n- y\n');
  expect(resource.delete(['a', 0])).toBe(true);
  expect(resource.delete(['a', 5])).toBe(false);
  expect(resource.delete(['b', 'c'])).toBe(false);
  expect(resource.toText()).toBe('kind: A\na:\n- y\n');
});

test('a copy shares nothing with the original', () => {
  const resource = parse('kind: A\na: {b: c}\n');
  const copy = resource.clone();
  copy.set(['a', 'b'], 'd');
  expect(resource.get(['a', 'b'])).toBe('c');
  expect([resource.isChanged, copy.isChanged]).toEqual([false, true]);
  copy.set(['a', 'b'], 'c');
  expect(copy.isChanged).toBe(false);
});

test('a key __proto__ harms nothing', () => {
  const resource = parse('kind: A\n');
  resource.set(['metadata', '__proto__', 'name'], 'x');
  expect(resource.name).toBe('');
  expect(Object.hasOwn(resource.value.metadata as object, '__proto__')).toBe(true);
  expect(({} as Record<string, unknown>).name).toBeUndefined();
});
