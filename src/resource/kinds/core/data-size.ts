import type { FieldCause } from '../../object/invalid-object.ts';

/** So much may stand in a ConfigMap or a Secret: they are kept in memory, and are no place for files. */
const MAX_BYTES = 1024 * 1024;

type Values = Readonly<Record<string, string>> | undefined;

/** What is wrong with values that are too large together: texts, and bytes in base64. */
export function sizeCauses(field: string, texts: Values, encoded: Values): FieldCause[] {
  let bytes = 0;
  for (const text of Object.values(texts ?? {})) bytes += Buffer.byteLength(text);
  for (const text of Object.values(encoded ?? {})) bytes += Buffer.byteLength(text, 'base64');
  return bytes > MAX_BYTES
    ? [{ field, message: `Too long: may not be more than ${MAX_BYTES} bytes`, path: [field] }]
    : [];
}
