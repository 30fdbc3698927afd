import { describe, expect, test } from 'vitest';
import { structuralSchemaOf } from '../../schema/schema-of-kind.ts';
import { thrownCauses } from '../../schema/testing.ts';
import { customKind } from './custom-kind.ts';
import { customResourceDefinitionKind } from './custom-resource-definition.ts';

const schema = {
  type: 'object',
  description: 'A gateway.',
  required: ['metadata', 'spec'],
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 10 } } },
    spec: {
      type: 'object',
      required: ['host'],
      properties: {
        host: {
          type: 'string',
          'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'host is immutable' }],
        },
        port: {
          type: 'integer',
          default: 80,
          'x-kubernetes-validations': [{ rule: 'self != 22', message: 'not that one' }],
        },
      },
    },
    status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};

function definition(version: object = {}, more: object = {}): unknown {
  return {
    metadata: { name: 'gateways.example.org' },
    spec: {
      group: 'example.org',
      names: { plural: 'gateways', kind: 'Gateway', shortNames: ['gw'], categories: ['all'] },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {} },
          additionalPrinterColumns: [
            { name: 'Host', type: 'string', jsonPath: '.spec.host' },
            { name: 'Port', type: 'integer', jsonPath: '.spec.port', priority: 1 },
            { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
            { name: 'Odd', type: 'integer', jsonPath: '.spec.host' },
          ],
          selectableFields: [{ jsonPath: '.spec.host' }],
          ...version,
        },
      ],
      ...more,
    },
  };
}

const parsed = (value: unknown) => customResourceDefinitionKind.parse(value).object;

describe('customKind', () => {
  const kind = customKind(parsed(definition()), 'v1');
  const gateway = { metadata: { name: 'a' }, spec: { host: 'x' } };

  test('has the names of its definition', () => {
    expect(kind).toMatchObject({
      apiVersion: 'example.org/v1',
      kind: 'Gateway',
      plural: 'gateways',
      singular: 'gateway',
      shortNames: ['gw'],
      categories: ['all'],
      namespaced: true,
      strategy: { hasStatus: true },
      description: 'A gateway.',
      selectableFields: [{ path: 'spec.host' }],
    });
    expect(structuralSchemaOf(kind).properties?.metadata?.properties?.finalizers).toBeDefined();
    expect(() => customKind(parsed(definition()), 'v2')).toThrow('has no version "v2"');
  });

  test('fills in defaults and finds unknown fields', () => {
    const { object, unknownFields } = kind.parse({
      ...gateway,
      metadata: { name: 'a', labels: { x: 'y' }, annotations: null, creationTimestamp: null, more: 1 },
      spec: { host: 'x', prot: 1 },
      status: { any: { thing: 1 } },
      extra: 1,
    });
    expect(object).toEqual({
      apiVersion: 'example.org/v1',
      kind: 'Gateway',
      metadata: { name: 'a', labels: { x: 'y' } },
      spec: { host: 'x', port: 80 },
      status: { any: { thing: 1 } },
    });
    expect(unknownFields).toEqual([['metadata', 'more'], ['spec', 'prot'], ['extra']]);
  });

  test('reports every cause', () => {
    const bad = { kind: 'Other', metadata: { name: 'a name', labels: { 'x y': '' } }, spec: { port: 'x' } };
    const causes = thrownCauses(() => kind.parse(bad));
    expect(causes.map((cause) => cause.slice(0, cause.indexOf(':')))).toEqual([
      'kind',
      'metadata.labels[x y]',
      'spec.port',
      'spec.host',
    ]);
    expect(thrownCauses(() => kind.parse({ ...gateway, metadata: { name: 'a-long-name' } }))).toEqual([
      'metadata.name: Invalid value: "a-long-name": must have at most 10 characters',
    ]);
    expect(thrownCauses(() => kind.parse({ metadata: { name: 'a' } }))).toEqual(['spec: Required value']);
    expect(thrownCauses(() => kind.parse({ ...gateway, spec: { host: 'x', port: 22 } }))).toEqual([
      'spec.port: Invalid value: 22: not that one',
    ]);
    expect(() => kind.parse({ ...gateway, spec: 1 })).toThrow(/^Gateway\.example\.org "a" is invalid: spec: /);
    expect(() => kind.parse([])).toThrow('expected object');
  });

  test('validates changes', () => {
    const next = kind.complete({ ...gateway, spec: { host: 'y' } });
    expect(kind.strategy.validateUpdate(kind.complete(gateway), next).map((cause) => cause.message)).toEqual([
      'Invalid value: "y": host is immutable',
    ]);
  });

  test('shows its columns', () => {
    const object = kind.complete({ ...gateway, status: { conditions: [{ type: 'Ready', status: 'True' }] } });
    expect(kind.printerColumns.map(({ name, value }) => [name, value(object)])).toEqual([
      ['Name', 'a'],
      ['Host', 'x'],
      ['Port', 80],
      ['Ready', 'True'],
      ['Odd', undefined],
    ]);
    const plain = customKind(parsed(definition({ additionalPrinterColumns: undefined })), 'v1');
    expect(plain.printerColumns.map((column) => column.name)).toEqual(['Name', 'Age']);
  });
});

