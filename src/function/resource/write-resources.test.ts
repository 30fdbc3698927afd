import { expect, test } from 'vitest';
import { corpusMissing, corpusPackages } from '../../../test/support/corpus.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { readResources } from './read-resources.ts';
import { Resource } from './resource.ts';
import { writeResources } from './write-resources.ts';

/** What becomes of files; `change` gives the resources that are to be written, or changes those that were read. */
function written(files: Record<string, string>, change: (resources: Resource[]) => unknown) {
  const read = readResources(new Map(Object.entries(files)));
  const resources = [...read.resources];
  const after = change(resources);
  return Object.fromEntries(writeResources(read, Array.isArray(after) ? after : resources));
}

/** The text of one file after changes of its first resource. */
function edited(text: string, change: (resource: Resource) => unknown): string | null {
  return written({ 'a.yaml': text }, ([first]) => void change(first as Resource))['a.yaml'] ?? null;
}

const DEPLOYMENT = `# Licence

# The shop.
apiVersion: apps/v1 # stable
kind: Deployment
metadata: # kpt-merge: shop/web
  name: web
  # what finds it
  labels:
    # inside
    app: 'web'
  # end of metadata
spec:
  replicas: 3   # many
  list: # kpt-set: [a, b]
    - a # first
    - "b"
  compact:
  # above
  - name: one
    value: 1
  # above two
  - name: two # two
  nothing:
  nothing2: # yet
  empty: {}
  flow: {a: b, c: [d, e]}
  script: |
    foo
    bar

  # about more
  more: "x"

# end
`;

const lines = (text: string | null) => (text ?? '').split('\n');
const changedLines = (text: string, change: (resource: Resource) => unknown) => {
  const before = lines(text);
  const after = lines(edited(text, change));
  return {
    removed: before.filter((line) => !after.includes(line)),
    added: after.filter((line) => !before.includes(line)),
  };
};

test.each<[string, (resource: Resource) => unknown, string[], string[]]>([
  ['a value', (r) => r.set(['spec', 'replicas'], 5), ['  replicas: 3   # many'], ['  replicas: 5   # many']],
  ['a quoted value', (r) => r.set(['metadata', 'labels', 'app'], 'x'), ["    app: 'web'"], ["    app: 'x'"]],
  ['a text like a number', (r) => r.set(['metadata', 'name'], '12'), ['  name: web'], ['  name: "12"']],
  ['an item', (r) => r.set(['spec', 'list', 0], 'z: #'), ['    - a # first'], ['    - "z: #" # first']],
  ['a new label', (r) => r.set(['metadata', 'labels', 'tier'], 'on'), [], ['    tier: "on"']],
  ['a new mapping', (r) => r.set(['metadata', 'annotations', 'a/b'], 'c'), [], ['  annotations:', '    a/b: c']],
  ['a first value', (r) => r.set(['spec', 'nothing'], 'x'), ['  nothing:'], ['  nothing: x']],
  ['one before a comment', (r) => r.set(['spec', 'nothing2'], 'x'), ['  nothing2: # yet'], ['  nothing2: x # yet']],
  ['a first entry', (r) => r.set(['spec', 'empty', 'a'], 'x'), ['  empty: {}'], ['  empty:', '    a: x']],
  [
    'one in a flow',
    (r) => r.set(['spec', 'flow', 'c', 1], 'x,y'),
    ['  flow: {a: b, c: [d, e]}'],
    ['  flow: {a: b, c: [d, "x,y"]}'],
  ],
  [
    'a new one in a flow',
    (r) => r.set(['spec', 'flow', 'f'], 'x'),
    ['  flow: {a: b, c: [d, e]}'],
    ['  flow: {a: b, c: [d, e], f: x}'],
  ],
  ['a text of lines', (r) => r.set(['spec', 'script'], 'foo\nbaz\n'), ['    bar'], ['    baz']],
  ['an item at the end', (r) => r.set(['spec', 'list', 2], 'c'), [], ['    - c']],
  ['an item of the other style', (r) => r.set(['spec', 'compact', 2], { name: 'three' }), [], ['  - name: three']],
  ['a field behind a dash', (r) => r.set(['spec', 'compact', 1, 'value'], 2), [], ['    value: 2']],
  ['a removed field', (r) => r.delete(['spec', 'more']), ['  # about more', '  more: "x"'], []],
  [
    'a removed first field',
    (r) => r.delete(['spec', 'compact', 0, 'name']),
    ['  - name: one', '    value: 1'],
    ['  - value: 1'],
  ],
  ['a removed item', (r) => r.delete(['spec', 'compact', 1]), ['  # above two', '  - name: two # two'], []],
  ['a removed first item', (r) => r.delete(['spec', 'list', 0]), ['    - a # first'], []],
  [
    'the last of a mapping',
    (r) => r.delete(['metadata', 'labels', 'app']),
    ['  labels:', '    # inside', "    app: 'web'"],
    ['  labels: {} # inside'],
  ],
])('only the lines of %s change', (_what, change, removed, added) => {
  expect(changedLines(DEPLOYMENT, change)).toEqual({ removed, added });
  const windows = DEPLOYMENT.replaceAll('\n', '\r\n');
  const cr = (texts: string[]) => texts.map((line) => `${line}\r`);
  expect(changedLines(windows, change)).toEqual({ removed: cr(removed), added: cr(added) });
});

