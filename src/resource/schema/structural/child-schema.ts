import type { StructuralSchema } from './structural-schema.ts';

/** The schema of what no schema declares: anything. */
const UNSPECIFIED: StructuralSchema = { 'x-kubernetes-preserve-unknown-fields': true };

/** True for a field that the schema declares, as opposed to a key of a map. */
export function isDeclared(schema: StructuralSchema, key: string): boolean {
  return schema.properties !== undefined && Object.hasOwn(schema.properties, key);
}

/** The schema of a field of an object or of a value of a map. */
export function fieldSchema(schema: StructuralSchema, key: string): StructuralSchema {
  const { properties, additionalProperties } = schema;
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key] ?? UNSPECIFIED;
  return typeof additionalProperties === 'object' ? additionalProperties : UNSPECIFIED;
}

/** The schema of the items of a list. */
export function itemSchema(schema: StructuralSchema): StructuralSchema {
  return schema.items ?? UNSPECIFIED;
}
