import { ownValue } from '../object/own-property.ts';
import { sameValue } from '../object/same-value.ts';
import { fieldSchema, itemSchema } from '../schema/structural/child-schema.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import type { FieldElement } from './field-element.ts';
import { type FieldSet, fieldSet, isEmpty, LEAF, NO_FIELDS } from './field-set.ts';
import { everyField } from './field-set-of.ts';
import { elementOf, shapeOf } from './shared-shape.ts';

export interface FieldChanges {
  /** Fields that were added or have another value. */
  readonly changed: FieldSet;
  /** Fields that were removed. */
  readonly removed: FieldSet;
}

const NOTHING: FieldChanges = { changed: NO_FIELDS, removed: NO_FIELDS };

/** Compares the fields of two values. Parts that both share by identity cost nothing. */
export function compareFields(before: unknown, after: unknown, schema: StructuralSchema): FieldChanges {
  if (before === after) return NOTHING;
  if (before === undefined) return { changed: everyField(after, schema), removed: NO_FIELDS };
  if (after === undefined) return { changed: NO_FIELDS, removed: everyField(before, schema) };
  const left = shapeOf(before, schema);
  const right = shapeOf(after, schema);
  if (left.as === 'map' && right.as === 'map') return compareMaps(left.fields, right.fields, schema);
  if (left.as === 'list' && right.as === 'list') return compareLists(left.items, right.items, schema);
  if (left.as === right.as) return sameValue(before, after) ? NOTHING : { changed: LEAF, removed: NO_FIELDS };
  // A container became a leaf or the other way round: the value of the field changed, and the fields below it were
  // removed.
  return {
    changed: right.as === 'leaf' ? LEAF : everyField(after, schema),
    removed: left.as === 'leaf' ? NO_FIELDS : fieldSet(false, everyField(before, schema).children),
  };
}

/** Collects the changes of children; makes no map where there are none. */
class Changes {
  #changed: Map<FieldElement, FieldSet> | undefined;
  #removed: Map<FieldElement, FieldSet> | undefined;

  add(element: FieldElement, { changed, removed }: FieldChanges): void {
    if (!isEmpty(changed)) {
      this.#changed ??= new Map();
      this.#changed.set(element, changed);
    }
    if (!isEmpty(removed)) {
      this.#removed ??= new Map();
      this.#removed.set(element, removed);
    }
  }

  result(): FieldChanges {
    if (this.#changed === undefined && this.#removed === undefined) return NOTHING;
    return {
      changed: this.#changed === undefined ? NO_FIELDS : fieldSet(false, this.#changed),
      removed: this.#removed === undefined ? NO_FIELDS : fieldSet(false, this.#removed),
    };
  }
}

function compareMaps(before: object, after: object, schema: StructuralSchema): FieldChanges {
  const changes = new Changes();
  for (const [key, value] of Object.entries(after)) {
    const old = ownValue(before, key);
    if (old !== value) changes.add(`f:${key}`, compareFields(old, value, fieldSchema(schema, key)));
  }
  for (const [key, value] of Object.entries(before))
    if (!Object.hasOwn(after, key) && value !== undefined)
      changes.add(`f:${key}`, compareFields(value, undefined, fieldSchema(schema, key)));
  return changes.result();
}

function compareLists(before: readonly unknown[], after: readonly unknown[], schema: StructuralSchema): FieldChanges {
  const changes = new Changes();
  const left = itemsByElement(before, schema);
  const right = itemsByElement(after, schema);
  for (const [element, items] of right)
    changes.add(element, compareItems(left.get(element) ?? [], items, itemSchema(schema)));
  for (const [element, items] of left)
    if (!right.has(element)) changes.add(element, compareItems(items, [], itemSchema(schema)));
  return changes.result();
}

/** Compares the items with one identity. Several of them are one leaf. */
function compareItems(before: readonly unknown[], after: readonly unknown[], schema: StructuralSchema): FieldChanges {
  if (before.length <= 1 && after.length <= 1) return compareFields(before[0], after[0], schema);
  if (before.length > 1 && after.length > 1)
    return sameValue(before, after) ? NOTHING : { changed: LEAF, removed: NO_FIELDS };
  if (after.length > 1) {
    const deleted = before.length === 0 ? NO_FIELDS : fieldSet(false, everyField(before[0], schema).children);
    return { changed: LEAF, removed: deleted };
  }
  if (after.length === 0) return { changed: NO_FIELDS, removed: LEAF };
  return { changed: everyField(after[0], schema), removed: NO_FIELDS };
}

function itemsByElement(items: readonly unknown[], schema: StructuralSchema): Map<FieldElement, unknown[]> {
  const byElement = new Map<FieldElement, unknown[]>();
  for (const [index, item] of items.entries()) {
    const element = elementOf(item, index, schema);
    const present = byElement.get(element);
    if (present === undefined) byElement.set(element, [item]);
    else present.push(item);
  }
  return byElement;
}
