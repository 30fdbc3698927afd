import type { FieldCause } from '../../object/invalid-object.ts';

/** Maximum size of the data of a ConfigMap or a Secret: they are kept in memory and are not meant for files. */
const MAX_BYTES = 1024 * 1024;

type Values = Readonly<Record<string, string>> | undefined;

/** Returns the errors of values whose total size is too large: texts, and bytes in base64. */
export function sizeCauses(field: string, texts: Values, encoded: Values): FieldCause[] {
  let bytes = 0;
  for (const text of Object.values(texts ?? {})) bytes += Buffer.byteLength(text);
  for (const text of Object.values(encoded ?? {})) bytes += Buffer.byteLength(text, 'base64');
  return bytes > MAX_BYTES
    ? [{ field, message: `Too long: may not be more than ${MAX_BYTES} bytes`, path: [field] }]
    : [];
}
