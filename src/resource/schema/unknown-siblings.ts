import { z } from 'zod';
import { nearHint } from '../../foundation/text/near-misses.ts';
import { type FieldCause, fieldPath, REQUIRED_VALUE } from '../object/invalid-object.ts';

const MAX_SHOWN = 3;
const MAX_CHARACTERS = 300;
/** Names of fields are shorter, and a client may send any. */
const MAX_NAME_CHARACTERS = 64;

/**
 * Adds to each missing field the unknown fields beside it, and to what else is wrong with an object those in it: one of them may be the field that is
 * meant, with a misspelt name.
 */
export function withUnknownSiblings(
  causes: readonly FieldCause[],
  schema: z.core.$ZodType,
  given: unknown,
): readonly FieldCause[] {
  return causes.map((cause) => {
    const parent = cause.message === REQUIRED_VALUE ? cause.path.slice(0, -1) : cause.path;
    const { present, known } = fieldsAt(schema, given, parent);
    const unknown = present.filter((field) => !known.includes(field));
    if (unknown.length === 0) return cause;
    const are = unknown.length === 1 ? 'is an unknown field' : 'are unknown fields';
    const names = unknown.map((field) => fieldPath([...parent, field]));
    const shown = names.slice(0, MAX_SHOWN).join(', ').slice(0, MAX_CHARACTERS);
    const hints = unknown.slice(0, MAX_SHOWN).map((field) => nearHint(field.slice(0, MAX_NAME_CHARACTERS), known));
    return { ...cause, message: `${cause.message} (${shown} ${are}${hints.find((hint) => hint !== '') ?? ''})` };
  });
}

/** What may have been meant by an unknown field of an object, as the end of a message; empty if no name is near. */
export function unknownFieldHint(
  fields: Readonly<Record<string, z.ZodType>>,
  given: unknown,
  path: readonly (string | number)[],
): string {
  const { known } = fieldsAt(z.object(fields), given, path.slice(0, -1));
  return nearHint(String(path.at(-1)).slice(0, MAX_NAME_CHARACTERS), known);
}

/** The fields that an object has, and that its schema knows; none for other values. */
function fieldsAt(
  root: z.core.$ZodType,
  given: unknown,
  path: FieldCause['path'],
): { readonly present: readonly string[]; readonly known: readonly string[] } {
  const nothing = { present: [], known: [] };
  let schema: z.core.$ZodType | undefined = unwrapped(root);
  let value = given;
  for (const step of path) {
    if (schema instanceof z.ZodObject) schema = unwrapped(schema.shape[String(step)]);
    else if (schema instanceof z.ZodArray) schema = unwrapped(schema.element);
    else if (schema instanceof z.ZodRecord) schema = unwrapped(schema.valueType);
    else return nothing;
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return nothing;
    value = (value as Record<string | number, unknown>)[step];
  }
  if (!(schema instanceof z.ZodObject) || typeof value !== 'object' || value === null || Array.isArray(value))
    return nothing;
  return { present: Object.keys(value), known: Object.keys(schema.shape) };
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
