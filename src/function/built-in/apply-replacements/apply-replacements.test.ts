import { expect, test } from 'vitest';
import { corpusMissing, corpusPackages } from '../../../../test/support/corpus.ts';
import type { FunctionResult } from '../../function-result.ts';
import { readResources } from '../../resource-list/read-resources.ts';
import { runFunction, type TestRun } from '../support/testing.ts';
import { applyReplacements } from './apply-replacements.ts';

function config(replacements: string): string {
  return `apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata:\n  name: copy\nreplacements:\n${replacements}`;
}

/** Runs it with replacements of which only the list is given. */
function run(resources: string, replacements: string): Promise<TestRun> {
  return runFunction(applyReplacements, resources, config(replacements));
}

function thing(name: string, rest: string, kind = 'Thing'): string {
  return `apiVersion: example.org/v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n${rest}`;
}

/** One replacement from the field of `from` into fields of `to`. */
function copy(field: string, paths: readonly string[], options = '', sourceOptions = ''): string {
  const list = paths.map((path) => `        - ${path}\n`).join('');
  const source = sourceOptions === '' ? '' : `    options: ${sourceOptions}\n`;
  const target = options === '' ? '' : `      options: ${options}\n`;
  return `- source:\n    name: from\n    fieldPath: ${field}\n${source}  targets:\n    - select:\n        name: to\n      fieldPaths:\n${list}${target}`;
}

interface Case {
  readonly what: string;
  readonly from: string;
  readonly to: string;
  readonly field: string;
  readonly paths: readonly string[];
  readonly options?: string;
  readonly sourceOptions?: string;
  /** What the target is then; or the start of the message of an error. */
  readonly expected?: string;
  readonly error?: string;
}

const LIST = 'list:\n  - name: web\n    image: nginx:1\n  - name: db\n    image: pg:2\n';

