import { type FieldCause, forbidden } from '../../object/invalid-object.ts';
import { sameValue } from '../../object/same-value.ts';

/**
 * Returns the changes that an object with `immutable: true` forbids: other data, and to become mutable again. The message
 * contains no value.
 */
export function sealedCauses<T extends { readonly immutable?: boolean | undefined }>(
  old: T,
  next: T,
  dataFields: readonly (keyof T & string)[],
): FieldCause[] {
  if (old.immutable !== true) return [];
  const fields = next.immutable === true ? [] : ['immutable'];
  for (const field of dataFields) if (!sameValue(old[field] ?? {}, next[field] ?? {})) fields.push(field);
  return fields.map((field) => forbidden([field], 'field is immutable when `immutable` is set'));
}
