import { z } from 'zod';
import type { ManagedFieldsEntry } from '../object/object.ts';

const MAX_ENTRIES = 200;
const MAX_NAME_LENGTH = 256;
const MAX_DEPTH = 100;
const MAX_NODES = 100_000;

/** Counts down the remaining nodes; false if there are too many nodes or levels. */
function isBounded(value: unknown, depth: number, left: { nodes: number }): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth > MAX_DEPTH) return false;
  for (const inner of Object.values(value)) {
    left.nodes -= 1;
    if (left.nodes < 0 || !isBounded(inner, depth + 1, left)) return false;
  }
  return true;
}

const name = z.string().max(MAX_NAME_LENGTH);

const entry = z.object({
  manager: name.default(''),
  operation: z.enum(['Apply', 'Update']).optional(),
  apiVersion: name.default(''),
  time: z
    .string()
    .nullish()
    .transform((text) => text ?? undefined),
  fieldsType: z.literal('FieldsV1').default('FieldsV1'),
  // Taken as it is: its keys are names of fields, `__proto__` may be among them.
  fieldsV1: z
    .unknown()
    .optional()
    .refine((value) => value === undefined || (typeof value === 'object' && !Array.isArray(value)), 'expected object')
    .transform((value) => (value ?? {}) as Readonly<Record<string, unknown>>),
  subresource: name.optional(),
});

/**
 * The field owners in the metadata of an object. `[{}]` is how clients that cannot write an empty list state that the owners
 * are to be removed; it becomes the empty list.
 */
export const managedFieldsSchema = z
  .array(entry)
  .max(MAX_ENTRIES)
  .nullish()
  .superRefine((entries, context) => {
    const left = { nodes: MAX_NODES };
    for (const [index, { operation, fieldsV1 }] of (entries ?? []).entries()) {
      if (operation === undefined && entries?.length !== 1)
        context.addIssue({ code: 'custom', path: [index, 'operation'], message: 'must be Apply or Update' });
      if (!isBounded(fieldsV1, 1, left))
        context.addIssue({ code: 'custom', path: [index, 'fieldsV1'], message: 'has too many fields or levels' });
    }
  })
  .transform((entries): readonly ManagedFieldsEntry[] | undefined =>
    entries?.flatMap(({ operation, ...owner }) => (operation === undefined ? [] : [{ ...owner, operation }])),
  );
