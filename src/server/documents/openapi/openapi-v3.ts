import type { ServedVersion } from '../discovery/served.ts';
import type { DocumentSchema } from './definitions.ts';
import { definitionsOf } from './definitions.ts';
import { type Operation, type OperationsAtPath, operationsOf } from './operations.ts';
import { PRETTY, type QueryParameter } from './parameters.ts';
import { mapChildren } from './schema-children.ts';

const PATH_VARIABLES = {
  namespace: 'Namespace of the object.',
  name: 'Name of the object.',
} as const;

/** Returns the key of the OpenAPI v3 document of a group and version, after `/openapi/v3/`. */
export function openApiV3Key({ group, version }: Pick<ServedVersion, 'group' | 'version'>): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

/** `/openapi/v3`: the documents, each with the hash of its content. */
export function openApiV3Index(documents: Iterable<readonly [key: string, hash: string]>) {
  return {
    paths: Object.fromEntries(
      [...documents].map(([key, hash]) => [key, { serverRelativeURL: `/openapi/v3/${key}?hash=${hash}` }]),
    ),
  };
}

/** The OpenAPI v3 document of a group and version: `kubectl explain` reads the schemas, `kubectl apply` the patches. */
export function openApiV3(served: ServedVersion, version: string) {
  const schemas = [...definitionsOf(served.resources)].map(([name, schema]) => [name, v3Schema(schema)]);
  return {
    openapi: '3.0.0',
    info: { title: 'Sluice', version },
    paths: Object.fromEntries(operationsOf(served).map((path) => [path.path, pathItem(path)])),
    components: { schemas: Object.fromEntries(schemas) },
  };
}

function pathItem({ variables, operations }: OperationsAtPath) {
  return {
    ...Object.fromEntries(operations.map((operation) => [operation.method, operationItem(operation)])),
    parameters: [
      ...variables.map((name) => ({
        ...{ name, in: 'path', description: PATH_VARIABLES[name], required: true },
        schema: { type: 'string' },
      })),
      queryParameter(PRETTY),
    ],
  };
}

function operationItem(operation: Operation) {
  const { id, description, query, body, produces, answers, action, kind } = operation;
  return {
    operationId: id,
    description,
    ...(query.length === 0 ? {} : { parameters: query.map(queryParameter) }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: body.required, content: content(body.contentTypes, body.schema) } }),
    responses: Object.fromEntries(
      Object.entries(answers).map(([code, schema]) => [
        code,
        { description: 'OK', content: content(produces, schema) },
      ]),
    ),
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': kind,
  };
}

function queryParameter({ name, type, description }: QueryParameter) {
  return { name, in: 'query', description, schema: { type } };
}

function content(types: readonly string[], schema: string) {
  return Object.fromEntries(types.map((type) => [type, { schema: { $ref: reference(schema) } }]));
}

function reference(name: string): string {
  return `#/components/schemas/${name}`;
}

/** In OpenAPI 3.0 a reference can have no siblings, so one with a description is wrapped in `allOf`. */
function v3Schema(schema: DocumentSchema): object {
  const { refersTo, ...rest } = schema;
  if (refersTo === undefined) return { ...rest, ...mapChildren(schema, v3Schema) };
  const reach = { $ref: reference(refersTo) };
  return rest.description === undefined ? reach : { description: rest.description, allOf: [reach] };
}