const CASES: Case[] = [
  { what: 'a field', from: 'a: x\n', to: 'b: y # why\n', field: 'a', paths: ['b'], expected: 'b: x # why\n' },
  { what: 'the name by default', from: '', to: 'b: y\n', field: '""', paths: ['b'], expected: 'b: from\n' },
  {
    what: 'a place in a list',
    from: LIST,
    to: LIST,
    field: 'list.0.image',
    paths: ['list.1.image'],
    expected: LIST.replace('pg:2', 'nginx:1'),
  },
  {
    what: 'an item by a field',
    from: LIST,
    to: LIST,
    field: 'list.[name=db].image',
    paths: ['list.[name=web].image'],
    expected: LIST.replace('nginx:1', 'pg:2'),
  },
  {
    what: 'an item by its value',
    from: 'a: x\n',
    to: 'l: [p, q]\n',
    field: 'a',
    paths: ['l.[=q]'],
    expected: 'l: [p, x]\n',
  },
  {
    what: 'dots in the value of an item',
    from: 'a: x\n',
    to: 'l:\n  - {n: .first, v: 1}\n',
    field: 'a',
    paths: ['l.[n=.first].v'],
    expected: 'l:\n  - {n: .first, v: x}\n',
  },
  {
    what: 'all items that a text is found in',
    from: 'a: x\n',
    to: 'l:\n  - n: web\n    v: 1\n  - n: web-admin\n    v: 2\n  - n: db\n    v: 3\n',
    field: 'a',
    paths: ['l.[n=web].v'],
    expected: 'l:\n  - n: web\n    v: x\n  - n: web-admin\n    v: x\n  - n: db\n    v: 3\n',
  },
  {
    what: 'items by a regular expression',
    from: 'a: x\n',
    to: 'l:\n  - n: web\n    v: 1\n  - n: web-admin\n    v: 2\n',
    field: 'a',
    paths: ['l.[n=^web$].v'],
    expected: 'l:\n  - n: web\n    v: x\n  - n: web-admin\n    v: 2\n',
  },
  {
    what: 'all items',
    from: 'a: x\n',
    to: 'l:\n  - v: 1\n  - w: 1\n  - v: 2\n',
    field: 'a',
    paths: ['l.*.v'],
    expected: 'l:\n  - v: x\n  - w: 1\n  - v: x\n',
  },
  {
    what: 'a key with dots in brackets',
    from: 'm:\n  a.b/c: x\n',
    to: 'm: {d.e/f: 1}\n',
    field: 'm.[a.b/c]',
    paths: ['m.[d.e/f]'],
    expected: 'm: {d.e/f: x}\n',
  },
  {
    what: 'a key without dots in brackets',
    from: 'a: x\n',
    to: 'm: {b: 1}\n',
    field: '"[a]"',
    paths: ['m.[b]'],
    expected: 'm: {b: x}\n',
  },
  {
    what: 'a key with escaped dots',
    from: 'm:\n  a.b: x\n',
    to: 'm: {c.d.e: 1}\n',
    field: 'm.a\\.b',
    paths: ['m.c\\.d\\.e'],
    expected: 'm: {c.d.e: x}\n',
  },
  {
    what: 'a key of digits',
    from: 'm:\n  "8080": x\n',
    to: 'm: {"9": 1}\n',
    field: 'm.8080',
    paths: ['m.9'],
    expected: 'm: {"9": x}\n',
  },
  { what: 'a dot before the path', from: 'a: x\n', to: 'b: y\n', field: '.a', paths: ['.b'], expected: 'b: x\n' },
  {
    what: 'several fields',
    from: 'a: x\n',
    to: 'b: y\nc: z\n',
    field: 'a',
    paths: ['b', 'c'],
    expected: 'b: x\nc: x\n',
  },

  { what: 'a list', from: LIST, to: 'b: {}\n', field: 'list', paths: ['b'], expected: LIST.replace('list:', 'b:') },
  {
    what: 'a mapping',
    from: 'm:\n  a: "1"\n  b:\n    - x\n',
    to: 'b:\n  c: 1\nd: 1\n',
    field: 'm',
    paths: ['b'],
    expected: 'b:\n  a: "1"\n  b:\n    - x\nd: 1\n',
  },
  {
    what: 'a mapping over a text',
    from: 'm:\n  a: 1\n',
    to: 'b: x\n',
    field: 'm',
    paths: ['b'],
    expected: 'b:\n  a: 1\n',
  },
  { what: 'a text over a mapping', from: 'a: x\n', to: 'b:\n  c: 1\n', field: 'a', paths: ['b'], expected: 'b: x\n' },
  {
    what: 'the same list changes nothing',
    from: 'l: [x, y]\n',
    to: 'l:\n  - x # one\n  - y\n',
    field: 'l',
    paths: ['l'],
    expected: 'l:\n  - x # one\n  - y\n',
  },

  { what: 'a number', from: 'a: 8080\n', to: 'b: 80\n', field: 'a', paths: ['b'], expected: 'b: 8080\n' },
  {
    what: 'a number as it is written',
    from: 'a: 1.10\n',
    to: 'b: 0755\n',
    field: 'a',
    paths: ['b'],
    expected: 'b: 1.10\n',
  },
  {
    what: 'a number over a text in quotes',
    from: 'a: 80\n',
    to: 'b: "8080"\n',
    field: 'a',
    paths: ['b'],
    expected: 'b: "80"\n',
  },
  { what: 'a number over a text', from: 'a: 80\n', to: 'b: PORT\n', field: 'a', paths: ['b'], expected: 'b: "80"\n' },
  {
    what: 'a truth value over a text',
    from: 'a: false\n',
    to: 'b: "true"\n',
    field: 'a',
    paths: ['b'],
    expected: 'b: "false"\n',
  },
  {
    what: 'a text of digits over a number',
    from: 'a: "8080"\n',
    to: 'b: 80\n',
    field: 'a',
    paths: ['b'],
    expected: 'b: "8080"\n',
  },
  {
    what: 'a text of digits into nothing',
    from: 'a: "18"\n',
    to: 'm: {}\n',
    field: 'a',
    paths: ['m.b'],
    options: '{create: true}',
    expected: 'm:\n  b: "18"\n',
  },
  {
    what: 'a number into nothing',
    from: 'a: 18\n',
    to: 'm:\n  c: x\n',
    field: 'a',
    paths: ['m.b'],
    options: '{create: true}',
    expected: 'm:\n  c: x\n  b: 18\n',
  },
  { what: 'quotes stay', from: 'a: x\n', to: "b: 'y'\n", field: 'a', paths: ['b'], expected: "b: 'x'\n" },
  {
    what: 'a text of several lines',
    from: 'a: |\n  x\n  y\n',
    to: 'b: z\n',
    field: 'a',
    paths: ['b'],
    expected: 'b: |\n  x\n  y\n',
  },

  {
    what: 'a part into a part',
    from: 'i: nginx:1.7\n',
    to: 'i: pg:1.8\n',
    field: 'i',
    paths: ['i'],
    options: '{delimiter: ":"}',
    sourceOptions: '{delimiter: ":"}',
    expected: 'i: nginx:1.8\n',
  },
  {
    what: 'before the first part',
    from: 'a: my/group\n',
    to: 'b: group/config\n',
    field: 'a',
    paths: ['b'],
    options: '{delimiter: /, index: -1}',
    sourceOptions: '{delimiter: /}',
    expected: 'b: my/group/config\n',
  },
  {
    what: 'behind the last part',
    from: 'a: group/config\n',
    to: 'b: my/group\n',
    field: 'a',
    paths: ['b'],
    options: '{delimiter: /, index: 7}',
    sourceOptions: '{delimiter: /, index: 1}',
    expected: 'b: my/group/config\n',
  },
  {
    what: 'the last part',
    from: 'a: x\n',
    to: 'b: my/group\n',
    field: 'a',
    paths: ['b'],
    options: '{delimiter: /, index: 1}',
    expected: 'b: my/x\n',
  },
  {
    what: 'a number as a part',
    from: 'a: 8080\n',
    to: 'b: host:80\n',
    field: 'a',
    paths: ['b'],
    options: '{delimiter: ":", index: 1}',
    expected: 'b: host:8080\n',
  },
  {
    what: 'a part that looks like a number',
    from: 'a: v:10\n',
    to: 'b: x\n',
    field: 'a',
    paths: ['b'],
    sourceOptions: '{delimiter: ":", index: 1}',
    expected: 'b: "10"\n',
  },

  {
    what: 'makes what is missing',
    from: LIST,
    to: 'x: 1\n',
    field: 'list',
    paths: ['spec.template.list'],
    options: '{create: true}',
    expected: `x: 1\nspec:\n  template:\n    ${LIST.replaceAll('\n', '\n    ').trimEnd()}\n`,
  },
  {
    what: 'makes list items',
    from: 'a: x\n',
    to: 'b: 1\n',
    field: 'a',
    paths: ['tls.0.hosts.0', 'tls.0.secret'],
    options: '{create: true}',
    expected: 'b: 1\ntls:\n  - hosts:\n      - x\n    secret: x\n',
  },
  {
    what: 'makes an item that is selected',
    from: 'a: x\n',
    to: 'l:\n  - name: c\n    env: []\n',
    field: 'a',
    paths: ['l.[name=c].env.[name=HOST].value'],
    options: '{create: true}',
    expected: 'l:\n  - name: c\n    env:\n      - name: HOST\n        value: x\n',
  },
  {
    what: 'makes fields in all items',
    from: 'a: x\n',
    to: 'l:\n  - n: 1\n  - n: 2\n',
    field: 'a',
    paths: ['l.*.m.v'],
    options: '{create: true}',
    expected: 'l:\n  - n: 1\n    m:\n      v: x\n  - n: 2\n    m:\n      v: x\n',
  },
  {
    what: 'makes a field in place of nothing',
    from: 'a: x\n',
    to: 'm:\nb: 1\n',
    field: 'a',
    paths: ['m.c'],
    options: '{create: true}',
    expected: 'm:\n  c: x\nb: 1\n',
  },

  {
    what: 'a source without the field',
    from: 'a: x\n',
    to: 'b: y\n',
    field: 'c.d',
    paths: ['b'],
    error: 'the field is missing or empty, and replacements[0] of config.yaml: ApplyReplacements copy copies it',
  },
  {
    what: 'an empty source',
    from: 'a: {}\n',
    to: 'b: y\n',
    field: 'a',
    paths: ['b'],
    error: 'the field is missing or empty',
  },
  {
    what: 'all items of a source',
    from: 'a: [x]\n',
    to: 'b: y\n',
    field: 'a.*',
    paths: ['b'],
    error: 'the field is missing or empty',
  },
  {
    what: 'a target without the field',
    from: 'a: x\n',
    to: 'b: y\n',
    field: 'a',
    paths: ['c.d'],
    error: 'unable to find the field that replacements[0].targets[0] of config.yaml: ApplyReplacements copy replaces',
  },
  {
    what: 'a place that is not there',
    from: 'a: x\n',
    to: 'l: [1]\n',
    field: 'a',
    paths: ['l.3'],
    error:
      'unable to find the field that replacements[0].targets[0] of config.yaml: ApplyReplacements copy replaces: index 3 specified but only 1 elements found',
  },
  {
    what: 'a place far behind the end',
    from: 'a: x\n',
    to: 'l: [1]\n',
    field: 'a',
    paths: ['l.2'],
    options: '{create: true}',
    error: 'unable to find or create the field',
  },
  {
    what: 'all items of an empty list',
    from: 'a: x\n',
    to: 'l: []\n',
    field: 'a',
    paths: ['l.*.b'],
    options: '{create: true}',
    error: 'unable to find or create the field',
  },
  {
    what: 'a mapping in place of a list',
    from: 'a: x\n',
    to: 'm: {n: 1}\n',
    field: 'a',
    paths: ['m.*'],
    error: 'unable to find the field',
  },
  {
    what: 'a key of a text',
    from: 'a: x\n',
    to: 'm: x\n',
    field: 'a',
    paths: ['m.n'],
    options: '{create: true}',
    error: 'unable to find or create the field',
  },
  {
    what: 'a part that the source does not have',
    from: 'a: x\n',
    to: 'b: y\n',
    field: 'a',
    paths: ['b'],
    sourceOptions: '{delimiter: /, index: 1}',
    error: 'options.index 1 is out of bounds for value x',
  },
  {
    what: 'a part before the first of a source',
    from: 'a: x\n',
    to: 'b: y\n',
    field: 'a',
    paths: ['b'],
    sourceOptions: '{delimiter: /, index: -1}',
    error: 'options.index -1 is out of bounds for value x',
  },
  {
    what: 'a part of a list',
    from: LIST,
    to: 'b: y\n',
    field: 'list',
    paths: ['b'],
    sourceOptions: '{delimiter: /}',
    error: 'delimiter option can only be used with scalar nodes',
  },
  {
    what: 'a list as a part',
    from: LIST,
    to: 'b: y\n',
    field: 'list',
    paths: ['b'],
    options: '{delimiter: /}',
    error: 'delimiter option can only be used with scalar nodes',
  },
];

