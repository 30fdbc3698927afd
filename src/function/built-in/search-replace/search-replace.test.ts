// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how groups and setters are written.
import { expect, test } from 'vitest';
import { runFunction } from '../support/testing.ts';
import { searchReplace } from './search-replace.ts';

type Data = Readonly<Record<string, unknown>>;

const HEAD = 'apiVersion: v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n';

const CASES: [what: string, spec: string, data: Data, expected: string, messages: readonly string[]][] = [
  [
    'finds a value',
    '  replicas: 3\n  foo: 3\n',
    { 'by-value': '3' },
    '  replicas: 3\n  foo: 3\n',
    ['spec.replicas: Matched field value "3"', 'spec.foo: Matched field value "3"'],
  ],
  [
    'replaces a value',
    '  n: 3 # why\n  m: 33\n',
    { 'by-value': '3', 'put-value': '4' },
    '  n: 4 # why\n  m: 33\n',
    ['spec.n: Mutated field value to "4"'],
  ],
  [
    'a number becomes a text',
    '  n: 3\n',
    { 'by-value': '3', 'put-value': 'four' },
    '  n: four\n',
    ['spec.n: Mutated field value to "four"'],
  ],
  [
    'a text becomes a number',
    '  n: four\n',
    { 'by-value': 'four', 'put-value': '4' },
    '  n: 4\n',
    ['spec.n: Mutated field value to "4"'],
  ],
  [
    'quotes stay',
    '  n: "3"\n',
    { 'by-value': '3', 'put-value': '4' },
    '  n: "4"\n',
    ['spec.n: Mutated field value to "\\"4\\""'],
  ],
  [
    'finds by a regular expression',
    '  a: nginx-web\n  b: pg\n',
    { 'by-value-regex': 'nginx-(.*)' },
    '  a: nginx-web\n  b: pg\n',
    ['spec.a: Matched field value "nginx-web"'],
  ],
  [
    'replaces the whole value',
    '  a: my-nginx-web\n',
    { 'by-value-regex': 'nginx', 'put-value': 'x' },
    '  a: x\n',
    ['spec.a: Mutated field value to "x"'],
  ],
  [
    'a regular expression with ends',
    '  a: my-nginx\n',
    { 'by-value-regex': '^nginx$', 'put-value': 'x' },
    '  a: my-nginx\n',
    ['no matches'],
  ],
  [
    'groups',
    '  a: foo1-dev-bar1-us-east-1-baz1\n',
    {
      'by-value-regex': '(\\w+)-dev-(\\w+)-us-east-1-(\\w+)',
      'put-value': '${1}-prod-${2}-us-central-1-${3}',
      'put-comment': 'kpt-set: ${1}-${env}-${2}-${region}-${3}',
    },
    '  a: foo1-prod-bar1-us-central-1-baz1 # kpt-set: foo1-${env}-bar1-${region}-baz1\n',
    ['spec.a: Mutated field value to "foo1-prod-bar1-us-central-1-baz1 # kpt-set: foo1-${env}-bar1-${region}-baz1"'],
  ],
  [
    'a group that found nothing',
    '  a: x\n',
    { 'by-value-regex': 'x(y)?', 'put-value': 'z${1}' },
    '  a: z\n',
    ['spec.a: Mutated field value to "z"'],
  ],
  [
    'a group that is not there',
    '  a: x\n',
    { 'by-value-regex': '(x)', 'put-value': '${1}${2}' },
    '  a: x\n',
    ['spec.a: unable to resolve capture groups: by-value-regex has fewer groups than the value refers to'],
  ],
  [
    'groups without a regular expression are texts',
    '  a: x\n',
    { 'by-value': 'x', 'put-value': '${1}' },
    '  a: ${1}\n',
    ['spec.a: Mutated field value to "${1}"'],
  ],
  [
    'finds by path',
    '  replicas: 3\n  foo: 3\n',
    { 'by-path': 'spec.replicas' },
    '  replicas: 3\n  foo: 3\n',
    ['spec.replicas: Matched field value "3"'],
  ],
  [
    'by path and value',
    '  n: 3\n  m: 3\n',
    { 'by-path': 'spec.n', 'by-value': '3', 'put-value': '4' },
    '  n: 4\n  m: 3\n',
    ['spec.n: Mutated field value to "4"'],
  ],
  [
    'by path and another value',
    '  n: 3\n',
    { 'by-path': 'spec.n', 'by-value': '4', 'put-value': '5' },
    '  n: 3\n',
    ['no matches'],
  ],
  [
    'an item',
    '  foo:\n    - a\n    - b\n',
    { 'by-path': 'spec.foo[1]', 'put-value': 'c' },
    '  foo:\n    - a\n    - c\n',
    ['spec.foo[1]: Mutated field value to "c"'],
  ],
  [
    'all items',
    '  foo: [a, b]\n',
    { 'by-path': 'spec.foo[*]' },
    '  foo: [a, b]\n',
    ['spec.foo[0]: Matched field value "a"', 'spec.foo[1]: Matched field value "b"'],
  ],
  [
    'an item that is not there',
    '  foo:\n    - a\n',
    { 'by-path': 'spec.foo[2]', 'put-value': 'c' },
    '  foo:\n    - a\n',
    ['no matches'],
  ],
  [
    'a field of an item',
    '  foo:\n    - c: x\n    - c: y\n',
    { 'by-path': 'spec.foo[1].c', 'put-value': 'z' },
    '  foo:\n    - c: x\n    - c: z\n',
    ['spec.foo[1].c: Mutated field value to "z"'],
  ],
  [
    'any depth',
    '  a:\n    b: {port: 80}\n  port: 80\n',
    { 'by-path': 'spec.**.port', 'by-value': '80', 'put-value': '81' },
    '  a:\n    b: {port: 81}\n  port: 81\n',
    ['spec.a.b.port: Mutated field value to "81"', 'spec.port: Mutated field value to "81"'],
  ],
  [
    'a field that is missing is made',
    '  a: x\n',
    { 'by-path': 'spec.b.c', 'put-value': '4' },
    '  a: x\n  b:\n    c: 4\n',
    ['spec.b.c: Mutated field value to "4"'],
  ],
  [
    'a field that is there keeps quotes and comment',
    '  a: "x" # why\n',
    { 'by-path': 'spec.a', 'put-value': '4' },
    '  a: "4" # why\n',
    ['spec.a: Mutated field value to "\\"4\\""'],
  ],
  [
    'a mapping gives way',
    '  a: {b: c}\n  d: 1\n',
    { 'by-path': 'spec.a', 'put-value': 'x' },
    '  a: x\n  d: 1\n',
    ['spec.a: Mutated field value to "x"'],
  ],
  [
    'a field of a text',
    '  a: x\n',
    { 'by-path': 'spec.a.b', 'put-value': '4' },
    '  a: x\n',
    ['spec.a.b: resources.yaml: Thing a: spec.a.b cannot be set: spec.a cannot contain "b"'],
  ],
  [
    'a comment',
    '  n: 3\n',
    { 'by-value': '3', 'put-comment': 'kpt-set: ${replicas}' },
    '  n: 3 # kpt-set: ${replicas}\n',
    ['spec.n: Mutated field value to "3 # kpt-set: ${replicas}"'],
  ],
  [
    'a comment with a group',
    '  a: p-web\n',
    { 'by-value-regex': 'p-(.*)', 'put-comment': 'kpt-set: ${project}-${1}' },
    '  a: p-web # kpt-set: ${project}-web\n',
    ['spec.a: Mutated field value to "p-web # kpt-set: ${project}-web"'],
  ],
  [
    'a comment of a list',
    '  images:\n    - a\n  b: [a]\n',
    { 'by-path': 'spec.images', 'put-comment': 'kpt-set: ${image}' },
    '  images: # kpt-set: ${image}\n    - a\n  b: [a]\n',
    ['spec.images: Mutated field value to "["a"] # kpt-set: ${image}"'.replaceAll('["a"]', '[\\"a\\"]')],
  ],
  [
    'a comment of a list in one line',
    '  images: [a, b]\n  c: [d]\n',
    { 'by-path': 'spec.images', 'put-comment': 'kpt-set: ${image}' },
    '  images: # kpt-set: ${image}\n    - a\n    - b\n  c: [d]\n',
    ['spec.images: Mutated field value to "[\\"a\\",\\"b\\"] # kpt-set: ${image}"'],
  ],
  [
    'a comment stays in its line',
    '  a: |\n    x\n    y\n  b: 1\n',
    { 'by-value-regex': '((?s)x.*)', 'put-comment': '${1}' },
    '  a: | # x y\n    x\n    y\n  b: 1\n',
    ['spec.a: Mutated field value to "x\\ny\\n # x y"'],
  ],
];

