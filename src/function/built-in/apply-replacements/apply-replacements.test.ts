import { expect, test } from 'vitest';
import { corpusMissing, corpusPackages } from '../../../../test/support/corpus.ts';
import { skipFor } from '../../../../test/support/skip.ts';
import type { FunctionResult } from '../../model/function-result.ts';
import { readResources } from '../../resource/read-resources.ts';
import { runFunction } from '../support/testing.ts';
import { applyReplacements } from './apply-replacements.ts';
import { type Case, check, config, copy, LIST, run, thing } from './testing.ts';

const FAILURES: Case[] = [
  {
    what: 'a source without the field',
    from: 'a: x\n',
    to: 'b: y\n',
    field: 'c.d',
    paths: ['b'],
    error: 'the field is missing or empty, but replacements[0] of config.yaml: ApplyReplacements copy copies it',
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
    error: 'options.index 1 is out of bounds: the value has 1 part(s)',
  },
  {
    what: 'a part before the first of a source',
    from: 'a: x\n',
    to: 'b: y\n',
    field: 'a',
    paths: ['b'],
    sourceOptions: '{delimiter: /, index: -1}',
    error: 'options.index -1 is out of bounds: the value has 1 part(s)',
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

test.each(FAILURES)('fails: $what', check);

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
      message: 'no resource in the package is kind Th.*, name z',
      field: { path: 'replacements[1].source' },
      ...place,
    },
  ]);
});

test('an error names file, resource and field', async () => {
  const { results } = await run(
    `${thing('from', 'a: x\n')}---\n${thing('to', 'b: y\n')}`,
    copy('a', ['c.d', 'b', 'e']),
  );
  expect(results.map(({ file, resourceRef, field }) => [file?.path, resourceRef?.name, field?.path])).toEqual([
    ['resources.yaml', 'to', 'c.d'],
    ['resources.yaml', 'to', 'e'],
  ]);
});

test('a replacement gets the results of earlier ones', async () => {
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

test('encoding causes a warning', async () => {
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
    'replacements[0]: Invalid value: {"targets":[{"select":{}}]}: set either source or sourceValue',
  ],
  [
    'two sources',
    config('- source: {name: a}\n  sourceValue: 2\n  targets: [{select: {}}]\n'),
    'set either source or sourceValue',
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
    'at most 2000 parts',
  ],
  [
    'a bad label selector',
    config('- source: {name: from}\n  targets: [{select: {labelSelector: "a in ("}}]\n'),
    'replacements[0].targets[0].select.labelSelector: ',
  ],
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

test('the replacements of real packages find what they name', skipFor(corpusMissing), async () => {
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
