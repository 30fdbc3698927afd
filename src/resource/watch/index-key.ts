import type { KubernetesObject } from '../object/object.ts';
import type { KindSchema } from '../schema/kind-schema.ts';
import type { FieldSelector } from '../selector/field-selector.ts';
import { readField, stepsOf } from '../selector/field-selector.ts';
import type { Selection } from '../storage/storage.ts';

/** A key in the index of objects: the name, the namespace, one label or one selectable field, with the value. */
export type IndexKey = string;

const NAME = 'name:';
const nameKey = (name: string): IndexKey => NAME + name;
const NAMESPACE = 'namespace:';
const namespaceKey = (namespace: string): IndexKey => NAMESPACE + namespace;
const labelKey = (key: string, value: string): IndexKey => `label:${key}=${value}`;

/** So many keys of one field are kept to be used again. */
const MAX_KEPT_KEYS = 256;
const fieldKeys = new Map<string, Map<string, IndexKey>>();

/**
 * Most objects share their keys with other objects, so the same text is created, hashed and stored once. It is not an `LruCache`:
 * this runs for each field of each object, and reordering entries would cost more than recreating a few keys.
 */
function fieldKey(path: string, value: string): IndexKey {
  let kept = fieldKeys.get(path);
  if (kept === undefined) {
    kept = new Map();
    fieldKeys.set(path, kept);
  }
  let key = kept.get(value);
  if (key !== undefined) return key;
  if (kept.size >= MAX_KEPT_KEYS) kept.clear();
  key = `field:${path}=${value}`;
  kept.set(value, key);
  return key;
}

/** The namespace that a key means; undefined for all other keys. */
export function namespaceOf(key: IndexKey): string | undefined {
  return key.startsWith(NAMESPACE) ? key.slice(NAMESPACE.length) : undefined;
}

/** The name that a key means; undefined for all other keys. */
export function nameOf(key: IndexKey): string | undefined {
  return key.startsWith(NAME) ? key.slice(NAME.length) : undefined;
}

/** Access to the indexed parts of an object. */
export interface IndexedObject {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** The value of a selectable field as text; undefined if the object has none. */
  readonly field: (path: string) => string | undefined;
}

/** The view of an object that `indexKeysOf` takes. */
export function indexedObject(object: KubernetesObject): IndexedObject {
  const { name, namespace, labels } = object.metadata;
  return { name, namespace, labels, field: (path) => readField(object, stepsOf(path)) };
}

/** All keys that an object is found by. Fields with any key in brackets are not among them. */
export function indexKeysOf(indexed: IndexedObject, kind: Pick<KindSchema, 'selectableFields'>): IndexKey[] {
  const keys = sharedKeysOf(indexed, kind);
  keys.push(nameKey(indexed.name));
  if (indexed.namespace !== undefined) keys.push(namespaceKey(indexed.namespace));
  return keys;
}

/** Those of them that objects share: all but name and namespace. */
export function sharedKeysOf(
  { labels, field }: Pick<IndexedObject, 'labels' | 'field'>,
  kind: Pick<KindSchema, 'selectableFields'>,
): IndexKey[] {
  const keys: IndexKey[] = [];
  for (const [key, value] of Object.entries(labels ?? {})) keys.push(labelKey(key, value));
  for (const { path, missing } of kind.selectableFields)
    if (!path.endsWith('[*]')) keys.push(fieldKey(path, field(path) ?? missing ?? ''));
  return keys;
}

/**
 * Returns a key that every object of a selection has, likely the one with the fewest objects; undefined if the selection uses no
 * indexed field. The caller must still test the selection on each object.
 */
export function narrowestKey(selection: Selection, kind: Pick<KindSchema, 'selectableFields'>): IndexKey | undefined {
  const byField = fieldRequirement(selection.fieldSelector, kind);
  if (byField?.startsWith('name:') === true) return byField;
  for (const { key, operator, values } of selection.labelSelector?.requirements ?? []) {
    const [value] = values;
    if (operator === 'In' && values.length === 1 && value !== undefined) return labelKey(key, value);
  }
  if (byField !== undefined) return byField;
  return selection.namespace === undefined ? undefined : namespaceKey(selection.namespace);
}

function fieldRequirement(
  selector: FieldSelector | undefined,
  kind: Pick<KindSchema, 'selectableFields'>,
): IndexKey | undefined {
  let found: IndexKey | undefined;
  for (const { path, operator, value } of selector?.requirements ?? []) {
    if (operator !== '=') continue;
    if (path === 'metadata.name') return nameKey(value);
    if (path === 'metadata.namespace') found ??= namespaceKey(value);
    else if (kind.selectableFields.some((field) => field.path === path)) found = fieldKey(path, value);
  }
  return found;
}