test.each(CASES)('%s', async (_, spec, data, expected, messages) => {
  const { files, results } = await runFunction(searchReplace, HEAD + spec, data);
  expect(results.map(({ field, message }) => (field === undefined ? message : `${field.path}: ${message}`))).toEqual(
    messages,
  );
  expect(files['resources.yaml']).toBe(HEAD + expected);
});

test('only files that a glob names', async () => {
  const files = { 'a.yaml': `${HEAD}  n: 3\n`, 'b/c/a.yaml': `${HEAD}  n: 3\n` };
  const result = await runFunction(searchReplace, files, {
    'by-value': '3',
    'put-value': '4',
    'by-file-path': 'b/**/*.yaml',
  });
  expect(result.files).toEqual({ ...files, 'b/c/a.yaml': `${HEAD}  n: 4\n` });
});

test.each<[data: Data, message: string]>([
  [{ 'by-value': 'a', 'by-value-regex': 'b' }, 'only one of by-value, by-value-regex can be provided'],
  [{}, 'at least one of by-value, by-value-regex, by-path must be provided'],
  [{ 'put-value': 'a' }, 'at least one of by-value, by-value-regex, by-path must be provided'],
  [{ 'by-file': 'a' }, 'invalid matcher "by-file", must be one of by-value, '],
  [{ 'by-value-regex': '(a' }, 'by-value-regex: error parsing regexp: missing closing )'],
  [{ 'by-value-regex': '(?<=a)b' }, 'by-value-regex: error parsing regexp'],
])('a bad configuration is thrown: %s', async (data, message) => {
  await expect(runFunction(searchReplace, `${HEAD}  a: x\n`, data)).rejects.toMatchObject({
    code: 'InvalidInput',
    message: expect.stringContaining(message),
  });
});

test('a hostile pattern takes no time', async () => {
  const spec = `  a: ${'x'.repeat(100_000)}\n`;
  const { messages } = await runFunction(searchReplace, HEAD + spec, {
    'by-value-regex': '^(x+x+)+y$',
    'put-value': '${1}',
  });
  expect(messages).toEqual(['info: no matches']);
});
