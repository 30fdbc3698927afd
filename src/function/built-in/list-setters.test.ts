// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how setters are written.
import { expect, test } from 'vitest';
import { listSetters } from './list-setters.ts';
import { runFunction } from './support/testing.ts';

function kptfile(mutators: string): string {
  return `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: test\npipeline:\n  mutators:\n${mutators}`;
}

function thing(spec: string): string {
  return `apiVersion: v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n${spec}`;
}

const SETTERS_FILE =
  'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: setters\ndata:\n  images: |\n    - ubuntu\n    - hbase\n';

const CASES: [what: string, files: Readonly<Record<string, string>>, expected: readonly string[]][] = [
  ['none', { 'a.yaml': thing('  a: x # why\n') }, ['warning: no setters found']],
  [
    'those of the Kptfile are counted',
    {
      Kptfile: kptfile('    - image: x/apply-setters:v0.1\n      configMap:\n        app: my-app\n        foo: bar\n'),
      'a.yaml': thing('  a: my-app # kpt-set: ${app}\n  b: my-app-1 # kpt-set: ${app}-1\n'),
    },
    ['info: Name: app, Value: my-app, Type: string, Count: 2', 'info: Name: foo, Value: bar, Type: string, Count: 0'],
  ],
  [
    'the last value of a setter counts',
    {
      Kptfile: kptfile(
        '    - image: apply-setters\n      configMap: {app: old}\n    - image: set-labels\n      configMap: {x: y}\n    - image: apply-setters:v1\n      configMap: {app: new}\n',
      ),
      'a.yaml': thing('  a: other # kpt-set: ${app}\n'),
    },
    ['info: Name: app, Value: new, Type: string, Count: 1'],
  ],
  [
    'those of a file of the Kptfile',
    {
      Kptfile: kptfile('    - image: apply-setters\n      configPath: setters.yaml\n'),
      'setters.yaml': SETTERS_FILE,
      'a.yaml': thing('  images: # kpt-set: ${images}\n    - x\n'),
    },
    ['info: Name: images, Value: [ubuntu, hbase], Type: list, Count: 1'],
  ],
  [
    'a file that is missing',
    {
      Kptfile: kptfile('    - image: apply-setters\n      configPath: setters.yaml\n'),
      'a.yaml': thing('  a: x # kpt-set: ${a}\n'),
    },
    ['error: the file setters.yaml is not in the package', 'info: Name: a, Value: x, Type: string, Count: 1'],
  ],
  [
    'those of fields only, sorted',
    {
      'a.yaml': thing(
        '  ttl: 300 # kpt-set: ${ttl}\n  name: "MX-300" # kpt-set: ${type}-${ttl}\n  records: # kpt-set: ${records}\n    - b\n    - a\n  none: [] # kpt-set: ${empty}\n  bad: x # kpt-set: ${p}-${q}\n',
      ),
    },
    [
      'info: Name: empty, Value: [], Type: list, Count: 1',
      'info: Name: records, Value: [b, a], Type: list, Count: 1',
      'info: Name: ttl, Value: 300, Type: string, Count: 2',
      'info: Name: type, Value: MX, Type: string, Count: 1',
    ],
  ],
  [
    'a Kptfile of a nested package gives none',
    {
      'sub/Kptfile': kptfile('    - image: apply-setters\n      configMap: {foo: bar}\n'),
      'a.yaml': thing('  a: x # kpt-set: ${a}\n'),
    },
    ['info: Name: a, Value: x, Type: string, Count: 1'],
  ],
];

test.each(CASES)('%s', async (_, files, expected) => {
  const result = await runFunction(listSetters, files);
  expect(result.messages).toEqual(expected);
  expect(result.files).toEqual(files);
});
