import { fieldSchema, isDeclared, itemSchema } from '../schema/structural/child-schema.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import type { FieldElement } from './field-element.ts';
import { type FieldSet, fieldSet, LEAF } from './field-set.ts';
import { elementOf, shapeOf } from './shared-shape.ts';

/**
 * Returns the fields that a writer of `object` owns: its leaves, its list items, and the keys of maps that the schema
 * does not declare. Items that occur twice in a list are one path without children.
 */
export function fieldSetOf(object: unknown, schema: StructuralSchema): FieldSet {
  return fieldSet(false, read(object, schema, false).children);
}

/** Every path of a value, itself and all containers among them: what appears or vanishes together with it. */
export function everyField(value: unknown, schema: StructuralSchema): FieldSet {
  return read(value, schema, true);
}

function read(value: unknown, schema: StructuralSchema, containers: boolean): FieldSet {
  const shape = shapeOf(value, schema);
  if (shape.as === 'leaf') return LEAF;
  const children = new Map<FieldElement, FieldSet>();
  if (shape.as === 'map') {
    for (const [key, inner] of Object.entries(shape.fields)) {
      if (inner === undefined) continue;
      const child = read(inner, fieldSchema(schema, key), containers);
      children.set(`f:${key}`, isDeclared(schema, key) ? child : owned(child));
    }
  } else {
    const ofItem = itemSchema(schema);
    for (const [index, item] of shape.items.entries()) {
      const element = elementOf(item, index, schema);
      children.set(element, children.has(element) ? LEAF : owned(read(item, ofItem, containers)));
    }
  }
  return fieldSet(containers || children.size === 0, children);
}

function owned(set: FieldSet): FieldSet {
  return set.owned ? set : fieldSet(true, set.children);
}