test.each(CASES)('$what', async ({ from, to, field, paths, options, sourceOptions, expected, error }) => {
  const replacements = copy(field, paths, options, sourceOptions);
  const resources = `${thing('from', from)}---\n${thing('to', to)}`;
  const { files, messages } = await run(resources, replacements);
  const text = files['resources.yaml'] ?? '';
  const [before, after = ''] = text.split('---\n');
  if (error !== undefined) {
    expect(messages).toEqual([expect.stringContaining(`error: ${error}`)]);
    return;
  }
  expect(messages).toEqual([]);
  expect(before).toBe(thing('from', from));
  expect(after).toBe(thing('to', expected ?? ''));
  // An index beyond the end adds a part at every run.
  if (options?.match(/-1|7/)) return;
  expect((await run(text, replacements)).files['resources.yaml']).toBe(text);
});

const SELECTIONS: [select: string, selected: readonly string[]][] = [
  ['select: {}', ['settings', 'a', 'b', 'ab', 'ns']],
  ['select: {kind: Deployment}', ['a', 'b', 'ab']],
  ['select: {kind: Deploy}', []],
  ['select: {kind: "Deploy.*", name: "[ab]"}', ['a', 'b']],
  ['select: {group: apps, version: "v[12]"}', ['a', 'b']],
  ['select: {version: v3}', ['ab']],
  ['select: {namespace: default, kind: Deployment}', ['a', 'ab']],
  ['select: {namespace: two}', ['b']],
  ['select: {labelSelector: "tier in (x,y)"}', ['a', 'b']],
  ['select: {labelSelector: "tier=x", kind: Job}', []],
  ['select: {annotationSelector: "!owner", kind: Deployment}', ['b', 'ab']],
  ['select: {kind: Deployment}\n      reject: [{name: a}, {name: b}]', ['ab']],
  ['select: {kind: Deployment}\n      reject: [{name: a, version: v2}, {}]', ['a', 'b', 'ab']],
  ['select: {kind: Deployment}\n      reject: [{name: "a.*"}]', ['b']],
  ['select: {kind: Deployment}\n      reject: [{labelSelector: tier=y}]', ['a', 'ab']],
  ['select: {kind: Deployment}\n      reject: [{labelSelector: tier, name: b}]', ['a', 'ab']],
  ['select: {name: before}', ['ab']],
  ['select: {name: earlier, kind: CronJob, namespace: old}', ['ab']],
];

