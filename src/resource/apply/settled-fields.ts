import { fieldSchema, itemSchema } from '../schema/child-schema.ts';
import type { StructuralSchema } from '../schema/structural-schema.ts';
import type { FieldElement } from './field-element.ts';
import { type FieldSet, fieldSet, LEAF } from './field-set.ts';
import { isUnknown } from './shared-shape.ts';

/**
 * Fields that were written down under an older schema, as this one sees them: who owned something in a value that can no longer be
 * shared owns all of it.
 */
export function settledFields(set: FieldSet, schema: StructuralSchema): FieldSet {
  let children: Map<FieldElement, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    if (child.children.size === 0) continue;
    const key = element.startsWith('f:') ? element.slice(2) : undefined;
    if (key !== undefined && isUnknown(schema, key)) continue;
    const ofChild = key === undefined ? itemSchema(schema) : fieldSchema(schema, key);
    const settled = isShared(child, ofChild) ? settledFields(child, ofChild) : LEAF;
    if (settled === child) continue;
    children ??= new Map(set.children);
    children.set(element, settled);
  }
  return children === undefined ? set : fieldSet(set.owned, children);
}

/** Whether a value of this schema can have what is beneath the path. */
function isShared(set: FieldSet, schema: StructuralSchema): boolean {
  const [element = ''] = set.children.keys();
  if (!element.startsWith('f:')) return (schema['x-kubernetes-list-type'] ?? 'atomic') !== 'atomic';
  return (schema.type ?? 'object') === 'object' && schema['x-kubernetes-map-type'] !== 'atomic';
}