test('many changes at once', () => {
  const text = edited(DEPLOYMENT, (resource) => {
    resource.set(['metadata', 'namespace'], 'prod');
    resource.delete(['spec', 'list']);
    resource.set(['spec', 'compact', 0, 'value'], '2');
    resource.delete(['spec', 'nothing']);
    resource.set(['spec', 'more'], { deep: ['a', { b: 'c' }] });
  });
  expect(text).toBe(
    DEPLOYMENT.replace('  # end of', '  namespace: prod\n  # end of')
      .replace(/ {2}list:(?:.*\n){3}/, '')
      .replace('value: 1', 'value: "2"')
      .replace('  nothing:\n', '')
      .replace('more: "x"', 'more:\n    deep:\n      - a\n      - b: c'),
  );
});

test('comments change too', () => {
  const added = edited('kind: A\na: 1\nb: x # old\n', (resource) => {
    (resource.node(['a']) as { comment?: string }).comment = ' kpt-set: a';
    (resource.node(['b']) as { comment?: string }).comment = ' new';
  });
  expect(added).toBe('kind: A\na: 1 # kpt-set: a\nb: x # new\n');
  const removed = edited('kind: A\nb: x # old\n', (resource) => {
    delete (resource.node(['b']) as { comment?: string }).comment;
  });
  expect(removed).toBe('kind: A\nb: x\n');
  const list = edited('kind: A\nb:\n- x\n', (resource) => {
    (resource.node(['b']) as { commentBefore?: string }).commentBefore = ' kpt-set: b';
  });
  expect(list).toBe('kind: A\nb: # kpt-set: b\n- x\n');
});

test('fields that change places are written in their new order, and the others stay', () => {
  const text = edited('kind: A\n# about a\na: 1 # one\nb:   2\nc:   3\n', ({ root }) => {
    root.items.push(...root.items.splice(1, 1));
  });
  expect(text).toBe('kind: A\nb:   2\nc:   3\n# about a\na: 1 # one\n');
});

test('comments below the entries of a collection move with it', () => {
  const text = 'kind: A\na:\n  b: c\n  # below b\nd: e\n';
  expect(edited(text, (resource) => resource.delete(['a']))).toBe('kind: A\nd: e\n');
  expect(edited(text, (resource) => resource.delete(['a', 'b']))).toBe('kind: A\na: {} # below b\nd: e\n');
  expect(edited(text, (resource) => resource.set(['a'], 'x'))).toBe('kind: A\na: x\nd: e\n');
  const nested = edited(text.replace('d: e\n', ''), (resource) => resource.set(['f'], 'g'));
  expect(nested).toBe('kind: A\na:\n  b: c\n  # below b\nf: g\n');
});

