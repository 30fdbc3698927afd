import { describe, expect, test } from 'vitest';
import { OBJECT_KINDS, PACKAGE_KINDS } from '../../resource/kinds/index.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { wholeObject } from '../../resource/schema/schema-of-kind.ts';
import { widgetKind } from '../../resource/schema/testing.ts';
import { ALL_VERBS } from '../../resource/storage/storage.ts';
import { REVIEWS } from './discovery/reviews.ts';
import { type Served, type ServedVersion, servedGroups } from './discovery/served.ts';
import { openApiV2 } from './openapi/openapi-v2.ts';
import { openApiV3 } from './openapi/openapi-v3.ts';
import { servedForTests } from './testing.ts';

// biome-ignore lint/suspicious/noExplicitAny: documents are read here as clients read them, by path
type Json = any;

function versionsOf(served: Served): ServedVersion[] {
  return servedGroups(served).flatMap((group) => group.versions);
}

function v3Of(group: string, served: Served = servedForTests): Json {
  const version = versionsOf(served).find((candidate) => candidate.group === group) as ServedVersion;
  return JSON.parse(JSON.stringify(openApiV3(version, '1')));
}

/** All references of a document, wherever they stand. */
function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : references(inner),
  );
}

function operationIds(document: { paths: object }): string[] {
  return Object.values(document.paths).flatMap((path: Json) =>
    Object.values(path).flatMap((operation: Json) => operation.operationId ?? []),
  );
}

const widgets = '/apis/test.sluice.dev/v1/namespaces/{namespace}/widgets';

describe('OpenAPI v3', () => {
  test('has the paths of the verbs that are served', () => {
    const { paths } = v3Of('test.sluice.dev');
    const methods = Object.entries(paths).map(([path, item]) => [
      path,
      Object.keys(item as object).filter((key) => key !== 'parameters'),
    ]);
    expect(methods).toEqual([
      ['/apis/test.sluice.dev/v1/widgets', ['get']],
      [widgets, ['get']],
      [`${widgets}/{name}`, ['get', 'patch']],
      [`${widgets}/{name}/status`, ['get', 'put']],
      [`${widgets}/{name}/token`, ['post']],
    ]);
    expect(paths[widgets].parameters.map(({ name }: Json) => name)).toEqual(['namespace', 'pretty']);
    expect(paths[widgets].get['x-kubernetes-action']).toBe('list');
    const { paths: reviews } = v3Of('authorization.k8s.io');
    expect(Object.keys(reviews)).toContain('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews');
    expect(Object.keys(reviews)).toContain(
      '/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews',
    );
  });

  test('a patch operation documents field validation, its kind and its media types', () => {
    const { patch } = v3Of('test.sluice.dev').paths[`${widgets}/{name}`];
    expect(patch['x-kubernetes-group-version-kind']).toEqual({
      group: 'test.sluice.dev',
      version: 'v1',
      kind: 'Widget',
    });
    expect(patch.parameters.map(({ name, in: place }: Json) => `${place} ${name}`)).toEqual([
      'query dryRun',
      'query fieldManager',
      'query fieldValidation',
      'query force',
    ]);
    expect(Object.keys(patch.requestBody.content)).toEqual([
      'application/json-patch+json',
      'application/merge-patch+json',
      'application/apply-patch+yaml',
    ]);
    const core = v3Of('').paths['/api/v1/namespaces/{namespace}/secrets/{name}'].patch;
    expect(Object.keys(core.requestBody.content)).toContain('application/strategic-merge-patch+json');
  });

  test('schemas are found by their kind and share the metadata', () => {
    const { schemas } = v3Of('test.sluice.dev').components;
    expect(schemas['dev.sluice.test.v1.Widget']).toMatchObject({
      type: 'object',
      description: 'Something to test with.',
      properties: {
        metadata: { allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }] },
        spec: { type: 'object', properties: { color: { enum: ['red', 'green', 'blue'] } } },
      },
      'x-kubernetes-group-version-kind': [{ group: 'test.sluice.dev', version: 'v1', kind: 'Widget' }],
    });
    expect(schemas['dev.sluice.test.v1.WidgetList'].properties.items).toMatchObject({
      items: { $ref: '#/components/schemas/dev.sluice.test.v1.Widget' },
    });
    expect(v3Of('').components.schemas).toHaveProperty(['io.k8s.api.core.v1.Secret']);
  });

  test('lists that writers share are described in the words of strategic merge patches', () => {
    const meta = v3Of('').components.schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'].properties;
    expect(meta.ownerReferences).toMatchObject({
      'x-kubernetes-patch-merge-key': 'uid',
      'x-kubernetes-patch-strategy': 'merge',
    });
    expect(meta.finalizers).toMatchObject({ 'x-kubernetes-patch-strategy': 'merge' });
    expect(meta.managedFields).not.toHaveProperty('x-kubernetes-patch-strategy');
  });

  test('a kind of a user cannot take the place of another schema, nor reach a prototype', () => {
    const properties = JSON.parse('{"__proto__": {"type": "string"}, "constructor": {"type": "string"}}');
    const own = {
      ...widgetKind,
      group: 'meta.apis.pkg.apimachinery.k8s.io',
      kind: 'ObjectMeta',
      schema: wholeObject('A trap.', { properties }),
    };
    const served = (kind: Kind): Served => ({ kinds: [{ kind, verbs: ALL_VERBS, subResources: [] }], reviews: [] });
    const { schemas } = v3Of(own.group, served(own)).components;
    expect(schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'].description).not.toBe('A trap.');
    const { schemas: others } = v3Of('x.example', served({ ...own, group: 'x.example' })).components;
    expect(Object.keys(others['example.x.v1.ObjectMeta'].properties)).toEqual([
      ...['apiVersion', 'kind', 'metadata', '__proto__', 'constructor'],
    ]);
  });
});

