import { fieldPath, invalidObject } from '../object/invalid-object.ts';
import { isJsonObject, ownValue } from '../object/own-property.ts';
import { fieldSchema, itemSchema } from '../schema/structural/child-schema.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';

type Fields = Readonly<Record<string, unknown>>;
type Path = readonly (string | number)[];
/** Items or their keys, in the order that a list shall have. */
type Order = readonly unknown[] | undefined;

/** `delete`, `replace` or `merge`, in a map or in an item of a list. */
const DIRECTIVE = '$patch';
/** Beside `f`: these values leave the list `f`. */
const DELETE_FROM_LIST = '$deleteFromPrimitiveList/';
/** Beside `f`: the order of the items of the list `f`. */
const ELEMENT_ORDER = '$setElementOrder/';
/** The only fields that a map may keep. */
const RETAIN_KEYS = '$retainKeys';

/**
 * Applies a strategic merge patch, the patch of `kubectl apply` for built-in kinds: a merge patch that merges lists of the type map
 * by their first key and lists of the type set by value, and replaces other lists. Returns a new value; neither argument is changed.
 * InvalidInput for directives and list items that make no sense.
 */
export function applyStrategicMergePatch(target: unknown, patch: unknown, schema: StructuralSchema): unknown {
  return mergeValue(target, patch, undefined, schema, []);
}

function mergeValue(target: unknown, patch: unknown, order: Order, schema: StructuralSchema, path: Path): unknown {
  if (isJsonObject(target) && isJsonObject(patch)) return mergeMap(target, patch, schema, path);
  if (Array.isArray(target) && Array.isArray(patch)) return mergeList(target, patch, order, schema, path);
  return withoutDirectives(patch);
}

function mergeMap(target: Fields, patch: Fields, schema: StructuralSchema, path: Path): unknown {
  const directive = directiveOf(patch, path);
  if (directive === 'delete') return {};
  if (directive === 'replace') return withoutDirectives(without(patch, DIRECTIVE));
  const fields = new Map(Object.entries(target));
  retainKeys(fields, patch, path);
  deleteFromLists(fields, patch, path);
  for (const [key, value] of Object.entries(patch)) {
    if (isDirective(key)) continue;
    const merged = isDeleted(value) && !isJsonObject(fields.get(key)) ? null : value;
    if (merged === null) fields.delete(key);
    else
      fields.set(
        key,
        mergeValue(fields.get(key), merged, orderOf(patch, key, path), fieldSchema(schema, key), [...path, key]),
      );
  }
  orderOtherLists(fields, patch, schema, path);
  // fromEntries defines properties, so a key named __proto__ stays a key.
  return Object.fromEntries(fields);
}

function deleteFromLists(fields: Map<string, unknown>, patch: Fields, path: Path): void {
  for (const [key, values] of Object.entries(patch)) {
    if (!key.startsWith(DELETE_FROM_LIST)) continue;
    const field = key.slice(DELETE_FROM_LIST.length);
    const removed = new Set(listOf(values, [...path, key]).map(textOf));
    const list = fields.get(field);
    if (!Array.isArray(list)) continue;
    const rest = list.filter((item) => !removed.has(textOf(item)));
    fields.set(field, rest);
  }
}

/** Lists that the patch orders and does not change otherwise. */
function orderOtherLists(fields: Map<string, unknown>, patch: Fields, schema: StructuralSchema, path: Path): void {
  for (const key of Object.keys(patch)) {
    const field = key.slice(ELEMENT_ORDER.length);
    const list = fields.get(field);
    if (!key.startsWith(ELEMENT_ORDER) || Object.hasOwn(patch, field) || !Array.isArray(list)) continue;
    fields.set(field, mergeValue(list, [], orderOf(patch, field, path), fieldSchema(schema, field), [...path, field]));
  }
}

function orderOf(patch: Fields, field: string, path: Path): Order {
  const key = ELEMENT_ORDER + field;
  const order = ownValue(patch, key);
  return order === undefined ? undefined : listOf(order, [...path, key]);
}

function retainKeys(fields: Map<string, unknown>, patch: Fields, path: Path): void {
  const given = ownValue(patch, RETAIN_KEYS);
  if (given === undefined) return;
  const retained = new Set(listOf(given, [...path, RETAIN_KEYS]));
  for (const [key, value] of Object.entries(patch))
    if (value !== null && !isDirective(key) && !retained.has(key))
      throw invalid([...path, key], `is not in ${RETAIN_KEYS} beside it`);
  for (const key of fields.keys()) if (!retained.has(key)) fields.delete(key);
}

/**
 * `order` lists items in the required order; by default this is the order of the patch. Other items stay before the items that
 * they preceded.
 */
