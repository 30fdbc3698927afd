import { z } from 'zod';
import { type FieldCause, fieldPath, REQUIRED_VALUE } from '../object/invalid-object.ts';

const MAX_SHOWN = 3;
const MAX_CHARACTERS = 300;

/** Adds to each missing field the unknown fields beside it, of which one may be the missing field with a misspelt name. */
export function withUnknownSiblings(
  causes: readonly FieldCause[],
  schema: z.core.$ZodType,
  given: unknown,
): readonly FieldCause[] {
  return causes.map((cause) => {
    if (cause.message !== REQUIRED_VALUE) return cause;
    const parent = cause.path.slice(0, -1);
    const unknown = unknownFieldsAt(schema, given, parent).map((field) => fieldPath([...parent, field]));
    if (unknown.length === 0) return cause;
    const are = unknown.length === 1 ? 'is an unknown field' : 'are unknown fields';
    const shown = unknown.slice(0, MAX_SHOWN).join(', ').slice(0, MAX_CHARACTERS);
    return { ...cause, message: `${REQUIRED_VALUE} (${shown} ${are})` };
  });
}

function unknownFieldsAt(root: z.core.$ZodType, given: unknown, path: FieldCause['path']): string[] {
  let schema: z.core.$ZodType | undefined = unwrapped(root);
  let value = given;
  for (const step of path) {
    if (schema instanceof z.ZodObject) schema = unwrapped(schema.shape[String(step)]);
    else if (schema instanceof z.ZodArray) schema = unwrapped(schema.element);
    else if (schema instanceof z.ZodRecord) schema = unwrapped(schema.valueType);
    else return [];
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return [];
    value = (value as Record<string | number, unknown>)[step];
  }
  if (!(schema instanceof z.ZodObject) || typeof value !== 'object' || value === null || Array.isArray(value))
    return [];
  const { shape } = schema;
  return Object.keys(value).filter((field) => !Object.hasOwn(shape, field));
}

/** The schema of a value that is given, without what treats a missing one. */
function unwrapped(schema: z.core.$ZodType | undefined): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodPipe) return unwrapped(schema.in);
  const isWrapper =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodReadonly;
  return isWrapper ? unwrapped(schema.unwrap()) : schema;
}