test('a document with anchors is written without them when it changes', () => {
  expect(
    edited('kind: A\na: &x {b: c}\nd: *x\nf:\n  g: 0\ne: 1   # one\n', (resource) => resource.set(['d', 'b'], 'z')),
  ).toBe('kind: A\na: {b: c}\nd: {b: z}\nf:\n  g: 0\ne: 1   # one\n');
});

test('deep and wide documents change as others do', () => {
  const deep = `kind: A\nx: ${'['.repeat(95)}a${']'.repeat(95)}\ny: 1\n`;
  expect(edited(deep, (resource) => resource.set(['y'], 2))).toBe(deep.replace('y: 1', 'y: 2'));
  const wide = `kind: A\nlist:\n${'- item: x # about\n'.repeat(5000)}`;
  const text = edited(wide, (resource) => {
    resource.delete(['list', 0]);
    resource.set(['list', 4998, 'item'], 'yy');
  });
  expect(text).toBe(`kind: A\nlist:\n${'- item: x # about\n'.repeat(4998)}- item: yy # about\n`);
});

test('texts that the YAML library writes unreadably are written in quotes', () => {
  const flow = edited('{ kind: A, data: x }\n', (resource) => resource.set(['data'], '-\nx'));
  expect(flow).toBe('{ kind: A, data: "-\\nx" }\n');
  const block = edited('kind: A\ndata: x\n', (resource) => resource.set(['data'], ' \n\t\n'));
  expect(block).toBe('kind: A\ndata: "\\ \\n\\t\\n"\n');
  const added = written({}, () => [Resource.from({ kind: 'A', metadata: { name: 'x' }, data: ' \n\t\n' })]);
  expect(added).toEqual({ 'a_x.yaml': 'kind: A\nmetadata:\n  name: x\ndata: "\\ \\n\\t\\n"\n' });
});

test('documents in the format of JSON', () => {
  expect(edited('{"kind": "A", "a": {"b": 1}}\n', (resource) => resource.set(['a', 'b'], 2))).toBe(
    '{"kind": "A", "a": {"b": 2}}\n',
  );
});

const TWO = '# head\n---\nkind: A\n---\n# about B\nkind: B\n---\nvalues: 1\n';

test('removed documents vanish, and a file with the last of them', () => {
  expect(written({ 'a.yaml': TWO }, ([, b]) => [b as Resource])).toEqual({
    'a.yaml': '# head\n---\n# about B\nkind: B\n---\nvalues: 1\n',
  });
  expect(written({ 'a.yaml': TWO }, () => [])).toEqual({ 'a.yaml': '# head\n---\nvalues: 1\n' });
  expect(written({ 'a.yaml': '# head\n---\nkind: A\n---\n', 'b.yaml': 'x: 1\n' }, () => [])).toEqual({
    'a.yaml': null,
  });
});

test('new resources get a file, are appended, or are written to the path of their annotations', () => {
  const a = (index: number) => ({ file: 'a.yaml', index });
  expect(
    written({ 'a.yaml': 'kind: A\n---\nkind: B' }, (resources) => [
      ...resources,
      Resource.from({ kind: 'ClusterRole', metadata: { name: 'system:x/y' } }),
      Resource.from({ kind: 'Service', metadata: { name: 'web', namespace: 'shop' } }),
      Resource.from({ kind: 'C' }, a(0)),
      Resource.from({ kind: 'D' }, a(9)),
      Resource.from({ kind: 'E' }, { file: 'x/new.yaml', index: 3 }),
      Resource.from({ kind: 'F' }, { file: 'x/new.yaml', index: 1 }),
    ]),
  ).toEqual({
    'a.yaml': 'kind: A\n---\nkind: B\n---\nkind: D\n---\nkind: C\n',
    'clusterrole_system_x_y.yaml': 'kind: ClusterRole\nmetadata:\n  name: system:x/y\n',
    'shop/service_web.yaml': 'kind: Service\nmetadata:\n  name: web\n  namespace: shop\n',
    'x/new.yaml': 'kind: F\n---\nkind: E\n',
  });
});

