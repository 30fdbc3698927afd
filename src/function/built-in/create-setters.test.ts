// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how setters are written.
import { expect, test } from 'vitest';
import { createSetters } from './create-setters.ts';
import { runFunction } from './support/testing.ts';

type Data = Readonly<Record<string, unknown>>;

const HEAD = 'apiVersion: v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n';

const CASES: [what: string, spec: string, data: Data, expected: string][] = [
  ['a whole value', '  ns: foo\n', { space: 'foo' }, '  ns: foo # kpt-set: ${space}\n'],
  ['a part', '  name: nginx-deployment\n', { app: 'nginx' }, '  name: nginx-deployment # kpt-set: ${app}-deployment\n'],
  [
    'several parts',
    '  image: nginx:1.7.1\n',
    { image: 'nginx', tag: '1.7.1' },
    '  image: nginx:1.7.1 # kpt-set: ${image}:${tag}\n',
  ],
  ['numbers', '  replicas: 3\n', { n: '3' }, '  replicas: 3 # kpt-set: ${n}\n'],
  [
    'longer values first',
    '  a: nginx-abc-dev\n',
    { image: 'nginx', full: 'nginx-abc' },
    '  a: nginx-abc-dev # kpt-set: ${full}-dev\n',
  ],
  [
    'values that look like names',
    '  a: nginx-x\n',
    { image: 'nginx', name: 'image' },
    '  a: nginx-x # kpt-set: ${image}-x\n',
  ],
  ['another comment gives way', '  a: foo # kpt-set: ${old}\n', { x: 'foo' }, '  a: foo # kpt-set: ${x}\n'],
  [
    'texts of several lines',
    '  a: |\n    foo\n    bar\n  b: foo\n',
    { x: 'foo' },
    '  a: |\n    foo\n    bar\n  b: foo # kpt-set: ${x}\n',
  ],
  ['no value at all', '  a: foo\n', { x: 'foo', empty: '' }, '  a: foo # kpt-set: ${x}\n'],
  [
    'a list',
    '  env:\n    - stage\n    - dev\n',
    { env: '- dev\n- stage\n' },
    '  env: # kpt-set: ${env}\n    - stage\n    - dev\n',
  ],
  [
    'a list in one line',
    '  env: [foo, bar]\n',
    { env: '[foo, bar]' },
    '  env: # kpt-set: ${env}\n    - foo\n    - bar\n',
  ],
  ['an empty list', '  env: []\n', { env: '[]' }, '  env: [] # kpt-set: ${env}\n'],
  [
    'a list and an item',
    '  env: [foo, bar]\n',
    { env: '[foo, bar]', ns: 'foo' },
    '  env: # kpt-set: ${env}\n    - foo # kpt-set: ${ns}\n    - bar\n',
  ],
  [
    'an item of a list in one line',
    '  env: [foo, bar]\n',
    { ns: 'foo' },
    '  env:\n    - foo # kpt-set: ${ns}\n    - bar\n',
  ],
  [
    'another list',
    '  env: [foo, bar]\n  a: x\n',
    { env: '[foo, bar, pro]', b: 'x' },
    '  env: [foo, bar]\n  a: x # kpt-set: ${b}\n',
  ],
  [
    'a comment of its own',
    '  env:\n    # why\n    - foo\n',
    { env: '[foo]' },
    '  env: # kpt-set: ${env}\n    # why\n    - foo\n',
  ],
];

test.each(CASES)('%s', async (_, spec, data, expected) => {
  const first = await runFunction(createSetters, HEAD + spec, data);
  expect(first.files['resources.yaml']).toBe(HEAD + expected);
  const again = await runFunction(createSetters, HEAD + expected, data);
  expect(again.files['resources.yaml']).toBe(HEAD + expected);
});

test('reports the setters that it bound', async () => {
  const { results } = await runFunction(createSetters, `${HEAD}  l: [x, {y: nginx}]\n`, { image: 'nginx' });
  expect(results).toMatchObject([
    { severity: 'info', message: 'set comment to "kpt-set: ${image}"', field: { path: 'spec.l[1].y' } },
  ]);
});

test('it is an error if nothing holds a value, and if there are no values', async () => {
  const { files, messages } = await runFunction(createSetters, `${HEAD}  a: x\n`, { b: 'y' });
  expect(messages).toEqual(['error: no matches for the input list of setters']);
  expect(files['resources.yaml']).toBe(`${HEAD}  a: x\n`);
  await expect(runFunction(createSetters, `${HEAD}  a: x\n`, {})).rejects.toMatchObject({ code: 'InvalidInput' });
  await expect(runFunction(createSetters, `${HEAD}  a: x\n`)).rejects.toMatchObject({ code: 'InvalidInput' });
});

test('the Kptfile and the configuration are left alone', async () => {
  const config = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: setters\ndata:\n  app: nginx\n';
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: nginx\n';
  const files = { Kptfile: kptfile, 'config.yaml': config, 'a.yaml': `${HEAD}  a: nginx\n` };
  expect((await runFunction(createSetters, files, config)).files).toEqual({
    ...files,
    'a.yaml': `${HEAD}  a: nginx # kpt-set: \${app}\n`,
  });
});
