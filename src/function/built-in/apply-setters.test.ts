// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how setters are written.
import { expect, test } from 'vitest';
import { applySetters } from './apply-setters.ts';
import { runFunction } from './support/testing.ts';

type Data = Readonly<Record<string, unknown>>;

/** Runs it on a resource of which only `spec` is given. */
async function run(spec: string, data: Data): Promise<{ spec: string; messages: readonly string[] }> {
  const head = 'apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n';
  const { files, messages } = await runFunction(applySetters, head + spec, data);
  return { spec: (files['resources.yaml'] ?? '').slice(head.length), messages };
}

const CASES: [what: string, spec: string, data: Data, expected: string][] = [
  [
    'a field',
    '  app: one # kpt-set: ${app}\n  other: one\n',
    { app: 'two' },
    '  app: two # kpt-set: ${app}\n  other: one\n',
  ],
  [
    'a pattern',
    '  - image: nginx:1.7.9 # kpt-set: ${image}:${tag}\n'.replace('- ', ''),
    { image: 'ubuntu', tag: '1.8.0' },
    '  image: ubuntu:1.8.0 # kpt-set: ${image}:${tag}\n',
  ],
  [
    'a setter without a value keeps its part',
    '  image: nginx:1.7.9 # kpt-set: ${image}:${tag}\n',
    { image: 'ubuntu' },
    '  image: ubuntu:1.7.9 # kpt-set: ${image}:${tag}\n',
  ],
  [
    'several parts are kept',
    '  host: app.dev.example.com # kpt-set: app.${stage}.${domain}.${tld}\n',
    { domain: 'demo', tld: 'io' },
    '  host: app.dev.demo.io # kpt-set: app.${stage}.${domain}.${tld}\n',
  ],
  [
    'any characters in names and values',
    '  a: nginx:1 # kpt-set: ${i-~!@#$%^&*()<>?"|}:${tag}\n',
    { 'i-~!@#$%^&*()<>?"|': 'ubuntu-~!@#$%^&*()<>?"|' },
    '  a: ubuntu-~!@#$%^&*()<>?"|:1 # kpt-set: ${i-~!@#$%^&*()<>?"|}:${tag}\n',
  ],
  ['no setter of the field has a value', '  a: b # kpt-set: ${x}-${y}\n', { z: '1' }, '  a: b # kpt-set: ${x}-${y}\n'],
  ['numbers', '  replicas: 1 # kpt-set: ${n}\n', { n: '3' }, '  replicas: 3 # kpt-set: ${n}\n'],
  ['numbers of the configuration', '  replicas: 1 # kpt-set: ${n}\n', { n: 3 }, '  replicas: 3 # kpt-set: ${n}\n'],
  ['truth values', '  on: false # kpt-set: ${b}\n', { b: 'true' }, '  on: true # kpt-set: ${b}\n'],
  [
    'quotes stay',
    '  a: "1" # kpt-set: ${n}\n  b: \'x\' # kpt-set: ${n}\n',
    { n: '2' },
    '  a: "2" # kpt-set: ${n}\n  b: \'2\' # kpt-set: ${n}\n',
  ],
  ['an empty value is quoted', '  a: x # kpt-set: ${n}\n', { n: '' }, '  a: "" # kpt-set: ${n}\n'],
  ['an empty field', '  a: # kpt-set: ${n}\n  b: 1\n', { n: 'x' }, '  a: x # kpt-set: ${n}\n  b: 1\n'],
  ['what needs quotes gets them', '  a: x # kpt-set: ${n}\n', { n: 'a: #b' }, '  a: "a: #b" # kpt-set: ${n}\n'],
  [
    'a value that looks like a setter',
    '  a: x # kpt-set: ${n}\n',
    { n: '${m}', m: 'y' },
    '  a: ${m} # kpt-set: ${n}\n',
  ],
  ['a setter that occurs twice', '  a: x-x # kpt-set: ${n}-${n}\n', { n: 'y' }, '  a: y-y # kpt-set: ${n}-${n}\n'],
  [
    'items of a list',
    '  args:\n    - --env=dev # kpt-set: --env=${e}\n',
    { e: 'prod' },
    '  args:\n    - --env=prod # kpt-set: --env=${e}\n',
  ],
  [
    'a list',
    '  images: # kpt-set: ${images}\n    - nginx\n    - ubuntu\n  z: 1\n',
    { images: '- ubuntu\n- hbase\n' },
    '  images: # kpt-set: ${images}\n    - ubuntu\n    - hbase\n  z: 1\n',
  ],
  [
    'a list at the margin of its key',
    '  images: # kpt-set: ${images}\n  - nginx\n',
    { images: '[a, b]' },
    '  images: # kpt-set: ${images}\n  - a\n  - b\n',
  ],
  [
    'a list with the same values keeps its comments',
    '  images: # kpt-set: ${images}\n    - nginx # why\n    # and\n    - b\n',
    { images: '[nginx, b]' },
    '  images: # kpt-set: ${images}\n    - nginx # why\n    # and\n    - b\n',
  ],
  ['a list in one line', '  a: [x, y] # kpt-set: ${l}\n', { l: '[y, z]' }, '  a: # kpt-set: ${l}\n    - y\n    - z\n'],
  ['an empty list', '  a: [] # kpt-set: ${l}\n', { l: '- y' }, '  a: # kpt-set: ${l}\n    - y\n'],
  ['a list becomes empty', '  a: # kpt-set: ${l}\n    - y\n  b: 1\n', { l: '' }, '  a: [] # kpt-set: ${l}\n  b: 1\n'],
  [
    'a list becomes empty by its value',
    '  a: # kpt-set: ${l}\n    - y\n  b: 1\n',
    { l: '[]' },
    '  a: [] # kpt-set: ${l}\n  b: 1\n',
  ],
  [
    'a list of mappings',
    '  a: # kpt-set: ${l}\n    - y\n',
    { l: '- name: x\n  "on": "true"\n' },
    '  a: # kpt-set: ${l}\n    - name: x\n      "on": "true"\n',
  ],
  [
    'other comments',
    '  a: x # set: ${n}\n  # kpt-set: ${n}\n  b: x\n',
    { n: 'y' },
    '  a: x # set: ${n}\n  # kpt-set: ${n}\n  b: x\n',
  ],
  ['a mapping has no setter', '  a: # kpt-set: ${n}\n    b: x\n', { n: 'y' }, '  a: # kpt-set: ${n}\n    b: x\n'],
];

