import * as z from 'zod';
import { kptfileSchema } from './kptfile-schema.ts';

/**
 * The JSON Schema (draft 2020-12) of kptfileSchema, for editors and other languages.
 * kptfile.schema.json is this, written to a file.
 */
export function kptfileJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(kptfileSchema, { io: 'input' });
  return { title: 'Kptfile', description: 'A kpt package: kpt.dev/v1 Kptfile.', ...schema };
}