function mergeList(
  target: readonly unknown[],
  patch: readonly unknown[],
  order: Order,
  schema: StructuralSchema,
  path: Path,
): unknown {
  const listType = schema['x-kubernetes-list-type'];
  if (listType !== 'map' && listType !== 'set')
    return order !== undefined && patch.length === 0 ? target : patch.map(withoutDirectives);
  const mergeKey = listType === 'map' ? schema['x-kubernetes-list-map-keys']?.[0] : undefined;
  const items = itemsByKey(target, mergeKey);
  const positions = new Map([...items.keys()].map((key, position) => [key, position]));
  const patched: string[] = [];
  for (const [index, item] of patch.entries()) {
    const place = [...path, index];
    const directive = isJsonObject(item) ? directiveOf(item, place) : undefined;
    if (directive === 'replace') return replaced(patch);
    const key = keyOf(item, mergeKey, place);
    if (directive === 'delete') {
      items.delete(key);
      continue;
    }
    const old = items.get(key);
    items.set(
      key,
      old === undefined ? withoutDirectives(item) : mergeValue(old, item, undefined, itemSchema(schema), place),
    );
    patched.push(key);
  }
  const wanted = order === undefined ? patched : order.map((item, index) => keyOf(item, mergeKey, [...path, index]));
  return inOrder(items, wanted, positions);
}

/** The list that a patch with an item `{$patch: replace}` puts in place of another. */
function replaced(patch: readonly unknown[]): unknown[] {
  return patch.filter((item) => !isJsonObject(item) || ownValue(item, DIRECTIVE) === undefined).map(withoutDirectives);
}

/** Returns the listed items in the given order; each other item stays before the first listed item that it preceded. */
function inOrder(
  items: ReadonlyMap<string, unknown>,
  wanted: readonly string[],
  positions: ReadonlyMap<string, number>,
): unknown[] {
  const listed = [...new Set(wanted)].filter((key) => items.has(key));
  const listedKeys = new Set(listed);
  const others = [...items.keys()].filter((key) => !listedKeys.has(key));
  const ordered: unknown[] = [];
  let next = 0;
  for (const key of listed) {
    const position = positions.get(key) ?? -1;
    for (; next < others.length && (positions.get(others[next] as string) ?? position) < position; next += 1)
      ordered.push(items.get(others[next] as string));
    ordered.push(items.get(key));
  }
  return [...ordered, ...others.slice(next).map((key) => items.get(key))];
}

/** Items of the stored list. One without a key, or with a key that another has, keeps its place by its index. */
function itemsByKey(list: readonly unknown[], mergeKey: string | undefined): Map<string, unknown> {
  const items = new Map<string, unknown>();
  for (const [index, item] of list.entries()) {
    const key = textOf(keyValue(item, mergeKey));
    items.set(key === undefined || items.has(key) ? `#${index}` : key, item);
  }
  return items;
}

function keyOf(item: unknown, mergeKey: string | undefined, path: Path): string {
  const key = textOf(keyValue(item, mergeKey));
  if (key !== undefined) return key;
  const rule = mergeKey === undefined ? 'must be a string, a number or a boolean' : `must have the key ${mergeKey}`;
  throw invalid(path, rule);
}

function keyValue(item: unknown, mergeKey: string | undefined): unknown {
  if (mergeKey === undefined) return item;
  return isJsonObject(item) ? ownValue(item, mergeKey) : undefined;
}

/** Distinguishes scalars, also those of different types; undefined for what is no scalar. */
function textOf(value: unknown): string | undefined {
  return value === null || typeof value === 'object' ? undefined : JSON.stringify(value);
}

function directiveOf(patch: Fields, path: Path): 'delete' | 'replace' | 'merge' | undefined {
  const directive = ownValue(patch, DIRECTIVE);
  if (directive === undefined || directive === 'delete' || directive === 'replace' || directive === 'merge')
    return directive;
  throw invalid([...path, DIRECTIVE], 'must be delete, replace or merge');
}

/** A value of the patch as it is stored where there was none: without directives and without fields that are null. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => !isDeleted(item)).map(withoutDirectives);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, inner]) => inner !== null && !isDirective(key) && !isDeleted(inner))
      .map(([key, inner]) => [key, withoutDirectives(inner)]),
  );
}

function isDirective(key: string): boolean {
  return key === DIRECTIVE || key === RETAIN_KEYS || key.startsWith(DELETE_FROM_LIST) || key.startsWith(ELEMENT_ORDER);
}

function isDeleted(value: unknown): boolean {
  return isJsonObject(value) && ownValue(value, DIRECTIVE) === 'delete';
}

function without(fields: Fields, key: string): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name !== key));
}

function listOf(value: unknown, path: Path): readonly unknown[] {
  if (!Array.isArray(value)) throw invalid(path, 'must be a list');
  return value;
}

/** The value is not shown: it may be a secret. */
function invalid(path: Path, rule: string) {
  return invalidObject('the strategic merge patch', [
    { field: fieldPath(path), message: `Invalid value: ${rule}`, path },
  ]);
}
