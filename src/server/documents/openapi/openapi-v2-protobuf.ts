import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { OpenApiV2, V2Operation, V2Parameter, V2Path, V2Schema } from './openapi-v2.ts';

/**
 * An OpenAPI v2 document as the message `openapi.v2.Document` of gnostic, the only form in which client-go reads it. The
 * numbers are those of its `OpenAPIv2.proto`.
 */
export function openApiV2Protobuf({ swagger, info, paths, definitions }: OpenApiV2): Buffer {
  return Buffer.concat([
    bytesField(1, swagger),
    message(2, [text(1, info.title), text(2, info.version)]),
    message(8, namedFields(2, paths, path)),
    message(9, namedFields(1, definitions, schema)),
  ]);
}

/** A message is the concatenation of its fields. */
type Fields = readonly Buffer[];

function message(number: number, fields: Fields): Buffer {
  return bytesField(number, Buffer.concat(fields));
}

function text(number: number, value: string | undefined): Buffer {
  return value === undefined ? Buffer.alloc(0) : bytesField(number, value);
}

function texts(number: number, values: readonly string[] = []): Fields {
  return values.map((value) => bytesField(number, value));
}

/** A map: repeated messages of name and value. */
function namedFields<T>(number: number, entries: Readonly<Record<string, T>>, fields: (value: T) => Fields): Fields {
  return Object.entries(entries).map(([name, value]) => message(number, [text(1, name), message(2, fields(value))]));
}

/** The values of extensions are YAML, which JSON is too. */
function extensions(number: number, holder: object): Fields {
  return Object.entries(holder)
    .filter(([name, value]) => name.startsWith('x-') && value !== undefined)
    .map(([name, value]) => message(number, [text(1, name), message(2, [text(2, JSON.stringify(value))])]));
}

const METHODS = { get: 2, put: 3, post: 4, delete: 5, patch: 8 } as const;

function path(item: V2Path): Fields {
  const operations = Object.entries(METHODS).flatMap(([method, number]) => {
    const found = item[method as keyof typeof METHODS];
    return found === undefined ? [] : [message(number, operation(found))];
  });
  return [...operations, ...item.parameters.map((value) => message(9, parameter(value)))];
}

function operation(value: V2Operation): Fields {
  const responses = namedFields(1, value.responses, ({ description, schema: answer }) => [
    message(1, [text(1, description), message(2, [message(1, schema(answer))])]),
  ]);
  return [
    text(3, value.description),
    text(5, value.operationId),
    ...texts(6, value.produces),
    ...texts(7, value.consumes),
    ...value.parameters.map((item) => message(8, parameter(item))),
    message(9, responses),
    ...extensions(13, value),
  ];
}

/** ParametersItem{Parameter{BodyParameter | NonBodyParameter{query | path}}}. */
function parameter(value: V2Parameter): Fields {
  const { name, description, required = false, type } = value;
  if (value.in === 'body') {
    const body = [text(1, description), text(2, name), text(3, 'body'), flagField(4, required)];
    return [message(1, [message(1, [...body, message(5, schema(value.schema ?? {}))])])];
  }
  const common = [flagField(1, required), text(2, value.in), text(3, description), text(4, name)];
  const inner = value.in === 'query' ? message(3, [...common, text(6, type)]) : message(4, [...common, text(5, type)]);
  return [message(1, [message(2, [inner])])];
}

function schema(value: V2Schema): Fields {
  const { additionalProperties, items, properties } = value;
  return [
    text(1, value.$ref),
    text(2, value.format),
    text(4, value.description),
    ...texts(19, value.required),
    ...(additionalProperties === undefined
      ? []
      : [
          message(21, [
            typeof additionalProperties === 'object'
              ? message(1, schema(additionalProperties))
              : flagField(2, additionalProperties),
          ]),
        ]),
    ...(value.type === undefined ? [] : [message(22, [text(1, value.type)])]),
    ...(items === undefined ? [] : [message(23, [message(1, schema(items))])]),
    ...(properties === undefined ? [] : [message(25, namedFields(1, properties, schema))]),
    ...extensions(31, value),
  ];
}

/** A message, a string or bytes. */
function bytesField(number: number, value: Buffer | string): Buffer {
  const body = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(body.length).finish(), body]);
}

function flagField(number: number, value: boolean): Buffer {
  return Buffer.from(new BinaryWriter().tag(number, WireType.Varint).bool(value).finish());
}