describe('a definition', () => {
  const versions = (...names: string[]) =>
    names.map((name, index) => ({ name, served: true, storage: index === 0, schema: { openAPIV3Schema: schema } }));

  test('gets names that it leaves out', () => {
    expect(parsed(definition()).spec).toMatchObject({
      names: { singular: 'gateway', listKind: 'GatewayList' },
      conversion: { strategy: 'None' },
    });
  });

  test.each<[string, unknown, string]>([
    [
      'another name',
      { ...(definition() as object), metadata: { name: 'x.example.org' } },
      'metadata.name: Invalid value',
    ],
    ['no schema', definition({ schema: undefined }), 'spec.versions[0].schema.openAPIV3Schema: Required value'],
    [
      'two versions of a name',
      definition({}, { versions: versions('v1', 'v1') }),
      'spec.versions[1].name: Invalid value: "v1"',
    ],
    ['no stored version', definition({ storage: false }), 'spec.versions: Invalid value: 0: exactly one'],
    [
      'conversion by a webhook',
      definition({}, { conversion: { strategy: 'Webhook' } }),
      'spec.conversion.strategy: Unsupported',
    ],
    [
      'a schema that is not structural',
      definition({ schema: { openAPIV3Schema: { type: 'object', properties: { spec: {} } } } }),
      'spec.versions[0].schema.openAPIV3Schema.properties.spec.type: Required value',
    ],
    [
      'rules for metadata',
      definition({
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } },
          },
        },
      }),
      'properties.metadata.properties.labels: Forbidden',
    ],
    [
      'a default that its schema does not take',
      definition({
        schema: { openAPIV3Schema: { type: 'object', properties: { a: { type: 'string', default: 1 } } } },
      }),
      'properties.a.default: Invalid value: 1: expected string',
    ],
    [
      'a default with an unknown field',
      definition({
        schema: { openAPIV3Schema: { type: 'object', properties: { a: { type: 'object', default: { b: 1 } } } } },
      }),
      'properties.a.default.b: Invalid value',
    ],
    [
      'a column that is no path',
      definition({ additionalPrinterColumns: [{ name: 'X', type: 'string', jsonPath: 'spec' }] }),
      'additionalPrinterColumns[0].jsonPath: Invalid value: "spec"',
    ],
    [
      'a selectable object',
      definition({ selectableFields: [{ jsonPath: '.spec' }] }),
      'selectableFields[0].jsonPath: Invalid value',
    ],
  ])('%s is refused', (_name, value, expected) => {
    expect(thrownCauses(() => customResourceDefinitionKind.parse(value)).join('\n')).toContain(expected);
  });

  test('keeps its scope and its names', () => {
    const old = parsed(definition());
    const next = parsed(definition({}, { scope: 'Cluster' }));
    expect(customResourceDefinitionKind.strategy.validateUpdate(old, next).map((cause) => cause.field)).toEqual([
      'spec.scope',
    ]);
  });

  test('takes an object with __proto__ for what it is', () => {
    const odd = JSON.parse(
      '{"type": "object", "properties": {"__proto__": {"type": "integer", "default": 1}}, "x-kubernetes-preserve-unknown-fields": true}',
    );
    const kind = customKind(parsed(definition({ schema: { openAPIV3Schema: odd }, selectableFields: [] })), 'v1');
    const object = kind.complete(JSON.parse('{"metadata": {"name": "a"}, "constructor": {"__proto__": 2}}'));
    expect(JSON.stringify(object)).toContain('"__proto__":1');
    expect(JSON.stringify(object)).toContain('"constructor":{"__proto__":2}');
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
  });
});
