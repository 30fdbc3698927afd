import { isJsonObject, ownValue } from '../object/own-property.ts';
import { fieldSchema, isDeclared, itemSchema } from '../schema/structural/child-schema.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import { type FieldElement, isScalar, keyElement, type Scalar, valueElement } from './field-element.ts';

/**
 * How ownership of a value can be shared: a map by its keys, a list by its items (list types map and set), and a leaf not at all:
 * its owner owns all of it. A value that is not of the schema's type is a leaf; the validation of the object refuses it.
 */
export type Shape =
  | { readonly as: 'map'; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly as: 'list'; readonly items: readonly unknown[] }
  | { readonly as: 'leaf' };

const A_LEAF: Shape = { as: 'leaf' };

export function shapeOf(value: unknown, schema: StructuralSchema): Shape {
  if (typeof value !== 'object' || value === null) return A_LEAF;
  if (Array.isArray(value)) {
    const listType = schema['x-kubernetes-list-type'];
    return listType === 'map' || listType === 'set' ? { as: 'list', items: value } : A_LEAF;
  }
  const shared = (schema.type ?? 'object') === 'object' && schema['x-kubernetes-map-type'] !== 'atomic';
  return shared && isJsonObject(value) ? { as: 'map', fields: value } : A_LEAF;
}

/** True for a field that the schema neither declares nor leaves to the writer. */
export function isUnknown(schema: StructuralSchema, key: string): boolean {
  const { properties, additionalProperties } = schema;
  if (isDeclared(schema, key) || schema['x-kubernetes-preserve-unknown-fields'] === true) return false;
  if (additionalProperties !== undefined) return additionalProperties === false;
  return properties !== undefined && Object.keys(properties).length > 0;
}

/** Returns the identity of an item of a shared list; undefined if it has none. A key with a default may be omitted. */
export function identityOf(item: unknown, schema: StructuralSchema): FieldElement | undefined {
  if (schema['x-kubernetes-list-type'] === 'set') return isScalar(item) ? valueElement(item) : undefined;
  if (!isJsonObject(item)) return undefined;
  const fields: (readonly [string, Scalar])[] = [];
  for (const name of schema['x-kubernetes-list-map-keys'] ?? []) {
    const value = ownValue(item, name) ?? fieldSchema(itemSchema(schema), name).default;
    if (isScalar(value)) fields.push([name, value]);
  }
  return fields.length === 0 ? undefined : keyElement(fields);
}

/** Like `identityOf`, for stored objects: an item without an identity is identified by its index. */
export function elementOf(item: unknown, index: number, schema: StructuralSchema): FieldElement {
  return identityOf(item, schema) ?? `i:${index}`;
}
