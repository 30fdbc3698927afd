import { describe, expect, test } from 'vitest';
import { type LintCode, lintKptfile, newKptfile } from '../index.ts';

const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\n';

function pipeline(entry: string): string {
  return `${HEAD}pipeline:\n  mutators:\n    - ${entry}\n`;
}

describe('lintKptfile', () => {
  const cases: readonly (readonly ['error' | 'warning', LintCode, string, string, string])[] = [
    ['error', 'UnknownField', '6:3', 'pipeline.mutator', `${HEAD}pipeline:\n  mutator: []\n`],
    ['error', 'UnknownField', '5:1', 'description', `${HEAD}description: x\n`],
    ['error', 'UnknownField', '5:3', 'metadata.creationTimestamp', `${HEAD}  creationTimestamp: null\n`],
    ['warning', 'NewerField', '8:7', 'pipeline.mutators[0].when', pipeline('image: a\n      when: "true"')],
    ['error', 'FunctionSource', '7:7', 'pipeline.mutators[0]', pipeline('name: a')],
    ['error', 'FunctionSource', '7:7', 'pipeline.mutators[0]', pipeline('image: a\n      exec: b')],
    ['error', 'Image', '7:7', 'pipeline.mutators[0].image', pipeline('image: pull example.com/a:v1')],
    ['error', 'Image', '7:7', 'pipeline.mutators[0].image', pipeline('image: example.com/UPPER:v1')],
    [
      'error',
      'FunctionConfig',
      '7:7',
      'pipeline.mutators[0]',
      pipeline('image: a\n      configPath: b\n      configMap: {c: d}'),
    ],
    ['error', 'ConfigPath', '8:7', 'pipeline.mutators[0].configPath', pipeline('image: a\n      configPath: ""')],
    [
      'error',
      'ConfigPath',
      '8:7',
      'pipeline.mutators[0].configPath',
      pipeline('image: a\n      configPath: /etc/passwd'),
    ],
    [
      'error',
      'ConfigPath',
      '8:7',
      'pipeline.mutators[0].configPath',
      pipeline('image: a\n      configPath: b/../../c'),
    ],
    ['error', 'Inventory', '5:1', 'inventory.inventoryID', `${HEAD}inventory: {namespace: a, name: b}\n`],
    ['warning', 'NotText', '5:12', 'metadata.labels.a', `${HEAD}  labels: {a: 80}\n`],
    ['warning', 'MissingName', '1:1', 'metadata', 'apiVersion: kpt.dev/v1\nkind: Kptfile\n'],
    ['warning', 'UpdateStrategy', '5:12', 'upstream.updateStrategy', `${HEAD}upstream: {updateStrategy: merge}\n`],
    [
      'warning',
      'DuplicateCondition',
      '8:8',
      'status.conditions[1].type',
      `${HEAD}status:\n  conditions:\n    - {type: A, status: "True"}\n    - {type: A, status: "True"}\n`,
    ],
    [
      'warning',
      'ConditionStatus',
      '7:17',
      'status.conditions[0].status',
      `${HEAD}status:\n  conditions:\n    - {type: A, status: maybe}\n`,
    ],
    [
      'warning',
      'ConditionWithoutType',
      '7:7',
      'status.conditions[0]',
      `${HEAD}status:\n  conditions:\n    - {status: "True"}\n`,
    ],
    [
      'warning',
      'ConditionNameDot',
      '7:8',
      'status.conditions[0].type',
      `${HEAD}status:\n  conditions:\n    - {type: req.nephio.org/v1alpha1.Interface.n3.x, status: "True"}\n`,
    ],
    [
      'warning',
      'GateWithoutCondition',
      '7:9',
      'info.readinessGates[0].conditionType',
      `${HEAD}info:\n  readinessGates:\n    - conditionType: A\n`.replace('    - c', '      - c'),
    ],
    [
      'warning',
      'DuplicateGate',
      '8:7',
      'info.readinessGates[1].conditionType',
      `${HEAD}info:\n  readinessGates:\n    - conditionType: A\n    - conditionType: A\nstatus: {conditions: [{type: A, status: "False"}]}\n`,
    ],
    ['warning', 'GateWithoutType', '7:7', 'info.readinessGates[0]', `${HEAD}info:\n  readinessGates:\n    - {}\n`],
    ['error', 'MergeConflict', '5:1', '', `${HEAD}<<<<<<< HEAD\n`],
    ['error', 'TooLarge', '1:1', '', 'x'.repeat(2_000_000)],
  ];
  test.each(cases)('%s %s at %s (%s)', (severity, code, place, path, text) => {
    const findings = lintKptfile(text).map((finding) => ({ ...finding, place: `${finding.line}:${finding.column}` }));
    expect(findings).toMatchObject([{ severity, code, path, place }]);
    expect(findings[0]?.message).toMatch(/\.$|\?$/);
  });

  test('reports nothing for a new Kptfile or one that uses every kind of image reference', () => {
    expect(lintKptfile(newKptfile({ name: 'a' }))).toEqual([]);
    for (const image of [
      'a',
      'set-labels:v0.2',
      'localhost:5000/a/b_c',
      'gcr.io/kpt-fn/a:latest',
      `ghcr.io/a/b:v1@sha256:${'0f'.repeat(32)}`,
    ]) {
      expect(lintKptfile(pipeline(`image: ${image}`)), image).toEqual([]);
    }
  });

  test('suggests a similar field', () => {
    expect(lintKptfile(`${HEAD}pipeline: {mutator: []}\n`)[0]?.message).toContain('Did you mean mutators?');
    expect(lintKptfile(`${HEAD}info: {title: x}\n`)[0]?.message).not.toContain('Did you mean');
  });

  test('findings are in the order of the file', () => {
    const text = `${HEAD}extra: 1\npipeline: {mutators: [{image: "A B"}]}\nother: 2\n`;
    expect(lintKptfile(text).map(({ line }) => line)).toEqual([5, 6, 7]);
  });
});
