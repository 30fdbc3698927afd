import { z } from 'zod';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { causesOf, type FieldCause, invalidObject, invalidValue } from '../../object/invalid-object.ts';
import { DNS_SUBDOMAIN } from '../../object/name-rules.ts';
import { apiVersionOf, type KubernetesObject, type ObjectMeta } from '../../object/object.ts';
import type { Kind, Parsed } from '../../schema/kind.ts';
import type { PrinterColumn } from '../../schema/kind-schema.ts';
import { parseWithoutNulls } from '../../schema/null-fields.ts';
import { metadataSchema } from '../../schema/object-schema.ts';
import { wholeObject } from '../../schema/schema-of-kind.ts';
import { parseJsonPath } from '../../schema/structural/json-path.ts';
import { ruleCauses } from '../../schema/structural/rule-causes.ts';
import type { StructuralSchema } from '../../schema/structural/structural-schema.ts';
import { validateValue } from '../../schema/structural/validate-value.ts';
import { unknownFields } from '../../schema/unknown-fields.ts';
import { type WriteStrategy, writeStrategy } from '../../schema/write-strategy.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import type { CustomResourceDefinition } from './custom-resource-definition.ts';

type Json = Readonly<Record<string, unknown>>;
type Version = CustomResourceDefinition['spec']['versions'][number];

/** Fields of every object; they are validated separately from the schema. */
const ENVELOPE = ['apiVersion', 'kind', 'metadata'];
const METADATA = z.object({ metadata: metadataSchema(DNS_SUBDOMAIN) });

/**
 * Creates the kind for one version of a definition. The definition must have been validated by its own kind. NotFound if it has no
 * such version.
 */
export function customKind(definition: CustomResourceDefinition, version: string): Kind {
  const { group, names, scope, versions } = definition.spec;
  const found = versions.find((entry) => entry.name === version);
  if (found === undefined)
    throw new SluiceError('NotFound', `${definition.metadata.name} has no version ${JSON.stringify(version)}`);
  const apiVersion = apiVersionOf({ group, version });
  const given = (found.schema?.openAPIV3Schema ?? {}) as StructuralSchema;
  const content = withoutEnvelope(given);
  const strategy = writeStrategy<KubernetesObject>({
    hasStatus: found.subresources?.status !== undefined,
    updatesNeedVersion: true,
    validate: (object) => ruleCauses(given, ruleView(object)),
    validateUpdate: (old, next) => ruleCauses(given, ruleView(next), { old: ruleView(old) }),
  });
  const parse = parser(apiVersion, names.kind, `${names.kind}.${group}`, given, content, strategy);
  return {
    group,
    version,
    kind: names.kind,
    apiVersion,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: scope === 'Namespaced',
    description: given.description ?? `${names.kind} as defined by ${definition.metadata.name}.`,
    sensitive: false,
    strategy,
    printerColumns: [NAME_COLUMN, ...(found.additionalPrinterColumns?.map(columnOf) ?? [AGE_COLUMN])],
    selectableFields: (found.selectableFields ?? []).map(({ jsonPath }) => ({ path: jsonPath.replace(/^\./, '') })),
    fields: {},
    nameRule: DNS_SUBDOMAIN,
    immutableFields: [],
    ...(found.deprecated === true
      ? { deprecation: found.deprecationWarning ?? `${apiVersion} ${names.kind} is deprecated` }
      : {}),
    schema: wholeObject(given.description ?? '', content),
    parse,
    complete: (input) => parse(input).object,
  };
}

/** Returns the object as rules see it: of the metadata only the name, as in a kube-apiserver. */
function ruleView(object: KubernetesObject): object {
  const { name, generateName } = object.metadata;
  return { ...object, metadata: generateName === undefined ? { name } : { name, generateName } };
}

function withoutEnvelope(schema: StructuralSchema): StructuralSchema {
  const { apiVersion: _version, kind: _kind, metadata: _metadata, ...properties } = schema.properties ?? {};
  const required = schema.required?.filter((name) => !ENVELOPE.includes(name)) ?? [];
  return { ...schema, properties, required };
}

function parser(
  apiVersion: string,
  kind: string,
  subject: string,
  schema: StructuralSchema,
  content: StructuralSchema,
  strategy: WriteStrategy,
) {
  const nameSchema = schema.properties?.metadata;
  return (value: unknown): Parsed<KubernetesObject> => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalidObject(subject, [invalidValue([], value, 'expected object')]);
    const given = value as Json;
    const causes: FieldCause[] = [];
    for (const [field, expected] of [
      ['apiVersion', apiVersion],
      ['kind', kind],
    ] as const)
      if ((given[field] ?? expected) !== expected)
        causes.push(invalidValue([field], given[field], `must be ${JSON.stringify(expected)}`));
    const metadata = validateMetadata(given, nameSchema, causes);
    const { apiVersion: _a, kind: _k, metadata: _m, ...rest } = given;
    const checked = validateValue(content, rest);
    causes.push(...checked.causes);
    const object = { apiVersion, kind, metadata, ...(checked.value as Json) } as KubernetesObject;
    if (causes.length === 0) causes.push(...strategy.validate(object));
    if (causes.length > 0) throw invalidObject(`${subject}${nameOf(given)}`, causes);
    const dropped = unknownFields(given.metadata, metadata).map((path) => ['metadata', ...path]);
    return { object, unknownFields: [...dropped, ...checked.unknownFields] };
  };
}

function validateMetadata(given: Json, nameSchema: StructuralSchema | undefined, causes: FieldCause[]): ObjectMeta {
  const { result, checked } = parseWithoutNulls(METADATA, { metadata: given.metadata ?? {} });
  if (!result.success) {
    causes.push(...causesOf(result.error.issues, checked, false));
    return { name: '' };
  }
  const { metadata } = result.data;
  if (nameSchema !== undefined) causes.push(...validateValue(nameSchema, metadata, ['metadata']).causes);
  return metadata;
}

function nameOf({ metadata }: Json): string {
  const name = (metadata as { readonly name?: unknown } | null | undefined)?.name;
  return typeof name === 'string' ? ` ${JSON.stringify(name)}` : '';
}

function columnOf(column: NonNullable<Version['additionalPrinterColumns']>[number]): PrinterColumn<KubernetesObject> {
  const { name, type, jsonPath, description, priority } = column;
  const path = parseJsonPath(jsonPath);
  return {
    name,
    type,
    jsonPath,
    ...(description === undefined ? {} : { description }),
    ...(priority === undefined ? {} : { priority }),
    value: (object) => cellOf(type, path.first(object)),
  };
}

/** A value of another type than the column's is not shown. */
function cellOf(type: PrinterColumn<KubernetesObject>['type'], value: unknown): string | number | boolean | undefined {
  if (value === undefined) return undefined;
  if (type === 'boolean') return typeof value === 'boolean' ? value : undefined;
  if (type === 'integer' || type === 'number') return typeof value === 'number' ? value : undefined;
  if (typeof value === 'string') return value;
  return type === 'date' ? undefined : JSON.stringify(value);
}
