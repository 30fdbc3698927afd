import { expect, test } from 'vitest';
import { corpusMissing, corpusPackages } from '../../../test/support/corpus.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { readResources } from './read-resources.ts';
import { writeResources } from './write-resources.ts';

function read(text: string, file = 'a.yaml') {
  return readResources(new Map([[file, text]]));
}

function placesOf(text: string): string[] {
  return read(text).resources.map(({ kind, file, index }) => `${file} ${index} ${kind}`);
}

test('every document with a kind is a resource, in the order of paths', () => {
  const { resources, notes } = readResources(
    new Map([
      ['b.yml', 'kind: C\n'],
      ['b/Kptfile', 'kind: Kptfile\n'],
      ['README.md', 'kind: no\n'],
      ['a.yaml', '# head\n---\nkind: A\n---\n---\n\n# nothing\n--- # more\nkind: B\n'],
    ]),
  );
  expect(resources.map(({ kind, file, index }) => `${file} ${index} ${kind}`)).toEqual([
    'a.yaml 0 A',
    'a.yaml 1 B',
    'b.yml 0 C',
    'b/Kptfile 0 Kptfile',
  ]);
  expect(notes).toEqual([]);
});

test('what is not a resource is omitted and noted, with its line', () => {
  const { resources, notes } = readResources(
    new Map([
      ['empty.yaml', '\n# nothing\n'],
      ['list.yaml', '- a\n'],
      ['mixed.yaml', 'kind: A\n---\nfoo: 1\n---\nkind: B\n'],
      ['template.yaml', 'kind: A\nmetadata:\n  name: {{ .Values.name }}-x\n'],
      ['broken.yaml', 'kind: A\n---\nkind: B\nx: [\n'],
      ['kind.yaml', 'kind: {a: b}\n'],
    ]),
  );
  expect(resources.map(({ file, index }) => `${file} ${index}`)).toEqual(['mixed.yaml 0', 'mixed.yaml 2']);
  expect(notes).toEqual([
    expect.stringMatching(/^broken\.yaml:\d: not valid YAML: /),
    'kind.yaml:1: not a KRM resource: it has no kind',
    'list.yaml:1: not a KRM resource: it has no kind',
    'mixed.yaml:2: not a KRM resource: it has no kind',
    expect.stringMatching(/^template\.yaml:3: not valid YAML: .*template/),
  ]);
  for (const note of notes) expect(note).not.toContain('\n');
});

test('lists of resources are one resource, as for kpt', () => {
  expect(placesOf('kind: List\napiVersion: v1\nitems:\n- kind: A\n')).toEqual(['a.yaml 0 List']);
});

test('byte order marks, Windows line ends and a missing last line end', () => {
  expect(placesOf('\ufeffkind: A\r\n---\r\nkind: B')).toEqual(['a.yaml 0 A', 'a.yaml 1 B']);
  expect(placesOf('\ufeff---\nkind: A\n')).toEqual(['a.yaml 0 A']);
});

test('a line in a text that looks like a separator does not separate documents', () => {
  expect(placesOf('kind: A\nx: "a\u2028--- b"\ny: |\n  ---\n  kind: B\n')).toEqual(['a.yaml 0 A']);
});

test('aliases become copies', () => {
  const [resource] = read('kind: A\na: &x {b: &y c}\nd: *x\ne:\n  <<: *x\n  f: *y\ng:\n  <<: [*x]\n  b: 1\n').resources;
  expect(resource?.value).toEqual({ kind: 'A', a: { b: 'c' }, d: { b: 'c' }, e: { f: 'c', b: 'c' }, g: { b: 1 } });
  resource?.set(['d', 'b'], 'changed');
  expect(resource?.get(['a', 'b'])).toBe('c');
});

const bomb = `kind: A\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n${[1, 2, 3, 4, 5, 6, 7, 8]
  .map((n) => `a${n}: &a${n} [${`*a${n - 1}, `.repeat(10)}]\n`)
  .join('')}`;

test.each([
  ['kind: A\nmetadata:\n  name: a\n  name: b\n', 'a.yaml:4: the key "name" occurs twice'],
  ['# one\n---\nkind: A\nx: 1\n"x": 2\n', 'a.yaml:5: the key "x" occurs twice'],
  [bomb, 'a.yaml:6: its aliases expand to more than'],
  ['kind: A\nx: &x [*x]\n', 'a.yaml:2: the alias *x'],
  ['kind: A\nx: *y\n', 'a.yaml:2: the alias *y'],
  ['kind: A\n? {a: b}\n: c\n', 'a.yaml:2: a key is not a text'],
  [`kind: A\nx: ${'['.repeat(101)}${']'.repeat(101)}\n`, 'a.yaml:2: it nests deeper than 100 levels'],
])('a resource that functions cannot work on is an error: %#', (text, message) => {
  expect(() => read(text)).toThrow(
    expect.objectContaining({ code: 'InvalidInput', message: expect.stringContaining(message) }),
  );
});

test('what is nested too deep for the parser is noted', () => {
  for (const levels of [5_000, 100_000])
    expect(read(`kind: A\nx: ${'['.repeat(levels)}`).notes).toEqual([
      expect.stringMatching(/^a\.yaml:\d: it is nested too deep$/),
    ]);
});

test('a hundred levels are read', () => {
  expect(read(`kind: A\nx: ${'['.repeat(95)}${']'.repeat(95)}\n`).resources).toHaveLength(1);
});

test('a very large file is left alone', () => {
  const { resources, notes } = read(`kind: A\n${'#'.repeat(5 * 1024 * 1024)}`);
  expect(resources).toEqual([]);
  expect(notes).toEqual([expect.stringContaining('a.yaml: left alone')]);
});

test('a key __proto__ is a key', () => {
  const [resource] = read('kind: A\n__proto__: {kind: B}\nmetadata: {__proto__: {name: x}}\n').resources;
  expect(resource?.kind).toBe('A');
  expect(resource?.name).toBe('');
  expect(Object.getPrototypeOf(resource?.value)).toBe(Object.prototype);
  expect(resource?.get(['__proto__', 'kind'])).toBe('B');
});

test('real packages are read, and written back as they are', { ...skipFor(corpusMissing), timeout: 120_000 }, () => {
  let count = 0;
  for (const { files } of corpusPackages()) {
    const read = readResources(new Map([...files].map(([path, data]) => [path, data.toString('utf8')])));
    expect(writeResources(read, read.resources)).toEqual(new Map());
    count += read.resources.length;
  }
  expect(count).toBeGreaterThan(150);
});