test.each(SELECTIONS)('%s', async (select, selected) => {
  const resources = [
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\nvalue: new\nfield: old\n',
    'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  labels: {tier: x}\n  annotations: {owner: me}\nfield: old\n',
    'apiVersion: apps/v2\nkind: Deployment\nmetadata:\n  name: b\n  namespace: two\n  labels: {tier: y}\nfield: old\n',
    'apiVersion: extensions/v3\nkind: Deployment\nmetadata:\n  name: ab\n  annotations:\n    internal.config.kubernetes.io/previousNames: before,earlier\n    internal.config.kubernetes.io/previousKinds: Deployment,CronJob\n    internal.config.kubernetes.io/previousNamespaces: default,old\nfield: old\n',
    'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ns\nfield: old\n',
  ].join('---\n');
  const { files, messages } = await run(
    resources,
    `- source: {kind: ConfigMap, namespace: default, name: settings, fieldPath: value}\n  targets:\n    - ${select}\n      fieldPaths: [field]\n`,
  );
  expect(messages).toEqual([]);
  const changed = (files['resources.yaml'] ?? '').split('---\n').filter((text) => text.includes('field: new'));
  expect(changed.map((text) => /name: (\w+)/.exec(text)?.[1])).toEqual(selected);
});

test('a source that selects nothing, and one that selects several', async () => {
  const resources = `${thing('a', 'x: 1\n')}---\n${thing('b', 'x: 1\n')}`;
  const { results } = await run(
    resources,
    '- source: {kind: Thing}\n  targets: [{select: {name: a}}]\n- source: {kind: "Th.*", name: z}\n  targets: [{select: {name: a}}]\n',
  );
  const place = {
    resourceRef: { apiVersion: 'fn.kpt.dev/v1alpha1', kind: 'ApplyReplacements', name: 'copy' },
    file: { path: 'config.yaml', index: 0 },
  };
  expect(results).toEqual<FunctionResult[]>([
    {
      severity: 'error',
      message: '2 resources are kind Thing: resources.yaml: Thing a, resources.yaml: Thing b; select one',
      field: { path: 'replacements[0].source' },
      ...place,
    },
    {
      severity: 'error',
      message: 'nothing in the package is kind Th.*, name z',
      field: { path: 'replacements[1].source' },
      ...place,
    },
  ]);
});

