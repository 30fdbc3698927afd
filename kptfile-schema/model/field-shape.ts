import * as z from 'zod';
import { kptfileSchema } from './kptfile-schema.ts';

/** What the schema expects at a place, in the form that decoding and linting walk along. */
export type FieldShape =
  | { readonly kind: 'string' | 'integer' | 'any' }
  | { readonly kind: 'list'; readonly item: FieldShape }
  | { readonly kind: 'map'; readonly value: FieldShape }
  | { readonly kind: 'object'; readonly fields: ReadonlyMap<string, FieldShape> };

/** The shape of a whole Kptfile, derived from kptfileSchema so that there is one list of fields. */
export const kptfileShape = shapeOf(kptfileSchema);

function shapeOf(schema: z.core.$ZodType): FieldShape {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional) return shapeOf(schema.unwrap());
  if (schema instanceof z.ZodString || schema instanceof z.ZodLiteral) return { kind: 'string' };
  if (schema instanceof z.ZodNumber) return { kind: 'integer' };
  if (schema instanceof z.ZodUnknown) return { kind: 'any' };
  if (schema instanceof z.ZodArray) return { kind: 'list', item: shapeOf(schema.element) };
  if (schema instanceof z.ZodRecord) return { kind: 'map', value: shapeOf(schema.valueType) };
  if (schema instanceof z.ZodObject) {
    const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
    return { kind: 'object', fields: new Map(Object.entries(shape).map(([name, field]) => [name, shapeOf(field)])) };
  }
  throw new TypeError(`The Kptfile schema uses ${schema._zod.def.type}, which field-shape.ts does not know.`);
}
