import { expect, test } from 'vitest';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { InvalidObjectDetails } from '../../object/invalid-object.ts';
import { packageVariantKind } from './package-variant.ts';

const whole = {
  upstream: { repo: 'blueprints', package: 'web', revision: 3, workspaceName: 'v3' },
  downstream: { repo: 'edge', package: 'shops/web' },
  adoptionPolicy: 'adoptExisting',
  deletionPolicy: 'orphan',
  labels: { tier: 'edge' },
  annotations: { 'approval.nephio.org/policy': 'always' },
  packageContext: { data: { region: 'us' }, removeKeys: ['zone'] },
  pipeline: {
    mutators: [
      {
        ...{ image: 'set-labels:v0.2', name: 'labels', configMap: { a: 'b' } },
        ...{
          selectors: [{ kind: 'Deployment', labels: { a: 'b' } }],
          exclude: [{ name: 'x', annotations: { c: 'd' } }],
        },
      },
    ],
    validators: [{ exec: './check', configPath: 'check.yaml' }],
  },
  injectors: [{ group: 'infra.nephio.org', version: 'v1alpha1', kind: 'WorkloadCluster', name: 'edge-1' }],
} as const;
const object = (spec: object) => ({ metadata: { name: 'web-edge' }, spec });

function causes(spec: object): string[] {
  try {
    packageVariantKind.parse(object(spec));
    return [];
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return (error.details as InvalidObjectDetails).causes.map(({ field, message }) => `${field}: ${message}`);
  }
}

test('every field of Porch is kept, and the policies have its defaults', () => {
  const parsed = packageVariantKind.parse(object(whole));
  expect(parsed).toMatchObject({ unknownFields: [], object: { spec: whole } });
  const { upstream, downstream } = whole;
  expect(packageVariantKind.parse(object({ upstream, downstream })).object.spec).toEqual({
    ...{ upstream, downstream, adoptionPolicy: 'adoptNone', deletionPolicy: 'delete' },
  });
});

test('what the controller could not carry out is refused at its field', () => {
  expect(causes({})).toEqual(['spec.upstream: Required value', 'spec.downstream: Required value']);
  expect(causes({ ...whole, upstream: { repo: 'a' } })).toEqual(['spec.upstream.package: Required value']);
  expect(causes({ ...whole, upstream: { ...whole.upstream, revision: 'v1' } })[0]).toMatch(
    /^spec\.upstream\.revision: /,
  );
  const named = (revision: unknown) => causes({ ...whole, upstream: { ...whole.upstream, revision } })[0];
  expect(named('v4')).toBe(
    'spec.upstream.revision: Invalid value: "v4": must be an integer, as in Porch since 2025 (earlier versions had text); write 4',
  );
  expect(named('v4.0.0')).toContain('write 4, or name the tag in workspaceName: "v4.0.0"');
  expect(named('main')).toContain('write the number of the revision, or name the tag in workspaceName: "main"');
  expect(named(true)).toBe('spec.upstream.revision: Invalid value: true: expected number');
  expect(causes({ ...whole, packageContext: { data: { name: 'x', a: 'b' }, removeKeys: ['package-path'] } })).toEqual([
    expect.stringMatching(/^spec\.packageContext\.data: .*must not contain the key "name"$/),
    expect.stringMatching(/^spec\.packageContext\.removeKeys: .*must not contain the key "package-path"$/),
  ]);
  expect(causes({ ...whole, pipeline: { validators: [{}, { name: 'a.b' }] } })[0]).toMatch(
    /^spec\.pipeline\.validators\[1\]\.name: .*must not contain "\."$/,
  );
  expect(causes({ ...whole, injectors: [{ name: 'a' }, { kind: 'b' }] })).toEqual([
    'spec.injectors[1].name: Required value',
  ]);
  for (const path of ['/web', 'web/', 'a//b', '../web', 'Web', 'a b', `${'x'.repeat(64)}`])
    expect(causes({ ...whole, downstream: { repo: 'edge', package: path } })[0]).toMatch(
      /^spec\.downstream\.package: Invalid value: .*: segment ".*" must be lower case letters/,
    );
  expect(causes({ ...whole, labels: { 'bad key!': 'a', b: 'two words' }, annotations: { 'c d': 'e' } })).toEqual([
    expect.stringMatching(/^spec\.labels\[bad key!\]: Invalid value: .*must be a name, or a DNS name/),
    expect.stringMatching(/^spec\.labels\.b: Invalid value: "two words": must be at most 63 letters/),
    expect.stringMatching(/^spec\.annotations\[c d\]: Invalid value: .*must be a name, or a DNS name/),
  ]);
  // What others pushed may be cloned.
  expect(causes({ ...whole, upstream: { repo: 'a', package: 'Web' } })).toEqual([]);
  // An object of an earlier version can end.
  const ending = { name: 'old', deletionTimestamp: '2026-01-01T00:00:00Z' };
  const spec = { ...whole, downstream: { repo: 'edge', package: 'Web' } };
  expect(packageVariantKind.parse({ metadata: ending, spec }).object.spec).toMatchObject(spec);
  expect(causes({ ...whole, deletionPolicy: 'keep' })[0]).toMatch(/^spec\.deletionPolicy: /);
});
