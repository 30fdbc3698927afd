import { z } from 'zod';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { StructuralSchema } from './structural-schema.ts';

type Json = Readonly<Record<string, unknown>>;

/** Keywords that mean the same in both worlds. */
const KEPT = new Set([
  ...['type', 'description', 'format', 'nullable', 'default', 'enum', 'minLength', 'maxLength', 'minItems', 'maxItems'],
  ...['minProperties', 'maxProperties', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);
const ANYTHING: StructuralSchema = { 'x-kubernetes-preserve-unknown-fields': true };
const INT_OR_STRING: StructuralSchema = {
  'x-kubernetes-int-or-string': true,
  anyOf: [{ type: 'integer' }, { type: 'string' }],
};
/** For these formats zod writes patterns that are weaker than the format or are not valid RE2. */
const FORMAT_OF: Readonly<Record<string, string>> = { 'date-time': 'date-time', base64: 'byte' };
const NOT_RE2 = /\(\?<?[=!]|\\[1-9]|\\k</;

/**
 * The structural schema of a zod schema, from what a client may write. Refinements vanish unless `.meta()` carries them as
 * `x-kubernetes-validations`. Throws Internal, a defect of the zod schema, for what has no structural form: unions other than
 * integer or text and discriminated ones, tuples, dates, recursion, patterns that are no RE2.
 */
export function structuralFromZod(type: z.ZodType): StructuralSchema {
  const schema = z.toJSONSchema(type, { target: 'openapi-3.0', io: 'input', cycles: 'throw', reused: 'inline' });
  const { $schema: _dialect, ...root } = schema as Json;
  return rewrite(root, '');
}

function rewrite(node: Json, place: string): StructuralSchema {
  // Description and type come first, since users read these schemas.
  const { description, type } = node;
  const result: Record<string, unknown> = {
    ...(description === undefined ? {} : { description }),
    ...(type === undefined ? {} : { type }),
  };
  for (const [key, value] of Object.entries(node)) {
    if (KEPT.has(key) || key.startsWith('x-kubernetes-')) result[key] = value;
    else if (key === 'required') result.required = [...(value as string[])].sort();
    // A kube-apiserver drops an empty list of fields.
    else if (key === 'properties') Object.assign(result, fields(value as Json, place));
    else if (key === 'items') result.items = rewrite(value as Json, `${place}[]`);
    else if (key === 'additionalProperties') Object.assign(result, additional(node, place));
    else if (key === 'contentEncoding') continue;
    else if (key === 'pattern') Object.assign(result, pattern(node, place));
    else if (key === 'allOf') result.allOf = (value as Json[]).map((branch) => pattern(branch, place));
    else if (key === 'anyOf' || key === 'oneOf') Object.assign(result, union(node, value as readonly Json[], place));
    else throw defect(place, `${key} has no structural form`);
  }
  const format = FORMAT_OF[String(node.format ?? node.contentEncoding)];
  if (format !== undefined) result.format = format;
  if (result.type === 'integer') integerBounds(result);
  return isEmpty(result) ? { ...result, ...ANYTHING } : result;
}

function fields(properties: Json, place: string): Pick<StructuralSchema, 'properties'> {
  const entries = Object.entries(properties).map(([name, value]) => {
    return [name, rewrite(value as Json, place === '' ? name : `${place}.${name}`)] as const;
  });
  return entries.length === 0 ? {} : { properties: Object.fromEntries(entries) };
}

/** A schema that allows everything states it; documentation alone is no constraint. */
function isEmpty(node: Json): boolean {
  return (
    node.type === undefined && Object.keys(node).every((key) => ['description', 'default', 'nullable'].includes(key))
  );
}

/** Maps keep it; objects with fields are pruned unless they are loose. */
function additional({ properties, additionalProperties }: Json, place: string): StructuralSchema {
  if (properties === undefined && additionalProperties !== false)
    return { additionalProperties: rewrite(additionalProperties as Json, `${place}{}`) };
  return additionalProperties === false ? {} : ANYTHING;
}

function pattern(node: Json, place: string): StructuralSchema {
  if (FORMAT_OF[String(node.format)] !== undefined) return {};
  if (NOT_RE2.test(String(node.pattern))) throw defect(place, `pattern ${node.pattern} is no RE2`);
  return { pattern: String(node.pattern) };
}

function union(node: Json, branches: readonly Json[], place: string): StructuralSchema {
  if (node['x-kubernetes-int-or-string'] === true) return { ...INT_OR_STRING, ...boundsOf(branches, place) };
  if (!branches.every((branch) => branch.type === 'object'))
    throw defect(place, 'a union must be of objects that a field discriminates, or of an integer and a text');
  return lifted(branches, place);
}

/** Bounds of an integer or text beside both: each of them applies to values of its type only. */
function boundsOf(branches: readonly Json[], place: string): StructuralSchema {
  const integer = branches.find(({ type }) => type === 'integer') ?? {};
  const text = branches.find(({ type }) => type === 'string') ?? {};
  return {
    ...(Number(integer.minimum) > Number.MIN_SAFE_INTEGER ? { minimum: Number(integer.minimum) } : {}),
    ...(Number(integer.maximum) < Number.MAX_SAFE_INTEGER ? { maximum: Number(integer.maximum) } : {}),
    ...(text.maxLength === undefined ? {} : { maxLength: Number(text.maxLength) }),
    ...(text.pattern === undefined ? {} : pattern(text, place)),
  };
}

/** Declares the fields of all branches once; inside remain the requirements of each and the value of its discriminator. */
function lifted(branches: readonly Json[], place: string): StructuralSchema {
  const properties: Record<string, StructuralSchema> = {};
  const oneOf: StructuralSchema[] = [];
  for (const branch of branches) {
    const { properties: fields = {}, required } = rewrite(branch, place);
    const discriminators: Record<string, StructuralSchema> = {};
    for (const [name, field] of Object.entries(fields)) {
      const known = properties[name];
      if (field.enum?.length === 1 && required?.includes(name)) {
        discriminators[name] = { enum: field.enum };
        properties[name] = { ...field, enum: [...(known?.enum ?? []), ...field.enum] };
      } else if (known !== undefined && JSON.stringify(known) !== JSON.stringify(field))
        throw defect(place, `${name} means several things`);
      else properties[name] = field;
    }
    if (Object.keys(discriminators).length === 0)
      throw defect(place, 'no field discriminates the branches of the union');
    oneOf.push({ properties: discriminators, ...(required === undefined ? {} : { required }) });
  }
  return { type: 'object', properties, oneOf };
}

/** zod writes the bounds of the number type itself; a format is shorter. */
function integerBounds(node: Record<string, unknown>): void {
  const int32 = node.minimum === -(2 ** 31) || node.maximum === 2 ** 31 - 1;
  if (node.minimum === (int32 ? -(2 ** 31) : Number.MIN_SAFE_INTEGER)) delete node.minimum;
  if (node.maximum === (int32 ? 2 ** 31 - 1 : Number.MAX_SAFE_INTEGER)) delete node.maximum;
  node.format = int32 ? 'int32' : 'int64';
}

function defect(place: string, problem: string): SluiceError {
  return new SluiceError('Internal', `schema of ${place === '' ? 'the object' : place}: ${problem}`);
}
