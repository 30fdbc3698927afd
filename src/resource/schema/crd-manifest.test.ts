import { readdirSync, readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { customKind } from '../kinds/apiextensions/custom-kind.ts';
import { customResourceDefinitionKind } from '../kinds/apiextensions/custom-resource-definition.ts';
import { crdFiles } from '../kinds/crd-files.ts';
import { OBJECT_KINDS } from '../kinds/index.ts';
import { ipClaimKind } from '../kinds/ipam/ipam.ts';
import { repositoryKind } from '../kinds/porch/repository.ts';
import { deliveryTargetKind } from '../kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../kinds/sluice/package-policy.ts';
import { crdManifest } from './crd-manifest.ts';
import { defineKind } from './define-kind.ts';

const FOLDER = new URL('../../../deploy/crds/', import.meta.url);

test('deploy/crds is current; "npm run crds" regenerates it', () => {
  const files = crdFiles();
  expect(readdirSync(FOLDER).sort()).toEqual([...files.keys()].sort());
  for (const [name, text] of files) expect(readFileSync(new URL(name, FOLDER), 'utf8'), name).toBe(text);
});

describe.each([...crdFiles()].filter(([name]) => name !== 'kustomization.yaml'))('%s', (_name, text) => {
  test('is a definition that we take ourselves, without unknown fields', () => {
    expect(customResourceDefinitionKind.parse(load(text)).unknownFields).toEqual([]);
  });
});

test('names, sub-resources, columns and selectable fields are in the manifest', () => {
  expect(crdManifest(repositoryKind)).toMatchObject({
    metadata: { name: 'repositories.config.porch.kpt.dev' },
    spec: {
      names: { listKind: 'RepositoryList', shortNames: ['repo'], categories: ['kpt', 'all'] },
      scope: 'Namespaced',
      versions: [
        {
          subresources: { status: {} },
          selectableFields: [{ jsonPath: '.spec.type' }, { jsonPath: '.spec.git.repo' }],
          schema: { openAPIV3Schema: { properties: { metadata: { type: 'object' } } } },
        },
      ],
    },
  });
  const plain = defineKind({
    group: 'x.org',
    version: 'v1',
    kind: 'P',
    plural: 'ps',
    description: 'Plain.',
    namespaced: false,
  });
  expect(crdManifest(plain)).toMatchObject({ spec: { scope: 'Cluster', versions: [{ schema: {} }] } });
  expect(JSON.stringify(crdManifest(plain))).not.toMatch(
    /subresources|additionalPrinterColumns|selectableFields|shortNames/,
  );
});

const EXAMPLES = [
  {
    kind: repositoryKind,
    spec: { description: 'x', git: { repo: 'https://example.org/x', directory: 'a' }, sync: { schedule: '@daily' } },
  },
  { kind: deliveryTargetKind, spec: { selector: {}, git: { repo: '/srv/x' } } },
  { kind: packagePolicyKind, spec: { autoPropose: true } },
  { kind: ipClaimKind, spec: { networkInstance: { name: 'vpc' }, kind: 'pool' } },
];
const status = {
  conditions: [
    { type: 'Other', status: 'Unknown' },
    { type: 'Ready', status: 'True', reason: 'Ready' },
  ],
};

describe.each(EXAMPLES)('$kind.kind in a cluster', ({ kind, spec }) => {
  const manifest = crdFiles().get(`${kind.plural}.${kind.group}.yaml`) ?? '';
  const clusterKind = customKind(customResourceDefinitionKind.parse(load(manifest)).object, kind.version);
  const written = { metadata: { name: 'a', creationTimestamp: '2026-01-02T03:04:05Z' }, spec, status };
  const ours = OBJECT_KINDS.find((known) => known === kind)?.parse(written).object;

  test('has the same defaults', () => {
    expect(clusterKind.parse(written)).toEqual({ object: ours, unknownFields: [] });
  });

  test('shows the same cells in the columns that have a path', () => {
    const cells = (columns: typeof clusterKind.printerColumns) =>
      columns.filter((column) => column.jsonPath !== undefined).map(({ name, value }) => [name, value(ours as never)]);
    expect(cells(clusterKind.printerColumns)).toEqual(cells(kind.printerColumns as typeof clusterKind.printerColumns));
  });
});

test('a cluster shows every column', () => {
  const files = crdFiles();
  const inCluster = OBJECT_KINDS.filter(({ group, plural }) => files.has(`${plural}.${group}.yaml`));
  const missing = inCluster.flatMap(({ kind, printerColumns }) =>
    printerColumns.filter(({ jsonPath }) => jsonPath === undefined).map(({ name }) => `${kind} ${name}`),
  );
  expect([inCluster.length > 10, missing]).toEqual([true, []]);
});

test('what cannot change here cannot change in a cluster', () => {
  const manifest = crdFiles().get('repositories.config.porch.kpt.dev.yaml') ?? '';
  const clusterKind = customKind(customResourceDefinitionKind.parse(load(manifest)).object, 'v1alpha1');
  const repository = (repo: string, branch: string) =>
    repositoryKind.complete({ metadata: { name: 'a' }, spec: { git: { repo, branch } } });
  const before = repository('/srv/a', 'main');
  const after = repository('/srv/b', 'next');
  const causes = ['spec.git.repo', 'spec.git.branch'];
  expect(repositoryKind.strategy.validateUpdate(before, after).map(({ field }) => field)).toEqual(causes);
  expect(
    clusterKind.strategy
      .validateUpdate(before, after)
      .map(({ field }) => field)
      .sort(),
  ).toEqual(causes.sort());
  for (const { message } of repositoryKind.strategy.validateUpdate(before, after) ?? [])
    expect(message).toContain('is immutable');
  expect(() => clusterKind.parse({ ...before, metadata: { name: 'a.b' } })).toThrow('the name must be');
});