test('resources of one default name share a file', () => {
  const make = (group: string) => Resource.from({ apiVersion: `${group}/v1`, kind: 'A', metadata: { name: 'x' } });
  expect(written({}, () => [make('a'), make('b')])['a_x.yaml']).toMatch(/a\/v1[^-]*---\n.*b\/v1/);
});

test('resources move between files with their text', () => {
  expect(
    written({ 'a.yaml': TWO, 'b.yaml': 'kind: C # c\n' }, (resources) => {
      (resources[0] as Resource).file = 'b.yaml';
      (resources[0] as Resource).index = 1;
    }),
  ).toEqual({
    'a.yaml': '# head\n---\n# about B\nkind: B\n---\nvalues: 1\n',
    'b.yaml': 'kind: C # c\n---\nkind: A\n',
  });
});

test('copies are written like their originals', () => {
  expect(written({ 'a.yaml': TWO }, (resources) => resources.map((one) => one.clone()))).toEqual({});
  const copy = written({ 'a.yaml': 'kind: A\nx:   1\n' }, ([first]) => {
    first?.set(['z'], 1);
    const made = (first as Resource).clone();
    made.set(['z'], 2);
    return [made];
  });
  expect(copy).toEqual({ 'a.yaml': 'kind: A\nx:   1\nz: 2\n' });
});

test.each([
  ['../x.yaml', '"." or ".."'],
  ['/etc/x.yaml', 'empty segment'],
  ['.git/config.yaml', "Git's own folder"],
  ['a/.GIT/x.yaml', "Git's own folder"],
  ['a\\b.yaml', 'backslash'],
  ['run.sh', 'resources go into .yaml'],
  ['dir', 'resources go into .yaml'],
  ['d.yaml', 'there is a folder'],
  ['a.yaml/b.yaml', '"a.yaml" is a file'],
])('a resource with the path %s is refused', (file, message) => {
  const files = { 'a.yaml': 'kind: A\n', 'd.yaml/x.yaml': 'kind: B\n' };
  const add = (resources: Resource[]) => [
    ...resources,
    Resource.from({ kind: 'C', metadata: { name: 'n' } }, { file, index: 0 }),
  ];
  expect(() => written(files, add)).toThrow(
    expect.objectContaining({ code: 'InvalidInput', message: expect.stringMatching(/^C n: /) }),
  );
  expect(() => written(files, add)).toThrow(message);
});

test('two resources that were read cannot share a place', () => {
  const message = 'B : path "a.yaml", index 0 is taken by a.yaml: A';
  expect(() =>
    written({ 'a.yaml': TWO }, ([, b]) => {
      (b as Resource).index = 0;
    }),
  ).toThrow(expect.objectContaining({ code: 'InvalidInput', message: expect.stringContaining(message) }));
});

test('a label on every resource of real packages adds lines and changes none', {
  ...skipFor(corpusMissing),
  timeout: 120_000,
}, () => {
  for (const { files } of corpusPackages()) {
    const read = readResources(new Map([...files].map(([path, data]) => [path, data.toString('utf8')])));
    for (const resource of read.resources) resource.set(['metadata', 'labels', 'added-label'], 'added');
    for (const [path, text] of writeResources(read, read.resources)) {
      const before = (files.get(path) as Buffer).toString('utf8').split('\n');
      const after = new Set((text as string).split('\n'));
      // A mapping that was written as a flow is another line then.
      const lost = before.filter((line) => !after.has(line) && !/[{}]/.test(line));
      expect(lost, path).toEqual([]);
    }
    const again = readResources(
      new Map([...read.files, ...(writeResources(read, read.resources) as Map<string, string>)]),
    );
    expect(again.resources.map(({ value }) => value)).toEqual(read.resources.map(({ value }) => value));
  }
});
