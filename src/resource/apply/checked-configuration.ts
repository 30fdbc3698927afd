import { SluiceError } from '../../foundation/sluice-error.ts';
import { type FieldCause, fieldPath, invalidObject } from '../object/invalid-object.ts';
import { isJsonObject, ownValue, setOwnValue } from '../object/own-property.ts';
import { fieldSchema, itemSchema } from '../schema/structural/child-schema.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import { type FieldElement, showElement } from './field-element.ts';
import { identityOf, isUnknown, shapeOf } from './shared-shape.ts';

type Path = readonly (string | number)[];

/** A schema need not declare them. */
const EVERY_OBJECT_HAS = ['apiVersion', 'kind', 'metadata'];
/** No configuration is deeper. */
const MAX_DEPTH = 200;
/** More causes do not help. */
const MAX_CAUSES = 50;

/**
 * Checks a configuration that a client applies: every field must be known, and every item of a shared list must have a unique
 * identity. Returns it without null fields, unless the schema permits null. Throws InvalidInput with a cause for each error.
 */
export function checkedConfiguration(applied: unknown, schema: StructuralSchema): Record<string, unknown> {
  if (!isJsonObject(applied)) throw new SluiceError('BadRequest', 'what is applied must be an object');
  const causes: FieldCause[] = [];
  const checked = check(applied, schema, [], causes);
  if (causes.length > 0) throw invalidObject(subjectOf(applied), causes);
  return checked as Record<string, unknown>;
}

function check(value: unknown, schema: StructuralSchema, path: Path, causes: FieldCause[]): unknown {
  const shape = shapeOf(value, schema);
  if (shape.as === 'leaf' || causes.length >= MAX_CAUSES) return value;
  if (path.length > MAX_DEPTH) {
    causes.push(causeAt(path.slice(0, 3), `Too deep: at most ${MAX_DEPTH} levels`));
    return value;
  }
  return shape.as === 'map'
    ? checkMap(shape.fields, schema, path, causes)
    : checkList(shape.items, schema, path, causes);
}

function checkMap(
  fields: Readonly<Record<string, unknown>>,
  schema: StructuralSchema,
  path: Path,
  causes: FieldCause[],
): unknown {
  let checked: Record<string, unknown> | undefined;
  for (const [key, value] of Object.entries(fields)) {
    const ofField = fieldSchema(schema, key);
    if (isUnknown(schema, key) && !(path.length === 0 && EVERY_OBJECT_HAS.includes(key)))
      causes.push(causeAt([...path, key], 'field not declared in schema'));
    if (value === undefined || (value === null && !acceptsNull(ofField))) {
      checked ??= { ...fields };
      delete checked[key];
      continue;
    }
    const inner = check(value, ofField, [...path, key], causes);
    if (inner === value) continue;
    checked ??= { ...fields };
    setOwnValue(checked, key, inner);
  }
  return checked ?? fields;
}

function checkList(items: readonly unknown[], schema: StructuralSchema, path: Path, causes: FieldCause[]): unknown {
  const seen = new Set<FieldElement>();
  let same = true;
  const checked = items.map((item, index) => {
    const element = identityOf(item, schema);
    if (element === undefined) causes.push(causeAt([...path, index], ruleOfItems(schema)));
    else if (seen.has(element)) causes.push(causeAt(path, `duplicate entries for key ${showElement(element)}`));
    else seen.add(element);
    const inner = check(item, itemSchema(schema), [...path, index], causes);
    if (inner !== item) same = false;
    return inner;
  });
  return same ? items : checked;
}

function acceptsNull(schema: StructuralSchema): boolean {
  return schema.nullable === true || (schema.type === undefined && schema['x-kubernetes-int-or-string'] !== true);
}

function ruleOfItems(schema: StructuralSchema): string {
  if (schema['x-kubernetes-list-type'] === 'set')
    return 'Invalid value: an item of a set must be a string, a number or a boolean';
  return `Required value: an item must have one of the keys ${(schema['x-kubernetes-list-map-keys'] ?? []).join(', ')}`;
}

function causeAt(path: Path, message: string): FieldCause {
  return { field: fieldPath(path), message, path };
}

function subjectOf(applied: Readonly<Record<string, unknown>>): string {
  const { kind, metadata } = applied;
  const name = isJsonObject(metadata) ? ownValue(metadata, 'name') : undefined;
  const shown = typeof kind === 'string' ? kind : 'what is applied';
  return typeof name === 'string' ? `${shown} ${JSON.stringify(name)}` : shown;
}
