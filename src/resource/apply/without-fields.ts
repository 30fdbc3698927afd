import { setOwnValue } from '../object/own-property.ts';
import { fieldSchema, isDeclared, itemSchema } from '../schema/structural/child-schema.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import { type FieldSet, NO_FIELDS } from './field-set.ts';
import { elementOf, shapeOf } from './shared-shape.ts';

/**
 * Returns `value` without the fields in `left` that are not in `kept`. A field that the schema names counts as being in a set as
 * soon as a field below it is, so a container is removed with the last of its owned fields. Returns `value` itself if nothing is
 * removed.
 */
export function withoutFields(value: unknown, schema: StructuralSchema, left: FieldSet, kept: FieldSet): unknown {
  const shape = shapeOf(value, schema);
  if (shape.as === 'map') return withoutKeys(shape.fields, schema, left, kept);
  if (shape.as === 'list') return withoutItems(shape.items, schema, left, kept);
  return value;
}

function withoutKeys(
  fields: Readonly<Record<string, unknown>>,
  schema: StructuralSchema,
  left: FieldSet,
  kept: FieldSet,
): unknown {
  let rest: Record<string, unknown> | undefined;
  for (const [element, leftBelow] of left.children) {
    const key = element.slice(2);
    if (!element.startsWith('f:') || !Object.hasOwn(fields, key)) continue;
    const keptHere = kept.children.get(element) ?? NO_FIELDS;
    const named = isDeclared(schema, key);
    if (isMember(leftBelow, named) && !isMember(keptHere, named)) {
      rest ??= { ...fields };
      delete rest[key];
      continue;
    }
    const inner = withoutFields(fields[key], fieldSchema(schema, key), leftBelow, keptHere);
    if (inner === fields[key]) continue;
    rest ??= { ...fields };
    setOwnValue(rest, key, inner);
  }
  return rest ?? fields;
}

function withoutItems(
  items: readonly unknown[],
  schema: StructuralSchema,
  left: FieldSet,
  kept: FieldSet,
): readonly unknown[] {
  const rest: unknown[] = [];
  let same = true;
  for (const [index, item] of items.entries()) {
    const element = elementOf(item, index, schema);
    const leftBelow = left.children.get(element) ?? NO_FIELDS;
    const keptHere = kept.children.get(element) ?? NO_FIELDS;
    if (leftBelow.owned && !keptHere.owned) {
      same = false;
      continue;
    }
    const inner = withoutFields(item, itemSchema(schema), leftBelow, keptHere);
    if (inner !== item) same = false;
    rest.push(inner);
  }
  return same ? items : rest;
}

function isMember(set: FieldSet, named: boolean): boolean {
  return set.owned || (named && set.children.size > 0);
}