describe('OpenAPI v2', () => {
  const document: Json = JSON.parse(JSON.stringify(openApiV2(versionsOf(servedForTests), '1')));

  test('has one document for all groups', () => {
    expect(Object.keys(document.paths)).toContain('/api/v1/namespaces/{namespace}/secrets');
    const { patch } = document.paths[`${widgets}/{name}`];
    expect(patch.consumes).toContain('application/merge-patch+json');
    expect(patch.parameters.map(({ name }: Json) => name)).toContain('fieldValidation');
    expect(patch.parameters[0]).toMatchObject({
      in: 'body',
      schema: { $ref: '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch' },
    });
  });

  test('what it has no words for passes', () => {
    const schema = wholeObject('Odd.', {
      properties: {
        port: { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true },
        maybe: { type: 'string', nullable: true, description: 'May be null.' },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: { type: 'string' } } },
        map: { type: 'object', additionalProperties: { type: 'integer', format: 'int64', minimum: 1 } },
      },
    });
    const kind = { ...widgetKind, schema };
    const served: Served = { kinds: [{ kind, verbs: ALL_VERBS, subResources: [] }], reviews: [] };
    const { properties } = openApiV2(versionsOf(served), '1').definitions['dev.sluice.test.v1.Widget'] ?? {};
    expect(properties).toMatchObject({ map: { additionalProperties: { type: 'integer', format: 'int64' } } });
    expect(['port', 'maybe', 'open'].map((name) => properties?.[name])).toEqual([
      { 'x-kubernetes-int-or-string': true },
      { description: 'May be null.' },
      { 'x-kubernetes-preserve-unknown-fields': true },
    ]);
  });
});

describe('the documents of all kinds', () => {
  const served: Served = {
    kinds: [...OBJECT_KINDS, ...PACKAGE_KINDS].map((kind) => ({
      kind,
      verbs: ALL_VERBS,
      subResources: kind.strategy.hasStatus ? [{ name: 'status', verbs: ['get', 'patch', 'update'], kind }] : [],
    })),
    reviews: REVIEWS,
  };
  const versions = versionsOf(served);

  test('name only schemas that they have', () => {
    for (const version of versions) {
      const document = openApiV3(version, '1');
      const missing = references(document).filter(
        (reference) => !(reference.slice('#/components/schemas/'.length) in document.components.schemas),
      );
      expect(missing).toEqual([]);
    }
    const { definitions, ...rest } = openApiV2(versions, '1');
    const known = new Set(Object.keys(definitions).map((name) => `#/definitions/${name}`));
    expect(references({ definitions, rest }).filter((reference) => !known.has(reference))).toEqual([]);
  });

  test('give every operation a name of its own', () => {
    const ids = versions.flatMap((version) => operationIds(openApiV3(version, '1')));
    expect(ids.length).toBeGreaterThan(50);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