test('an error says file, resource and field', async () => {
  const { results } = await run(
    `${thing('from', 'a: x\n')}---\n${thing('to', 'b: y\n')}`,
    copy('a', ['c.d', 'b', 'e']),
  );
  expect(results.map(({ file, resourceRef, field }) => [file?.path, resourceRef?.name, field?.path])).toEqual([
    ['resources.yaml', 'to', 'c.d'],
    ['resources.yaml', 'to', 'e'],
  ]);
});

test('a replacement sees what the ones before it did', async () => {
  const resources = `${thing('from', 'a: x\nb: y\nc: z\n')}`;
  const one = (source: string, target: string) =>
    `- source: {name: from, fieldPath: ${source}}\n  targets: [{select: {name: from}, fieldPaths: [${target}]}]\n`;
  const { files } = await run(resources, one('a', 'b') + one('b', 'c'));
  expect(files['resources.yaml']).toBe(thing('from', 'a: x\nb: x\nc: x\n'));
});

test('a value of the configuration', async () => {
  const one = (value: string, field: string) =>
    `- sourceValue: ${value}\n  targets: [{select: {name: to}, fieldPaths: [${field}]}]\n`;
  const { files, messages } = await run(
    thing('to', 'a: x\nb: 1\nc: y\n'),
    one('custom/pg:1.9', 'a') + one('2', 'b') + one('"3"', 'c'),
  );
  expect(messages).toEqual([]);
  expect(files['resources.yaml']).toBe(thing('to', 'a: custom/pg:1.9\nb: 2\nc: "3"\n'));
});

test('a field of a resource may be copied into itself', async () => {
  const { files } = await run(
    thing('from', 'a:\n  b: x\n'),
    '- source: {name: from, fieldPath: a}\n  targets: [{select: {name: from}, fieldPaths: [a.b, a.c], options: {create: true}}]\n',
  );
  expect(files['resources.yaml']).toBe(thing('from', 'a:\n  b:\n    b: x\n  c:\n    b: x\n'));
});

