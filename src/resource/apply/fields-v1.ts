import { isJsonObject } from '../object/own-property.ts';
import { type FieldElement, readElement } from './field-element.ts';
import { type FieldSet, fieldSet, LEAF, NO_FIELDS, sortedElements, union } from './field-set.ts';

type FieldsV1 = Readonly<Record<string, unknown>>;

/** No object is deeper; what is beneath counts as one field. */
const MAX_DEPTH = 200;

/** Writes a set the way `managedFields` keeps it: `{"f:spec": {".": {}, "f:color": {}}}`. */
export function toFieldsV1(set: FieldSet): FieldsV1 {
  // Every element has a prefix, so no key can be one of a prototype.
  const fields: Record<string, unknown> = {};
  if (set.owned && set.children.size > 0) fields['.'] = {};
  for (const element of sortedElements(set)) fields[element] = toFieldsV1(set.children.get(element) ?? NO_FIELDS);
  return fields;
}

/** Parses fields that a client wrote. Skips unknown elements, since a later version may define them. */
export function fromFieldsV1(fields: unknown): FieldSet {
  return isJsonObject(fields) ? fieldSet(false, read(fields, 0).children) : NO_FIELDS;
}

function read(fields: FieldsV1, depth: number): FieldSet {
  let owned = false;
  const children = new Map<FieldElement, FieldSet>();
  for (const key of Object.keys(fields)) {
    if (key === '.') owned = true;
    const element = readElement(key);
    if (element === undefined) continue;
    const inner = fields[key];
    const child = isJsonObject(inner) && depth < MAX_DEPTH ? read(inner, depth + 1) : LEAF;
    const present = children.get(element);
    children.set(element, present === undefined ? child : union(present, child));
  }
  return fieldSet(owned || children.size === 0, children);
}
