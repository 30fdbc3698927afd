import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { OBJECT_KINDS, PACKAGE_KINDS, SERVER_KINDS } from '../kinds/index.ts';
import { repositoryKind } from '../kinds/porch/repository.ts';
import { defineKind } from './define-kind.ts';
import { structuralSchemaOf } from './schema-of-kind.ts';
import { structuralProblems } from './structural/structural-problems.ts';
import type { StructuralSchema } from './structural/structural-schema.ts';

const KINDS = [...OBJECT_KINDS, ...PACKAGE_KINDS, ...SERVER_KINDS];

function undocumented(schema: StructuralSchema, path: string): string[] {
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
    ...(field.description === undefined ? [`${path}.${name}`] : []),
    ...undocumented(field, `${path}.${name}`),
  ]);
  const { items, additionalProperties } = schema;
  if (items !== undefined) inner.push(...undocumented(items, `${path}[]`));
  if (typeof additionalProperties === 'object') inner.push(...undocumented(additionalProperties, `${path}{}`));
  return inner;
}

describe.each(KINDS.map((kind) => [kind.kind, kind] as const))('%s', (_name, kind) => {
  test('has a structural schema with a text for every field', () => {
    const schema = structuralSchemaOf(kind);
    expect(structuralProblems(schema)).toEqual([]);
    expect(undocumented(schema, kind.kind)).toEqual([]);
    expect(structuralSchemaOf(kind)).toBe(schema);
  });

  test('keeps field owners together with the rest of the metadata', () => {
    const { metadata } = structuralSchemaOf(kind).properties ?? {};
    expect(metadata?.properties?.finalizers?.['x-kubernetes-list-type']).toBe('set');
    expect(metadata?.properties?.ownerReferences?.['x-kubernetes-list-map-keys']).toEqual(['uid']);
    expect(metadata?.properties?.managedFields?.['x-kubernetes-list-type']).toBe('atomic');
  });
});

test('fields that cannot change have a rule', () => {
  const branch = structuralSchemaOf(repositoryKind).properties?.spec?.properties?.git?.properties?.branch;
  expect(branch).toMatchObject({
    default: 'main',
    'x-kubernetes-validations': expect.arrayContaining([
      { rule: 'self == oldSelf', message: 'git.branch is immutable' },
    ]),
  });
});

test('a kind without a structural schema is a defect', () => {
  const names = { group: 'x', version: 'v1', kind: 'U', plural: 'us', description: 'A union.' };
  const union = defineKind({ ...names, spec: z.object({ a: z.union([z.string(), z.boolean()]) }) });
  expect(() => structuralSchemaOf(union)).toThrow('schema of spec.a');
  const keyless = z.array(z.object({ a: z.string().optional() })).meta({
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['a'],
  });
  expect(() => structuralSchemaOf(defineKind({ ...names, spec: z.object({ list: keyless }) }))).toThrow(
    'must be required in the items',
  );
});