test('a path through __proto__ is a path like others', async () => {
  const resources = `${thing('from', '__proto__:\n  a: x\n')}---\n${thing('to', 'b: y\n')}`;
  const { files } = await run(resources, copy('__proto__.a', ['__proto__.polluted'], '{create: true}'));
  expect(files['resources.yaml']).toContain(thing('to', 'b: y\n__proto__:\n  polluted: x\n'));
  expect(({} as { polluted?: string }).polluted).toBeUndefined();
});

test('encoding is warned of', async () => {
  const resources = `${thing('from', 'a: x\n')}---\n${thing('to', 'b: y\n')}`;
  const { files, messages } = await run(resources, copy('a', ['b'], '{encoding: base64}'));
  expect(messages).toEqual(['warning: encoding has no effect']);
  expect(files['resources.yaml']).toContain('b: x');
});

const BAD: [what: string, config: string | undefined, message: string][] = [
  ['none', undefined, 'apply-replacements needs a configuration'],
  [
    'another kind',
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n',
    'cannot be configured by config.yaml: ConfigMap a',
  ],
  [
    'no source',
    config('- targets: [{select: {}}]\n'),
    'replacements[0]: Invalid value: {"targets":[{"select":{}}]}: give either source or sourceValue',
  ],
  [
    'two sources',
    config('- source: {name: a}\n  sourceValue: 2\n  targets: [{select: {}}]\n'),
    'give either source or sourceValue',
  ],
  ['no targets', config('- source: {name: a}\n'), 'replacements[0].targets: Required value'],
  [
    'no selector',
    config('- source: {name: a}\n  targets: [{fieldPaths: [a]}]\n'),
    'replacements[0].targets[0].select: Required value',
  ],
  [
    'a field with another name',
    config('- source: {name: from}\n  targets: [{select: {}, fieldpaths: [a]}]\n'),
    'fieldpaths',
  ],
  [
    'a bad pattern',
    config('- source: {name: from}\n  targets: [{select: {name: "(a"}}]\n'),
    'replacements[0].targets[0].select.name: error parsing regexp: missing closing )',
  ],
  [
    'a long pattern',
    config(`- source: {name: from}\n  targets: [{select: {name: "${'(a*)*'.repeat(300)}"}}]\n`),
    'at most 1000 characters',
  ],
  ['a bad label selector', config('- source: {name: from}\n  targets: [{select: {labelSelector: "a in ("}}]\n'), ''],
  [
    'a bad pattern in a path',
    config('- source: {name: from}\n  targets: [{select: {}, fieldPaths: ["l.[name=(].x"]}]\n'),
    '[=(]: error parsing regexp',
  ],
];

test.each(BAD)('a bad configuration is thrown: %s', async (_, given, message) => {
  await expect(runFunction(applyReplacements, thing('from', 'l: [{name: x}]\n'), given)).rejects.toMatchObject({
    code: 'InvalidInput',
    message: expect.stringContaining(message),
  });
});

test('a hostile pattern takes no time', async () => {
  const { messages } = await run(
    `${thing('from', 'a: x\n')}---\n${thing('to', `l:\n  - n: ${'a'.repeat(50_000)}\n`)}`,
    copy('a', ['"l.[n=^(a+)+b$].v"']),
  );
  expect(messages).toHaveLength(1);
});

test.skipIf(corpusMissing)('the replacements of real packages find what they name', async () => {
  let count = 0;
  const problems: string[] = [];
  for (const { name, files } of corpusPackages()) {
    const texts = new Map([...files].map(([path, data]) => [path, data.toString('utf8')]));
    const { resources } = readResources(texts);
    for (const replacements of resources.filter(({ kind }) => kind === 'ApplyReplacements')) {
      const folder = replacements.file.slice(0, replacements.file.lastIndexOf('/') + 1);
      const items = resources.filter(({ file }) => file.startsWith(folder)).map((item) => item.clone());
      const results: FunctionResult[] = [];
      await applyReplacements.run({ items, config: replacements, results }, { signal: new AbortController().signal });
      count++;
      for (const { message, resourceRef, field } of results)
        problems.push(`${name}: ${resourceRef?.kind} ${resourceRef?.name} ${field?.path}: ${message}`);
    }
  }
  expect(count).toBeGreaterThan(8);
  expect(problems).toEqual([]);
});
