import type { GroupVersionKind } from '../../../resource/object/object.ts';
import type { ServedVersion } from '../discovery/served.ts';
import { type DocumentSchema, definitionsOf } from './definitions.ts';
import { type Method, type Operation, type OperationsAtPath, operationsOf } from './operations.ts';
import { PRETTY, type QueryParameter } from './parameters.ts';
import { mapChildren } from './schema-children.ts';

/** The part of an OpenAPI v2 document that is used here. Keys with `x-` are extensions. */
export interface OpenApiV2 {
  readonly swagger: '2.0';
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, V2Path>>;
  readonly definitions: Readonly<Record<string, V2Schema>>;
}

export type V2Path = { readonly [Key in Method]?: V2Operation } & { readonly parameters: readonly V2Parameter[] };

export interface V2Operation {
  readonly operationId: string;
  readonly description: string;
  readonly consumes?: readonly string[];
  readonly produces: readonly string[];
  readonly parameters: readonly V2Parameter[];
  readonly responses: Readonly<Record<string, { readonly description: string; readonly schema: V2Schema }>>;
  readonly 'x-kubernetes-action': string;
  readonly 'x-kubernetes-group-version-kind': GroupVersionKind;
}

export interface V2Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'body';
  readonly description?: string;
  readonly required?: boolean;
  readonly type?: string;
  readonly schema?: V2Schema;
}

export interface V2Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, V2Schema>>;
  readonly items?: V2Schema;
  readonly additionalProperties?: V2Schema | boolean;
  readonly [extension: `x-${string}`]: unknown;
}

const EXTENSIONS = [
  'x-kubernetes-group-version-kind',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
  'x-kubernetes-patch-merge-key',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-preserve-unknown-fields',
] as const;

/**
 * `/openapi/v2`: one document for all groups. Older clients and tools read it; kubectl does for kinds that cannot be
 * patched. It has names and types of fields; the rules for their values are in the newer documents.
 */
export function openApiV2(versions: readonly ServedVersion[], version: string): OpenApiV2 {
  const definitions = definitionsOf(versions.flatMap(({ resources }) => resources));
  return {
    swagger: '2.0',
    info: { title: 'Sluice', version },
    paths: Object.fromEntries(versions.flatMap(operationsOf).map((path) => [path.path, v2Path(path)])),
    definitions: Object.fromEntries([...definitions].map(([name, schema]) => [name, v2Schema(schema)])),
  };
}

function v2Path({ variables, operations }: OperationsAtPath): V2Path {
  return {
    ...Object.fromEntries(operations.map((operation) => [operation.method, v2Operation(operation)])),
    parameters: [
      ...variables.map((name) => ({ name, in: 'path' as const, required: true, type: 'string' })),
      queryParameter(PRETTY),
    ],
  };
}

function v2Operation(operation: Operation): V2Operation {
  const { id, description, query, body, produces, answers, action, kind } = operation;
  const bodyParameters =
    body === undefined
      ? []
      : [{ name: 'body', in: 'body' as const, required: body.required, schema: referenceTo(body.schema) }];
  return {
    operationId: id,
    description,
    ...(body === undefined ? {} : { consumes: body.contentTypes }),
    produces,
    parameters: [...bodyParameters, ...query.map(queryParameter)],
    responses: Object.fromEntries(
      Object.entries(answers).map(([code, schema]) => [code, { description: 'OK', schema: referenceTo(schema) }]),
    ),
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': kind,
  };
}

function queryParameter({ name, type, description }: QueryParameter): V2Parameter {
  return { name, in: 'query', type, description };
}

function referenceTo(name: string): V2Schema {
  return { $ref: `#/definitions/${name}` };
}

function v2Schema(schema: DocumentSchema): V2Schema {
  const { refersTo, description, type, format, required } = schema;
  const described = description === undefined ? {} : { description };
  if (refersTo !== undefined) return { ...referenceTo(refersTo), ...described };
  const extensions = Object.fromEntries(
    EXTENSIONS.filter((name) => schema[name] !== undefined).map((name) => [name, schema[name]]),
  );
  // Clients validate objects by this document, and it cannot express these: a schema without a type accepts everything.
  const anything =
    type === undefined || schema.nullable === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (anything) return { ...described, ...extensions };
  return {
    ...described,
    type,
    ...(format === undefined ? {} : { format }),
    ...(required === undefined ? {} : { required }),
    ...mapChildren(schema, v2Schema),
    ...extensions,
  };
}
