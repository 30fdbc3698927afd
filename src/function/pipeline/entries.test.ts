import { expect, test } from 'vitest';
import type { PipelineOutcome } from '../model/pipeline.ts';
import { configMap, kptfile, render, testFunction } from './testing.ts';

// Reports its configuration, as text.
const reportConfig = testFunction('report-config', ({ config, results }) => {
  results.push({ severity: 'info', message: config?.toText() ?? 'none' });
});
const setData = testFunction('set-data', ({ items }) => {
  for (const item of items) if (item.kind === 'ConfigMap') item.set(['data', 'word'], 'later');
});
const removeConfig = testFunction('remove-config', (list) => {
  list.items = list.items.filter(({ name }) => name !== 'config');
});
const scribble = testFunction('scribble', ({ items, config }) => {
  config?.set(['data', 'word'], 'scribbled');
  for (const item of items) item.set(['metadata', 'annotations', 'seen'], String(config?.get(['data', 'word'])));
});
const functions = [reportConfig, setData, removeConfig, scribble];

function run(pipeline: string, files: Readonly<Record<string, string>> = {}): Promise<PipelineOutcome> {
  return render({ Kptfile: kptfile(pipeline), ...files }, { functions });
}

const configOf = ({ steps }: PipelineOutcome) => steps.at(-1)?.result.results?.[0]?.message;

test('configMap becomes the ConfigMap function-input, as kpt makes it', async () => {
  const outcome = await run('  mutators:\n    - image: report-config\n      configMap: {a: "1", b: x}\n');
  expect(configOf(outcome)).toBe(
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\ndata:\n  a: "1"\n  b: x\n',
  );
  expect(configOf(await run('  mutators:\n    - image: report-config\n'))).toBe('none');
  expect(configOf(await run('  mutators:\n    - image: report-config\n      configMap: {}\n'))).toBe('none');
});

test('configPath names a file of the package, as earlier functions left it', async () => {
  const config = configMap('config', 'data: {word: first}\n');
  const entry = (image: string, path: string) => `    - image: ${image}\n      configPath: ${path}\n`;
  const files = { 'in/config.yaml': config };
  expect(configOf(await run(`  mutators:\n${entry('report-config', './in/config.yaml')}`, files))).toBe(config);
  const later = await run(`  mutators:\n    - image: set-data\n${entry('report-config', 'in/config.yaml')}`, files);
  expect(configOf(later)).toContain('word: later');
  const removed = await run(
    `  mutators:\n    - image: remove-config\n${entry('report-config', 'in/config.yaml')}`,
    files,
  );
  expect(configOf(removed)).toBe(config);
  expect(removed.edits.get('in/config.yaml')).toBeNull();
});

test('configPath is below the folder of the package that names the function', async () => {
  const outcome = await render(
    {
      Kptfile: kptfile('  mutators: []\n'),
      'config.yaml': configMap('outer'),
      'a/Kptfile': kptfile('  mutators:\n    - image: report-config\n      configPath: config.yaml\n'),
      'a/config.yaml': configMap('inner'),
    },
    { functions },
  );
  expect(configOf(outcome)).toBe(configMap('inner'));
});

test('configRef names one resource of the package by kind and name, and where needed by more', async () => {
  const files = {
    'a.yaml': configMap('config', '  namespace: one\n'),
    'b.yaml': configMap('config', '  namespace: two\n'),
    'c/Kptfile': kptfile(''),
    'c/config.yaml': configMap('nested'),
  };
  const withRef = (ref: string) => run(`  mutators:\n    - image: report-config\n      configRef: ${ref}\n`, files);
  expect(configOf(await withRef('{kind: ConfigMap, name: config, namespace: two}'))).toContain('namespace: two');
  expect((await withRef('{kind: ConfigMap, name: config}')).failure).toContain('the package has 2 such resources');
  expect((await withRef('{kind: ConfigMap, name: nested}')).failure).toContain('the package has no such resource');
  expect((await withRef('{kind: ConfigMap, name: config, namespace: two, apiVersion: v2}')).failure).toContain(
    'no such',
  );
  expect((await withRef('{name: config}')).failure).toContain('configRef needs a kind and a name');
});

test('a function that writes into its configuration changes a copy', async () => {
  const { edits } = await run('  mutators:\n    - image: scribble\n      configPath: config.yaml\n', {
    'config.yaml': configMap('config', 'data:\n  word: mine\n'),
  });
  expect(edits.get('config.yaml')).toBe(
    configMap('config', '  annotations:\n    seen: scribbled\ndata:\n  word: mine\n'),
  );
});

const INVALID: readonly [entry: string, message: string][] = [
  ['{image: report-config, exec: ./run}', 'it has both image and exec'],
  ['{name: nothing}', 'it has neither image nor exec'],
  ['{image: "set namespace"}', 'is not a valid name'],
  [
    '{image: report-config, configMap: {a: b}, configPath: a.yaml}',
    'more than one of configPath, configMap and configRef',
  ],
  ['{image: report-config, configPath: " "}', 'configPath is empty'],
  ['{image: report-config, configPath: /etc/passwd}', 'must be a path below the folder of the package'],
  ['{image: report-config, configPath: a/../../b.yaml}', 'must be a path below the folder of the package'],
  ['{image: report-config, configPath: missing.yaml}', 'the package has no such file with a resource'],
  ['{image: report-config, configPath: nested/config.yaml}', 'one of a nested package does not count'],
  ['{image: report-config, configPath: two.yaml}', 'the file must contain exactly one resource, but contains 2'],
  ['{image: report-config, configPath: text.txt}', 'the package has no such file'],
  ['{image: report-config, when: "resources.size() >"}', 'expression'],
  ['{image: report-config, when: "items.size() > 0"}', 'items is not known'],
  ['{image: report-config, condition: "false"}', 'its field "condition" is unknown'],
  ['{image: report-config, selectors: [{kind: A}, {kinds: [A]}]}', 'selectors[1]: the field "kinds" is unknown'],
  ['{image: report-config, exclude: [{regex: A}]}', 'exclude[0]: the field "regex" is unknown'],
];

test.each(INVALID)('an entry %s is refused before anything runs', async (entry, message) => {
  const { edits, steps, failure } = await run(`  mutators:\n    - image: set-data\n  validators:\n    - ${entry}\n`, {
    'two.yaml': `${configMap('a')}---\n${configMap('b')}`,
    'text.txt': configMap('a'),
    'nested/Kptfile': kptfile(''),
    'nested/config.yaml': configMap('a'),
  });
  expect(failure).toMatch(/^Kptfile: pipeline\.validators\[0\], function "/);
  expect(failure).toContain(message);
  expect(failure).not.toContain('\n');
  expect(steps.map(({ list, result }) => [list, result.exitCode])).toEqual([['validators', 1]]);
  expect(edits.size).toBe(0);
});
