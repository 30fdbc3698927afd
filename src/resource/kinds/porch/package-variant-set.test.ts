import { readFileSync } from 'node:fs';
import { loadAll } from 'js-yaml';
import { expect, test } from 'vitest';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { InvalidObjectDetails } from '../../object/invalid-object.ts';
import { packageVariantSetKind } from './package-variant-set.ts';

const upstream = { repo: 'blueprints', package: 'web' };

function causes(...targets: object[]): string[] {
  try {
    packageVariantSetKind.parse({ metadata: { name: 'fleet' }, spec: { upstream, targets } });
    return [];
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return (error.details as InvalidObjectDetails).causes.map(({ field, message }) => `${field}: ${message}`);
  }
}
const template = (part: object) => causes({ repositories: [{ name: 'edge' }], template: part });

test('every field of Porch is kept', () => {
  const map = [
    { key: 'a', valueExpr: 'target.repo' },
    { keyExpr: "'b'", value: 'c' },
  ];
  const functions = [{ image: 'a:v1', name: 'f', configMap: { d: 'e' }, configMapExprs: map }];
  const spec = {
    upstream: { ...upstream, revision: 1, workspaceName: 'w1' },
    targets: [
      {
        repositories: [{ name: 'edge', packageNames: ['a', 'b/c'] }],
        template: {
          ...{ downstream: { repoExpr: 'repoDefault', packageExpr: "repository.labels['x'] + packageDefault" } },
          ...{ adoptionPolicy: 'adoptExisting', deletionPolicy: 'orphan' },
          ...{ labels: { a: 'b' }, labelExprs: map, annotations: { a: 'b' }, annotationExprs: map },
          packageContext: { data: { a: 'b' }, dataExprs: map, removeKeys: ['c'], removeKeyExprs: ['upstream.name'] },
          pipeline: { mutators: functions, validators: functions },
          injectors: [{ group: 'g', version: 'v1', kind: 'K', name: 'n' }, { nameExpr: 'target.package' }],
        },
      },
      { repositorySelector: { matchLabels: { a: 'b' } } },
      {
        objectSelector: {
          ...{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', matchLabels: { a: 'b' } },
          matchExpressions: [{ key: 'a', operator: 'Exists' }],
        },
        template: { downstream: { repo: 'edge', package: 'web' } },
      },
    ],
  };
  expect(packageVariantSetKind.parse({ metadata: { name: 'fleet' }, spec })).toMatchObject({
    unknownFields: [],
    object: { spec: { ...spec, maxTargets: 1000 } },
  });
});

test('expressions are compiled, and errors have a field, a line and a column', () => {
  expect(template({ downstream: { packageExpr: 'target.name\n  target' } })[0]).toMatch(
    /^spec\.targets\[0\]\.template\.downstream\.packageExpr: .*, line 2, column 3: /,
  );
  expect(
    template({ pipeline: { mutators: [{ configMapExprs: [{ key: 'a', valueExpr: 'cluster.name' }] }] } })[0],
  ).toMatch(
    /^spec\.targets\[0\]\.template\.pipeline\.mutators\[0\]\.configMapExprs\[0\]\.valueExpr: .*line 1, column 1: .*cluster/,
  );
  // The repository is not known before its expression was evaluated.
  expect(template({ downstream: { repoExpr: 'repository.name' } })[0]).toContain('repoExpr');
  expect(template({ packageContext: { removeKeyExprs: ["'a'", '('] } })[0]).toContain('removeKeyExprs[1]');
  expect(template({ injectors: [{ nameExpr: 'target..name' }] })[0]).toContain('injectors[0].nameExpr');
});

test('wrong types, unknown fields and unknown functions are found before there is a target', () => {
  const value = (valueExpr: string) => template({ labelExprs: [{ key: 'a', valueExpr }] })[0];
  const at = 'spec.targets[0].template.labelExprs[0].valueExpr';
  expect(value('repoDefault + 1')).toMatch(
    /labelExprs\[0\]\.valueExpr: .*line 1, column 12: found no matching overload/,
  );
  expect(value('upstream.nme')).toMatch(/line 1, column 9: field not found: nme/);
  expect(value('upstream.name.split(1)')).toContain('unbound function: split');
  expect(value('size(target.repo)')).toContain(`${at}: `);
  expect(value('size(target.repo)')).toContain('line 1, column 1: gives int, expected a text');
  expect(value('upstream.labels')).toContain('gives map, expected a text');
  // A repository that the set names has no labels; the objects of a selector have.
  expect(value('target.labels.site')).toContain('field not found: labels');
  const selected = { labelExprs: [{ key: 'a', valueExpr: 'target.labels.site' }] };
  expect(causes({ repositorySelector: {}, template: selected })).toEqual([]);
  // Also in branches that the evaluation for an example does not reach.
  expect(value("repoDefault == 'x' ? upstream.nme : 'b'")).toMatch(
    /line 1, column 30: field not found: nme; known are name,/,
  );
  expect(value("has(upstream.labels.a) ? 'a' : upstream.name.split(1)")).toMatch(/column 45: unbound function: split/);
  expect(value("repoDefault != '' || packageDefault > 1 ? 'a' : 'b'")).toMatch(/column 36: found no matching overload/);
  expect(value("repoDefault == 'x' ? size(repoDefault) : 'b'")).toContain('gives int, expected a text');
  expect(value("repoDefault == 'x' || 'a'.matches('(') ? 'a' : 'b'")).toContain('pattern');
  // What depends on the values may be right.
  for (const right of [
    "repository.labels['site-' + target.repo]",
    "has(upstream.annotations.a) ? upstream.annotations.a : 'b'",
    "repository.labels['example.com/site']",
    'string(int(upstream.name))',
    "has(target.labels) ? target.labels.site : 'a'",
  ])
    expect(value(right)).toBeUndefined();
});

test('a label whose key looks like an expression is none, and all expressions together are bounded', () => {
  expect(template({ annotations: { someExpr: 'not ( CEL' }, packageContext: { data: { aExpr: '((' } } })).toEqual([]);
  const long = Array.from({ length: 10 }, (_, index) => ({ key: `k${index}`, valueExpr: `'${'x'.repeat(4000)}'` }));
  expect(template({ labelExprs: long })[0]).toContain('expressions may have at most 32768 characters together');
});

test('targets and alternatives that exclude each other are refused at their field', () => {
  const one = 'must specify exactly one of repositories, repositorySelector and objectSelector';
  expect(causes({})[0]).toMatch(new RegExp(`^spec\\.targets\\[0\\]: .*${one}$`));
  expect(causes({ repositorySelector: {}, objectSelector: { apiVersion: 'v1', kind: 'A' } })[0]).toContain(one);
  expect(causes({ repositories: [{ name: 'a', packageNames: [''] }] })[0]).toContain('repositories[0].packageNames[0]');
  expect(causes({ repositories: [{ name: 'a', packageNames: ['b', 'c/../d'] }] })[0]).toMatch(
    /^spec\.targets\[0\]\.repositories\[0\]\.packageNames\[1\]: Invalid value: "c\/\.\.\/d": segment "\.\." must be lower case/,
  );
  expect(template({ downstream: { package: '/web' } })[0]).toContain('template.downstream.package: Invalid value');
  expect(causes({ repositorySelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } })[0]).toContain(
    'spec.targets[0].repositorySelector',
  );
  expect(template({ annotationExprs: [{ key: 'a', value: 'b', valueExpr: "'c'" }] })[0]).toMatch(
    /^spec\.targets\[0\]\.template\.annotationExprs\[0\]: .*may specify only one of value and valueExpr$/,
  );
  expect(template({ injectors: [{ kind: 'A' }] })[0]).toContain('must specify either name or nameExpr');
});

test('the example is valid', () => {
  const file = new URL('../../../../examples/package-variant-sets/fleet.yaml', import.meta.url);
  const set = (loadAll(readFileSync(file, 'utf8')) as { kind: string }[]).find(
    ({ kind }) => kind === 'PackageVariantSet',
  );
  expect(packageVariantSetKind.parse(set).unknownFields).toEqual([]);
});