test.each(CASES)('%s', async (_, spec, data, expected) => {
  const first = await run(spec, data);
  expect(first.spec).toBe(expected);
  expect(first.messages.filter((message) => message.startsWith('error'))).toEqual([]);
  expect((await run(first.spec, data)).spec).toBe(expected);
});

const FAILURES: [what: string, spec: string, data: Data, message: string][] = [
  [
    'a value that cannot be kept',
    '  image: other # kpt-set: ${image}:${tag}\n',
    { image: 'ubuntu' },
    'values for setters [${tag}] must be provided: the field does not have the form ${image}:${tag}',
  ],
  [
    'a list with a text',
    '  a: # kpt-set: ${l}\n    - y\n',
    { l: 'ubuntu' },
    'input to array setter must be an array of values, but found "ubuntu"',
  ],
  [
    'a list with what is no YAML',
    '  a: # kpt-set: ${l}\n    - y\n',
    { l: '[a' },
    'input to array setter must be an array of values, but found "[a"',
  ],
  [
    'a list with a pattern',
    '  a: # kpt-set: ${l}:${m}\n    - y\n',
    { l: '[a]' },
    'invalid setter pattern for array node: "${l}:${m}": a list takes one setter',
  ],
];

test.each(FAILURES)('fails: %s', async (_, spec, data, message) => {
  const result = await run(spec, data);
  expect(result.messages).toEqual([`error: ${message}`]);
  expect(result.spec).toBe(spec);
});

test('reports what it set, where, and unused setters', async () => {
  const { results } = await runFunction(
    applySetters,
    {
      'a.yaml':
        'apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n    - image: a:1 # kpt-set: a:${tag}\n',
    },
    { tag: '2', unused: 'x' },
  );
  expect(results).toEqual([
    {
      severity: 'info',
      message: 'set field value to "a:2"',
      field: { path: 'spec.containers[0].image' },
      file: { path: 'a.yaml', index: 0 },
    },
    expect.objectContaining({ severity: 'info', message: 'no field uses the setter "unused"' }),
  ]);
});

test('values that look like secrets are in no message', async () => {
  const { files, messages } = await runFunction(
    applySetters,
    'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\nstringData:\n  a: x # kpt-set: ${a}\n---\napiVersion: v1\nkind: A\nmetadata:\n  name: a\nspec:\n  b: x # kpt-set: ${db-password}\n',
    { a: 'hunter2', 'db-password': 'hunter3' },
  );
  expect(files['resources.yaml']).toMatch(/hunter2.*hunter3/s);
  expect(messages).toEqual(['info: set field value to (hidden)', 'info: set field value to (hidden)']);
});

test('warns if there is nothing to set', async () => {
  expect((await run('  a: x\n', {})).messages).toEqual(['warning: no matches for input setter(s)']);
  const pod = 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: web # kpt-set: ${a}\n';
  const { files, messages } = await runFunction(applySetters, pod);
  expect(files['resources.yaml']).toBe(pod);
  expect(messages).toEqual(['warning: no matches for input setter(s)']);
});

test('a hostile pattern takes no time', async () => {
  const pattern = `${'${a}x'.repeat(2000)}\${b}`;
  const value = 'x'.repeat(20_000);
  const { messages } = await run(`  a: ${value} # kpt-set: ${pattern}\n`, { b: '1' });
  expect(messages[0]?.slice(0, 40)).toBe('error: values for setters [${a} ${a} ${a');
});

test('a comment in a line of its own above the first item ties nothing', async () => {
  const text = 'apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: a\nlist:\n  # kpt-set: ${list}\n  - one\n';
  const { files, messages } = await runFunction(applySetters, text, { list: '[two]' });
  expect(files['resources.yaml']).toBe(text);
  expect(messages).toEqual(['warning: no matches for input setter(s)', 'info: no field uses the setter "list"']);
});

test('a comment behind the key binds the list, with any lines between', async () => {
  const head = 'apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: a\n';
  const text = `${head}list: # kpt-set: \${list}\n  # of all sites\n  - one\n`;
  const { files } = await runFunction(applySetters, text, { list: '[two]' });
  expect(files['resources.yaml']).toBe(`${head}list: # kpt-set: \${list}\n  # of all sites\n  - two\n`);
});
