import { isMap, isScalar, type Node, Pair, Scalar, YAMLMap } from 'yaml';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Resource } from '../resource/resource.ts';
import { createNode } from '../yaml/node-value.ts';

const PATH = 'config.kubernetes.io/path';
const INDEX = 'config.kubernetes.io/index';
const INTERNAL_PATH = 'internal.config.kubernetes.io/path';
const INTERNAL_INDEX = 'internal.config.kubernetes.io/index';
const LIST_INDENT = 'internal.config.kubernetes.io/seqindent';

const NAMES = [INDEX, PATH, INTERNAL_INDEX, INTERNAL_PATH, LIST_INDENT];

/** The place of a resource, as a function returned it. */
export interface PlaceAnnotation {
  readonly path: string | undefined;
  readonly index: string | undefined;
}

/** The current annotations, and those of older functions. */
export interface PlaceAnnotations {
  readonly internal: PlaceAnnotation;
  readonly legacy: PlaceAnnotation;
}

/** The fields of a resource with annotations for its place. Shares everything else with the resource. */
export function withPlace(resource: Resource): YAMLMap {
  const { root, file, index } = resource;
  const metadata = mappingAt(resource, root, 'metadata');
  const annotations = mappingAt(resource, metadata, 'annotations');
  const pairs = annotations.items.filter((pair) => !isOurs(pair));
  const add = (name: string, value: string) => {
    pairs.push(new Pair(createNode(name), Object.assign(new Scalar(value), { type: 'QUOTE_SINGLE' as const })));
  };
  add(INDEX, String(index));
  if (file !== '') add(PATH, file);
  add(INTERNAL_INDEX, String(index));
  if (file !== '') add(INTERNAL_PATH, file);
  if (resource.text !== undefined) add(LIST_INDENT, listIndent(resource.text));
  return replaced(root, 'metadata', replaced(metadata, 'annotations', withItems(annotations, pairs)));
}

/** Reads the place annotations of a returned resource. */
export function readPlaceAnnotations(root: YAMLMap): PlaceAnnotations {
  const at = (name: string) => {
    const metadata = root.get('metadata', true);
    const annotations = isMap(metadata) ? metadata.get('annotations', true) : undefined;
    const value = isMap(annotations) ? annotations.get(name, true) : undefined;
    return isScalar(value) && value.value !== null ? String(value.value) : undefined;
  };
  return {
    internal: { path: at(INTERNAL_PATH), index: at(INTERNAL_INDEX) },
    legacy: { path: at(PATH), index: at(INDEX) },
  };
}

/** Removes the place annotations of a returned resource, and restores those that it had before it was sent. */
export function withoutPlace(root: YAMLMap, sent: Resource | undefined): void {
  const metadata = root.get('metadata', true);
  const annotations = isMap(metadata) ? metadata.get('annotations', true) : undefined;
  if (!isMap(metadata) || !isMap(annotations)) return;
  const had = sent?.node(['metadata', 'annotations']);
  const restored = isMap(had) ? had.items.filter(isOurs) : [];
  annotations.items = [...annotations.items.filter((pair) => !isOurs(pair)), ...restored];
  if (annotations.items.length > 0 || isMap(had)) return;
  metadata.delete('annotations');
  if (metadata.items.length === 0 && sent?.node(['metadata']) === undefined) root.delete('metadata');
}

function isOurs({ key }: Pair): boolean {
  return isScalar(key) && NAMES.includes(String(key.value));
}

function mappingAt(resource: Resource, map: YAMLMap, name: string): YAMLMap {
  const value = map.get(name, true) as Node | undefined;
  if (isMap(value)) return value;
  if (value === undefined || (isScalar(value) && value.value === null)) return new YAMLMap();
  throw new SluiceError('InvalidInput', `${resource.describe()}: ${name} is not a mapping, so no function can read it`);
}

function replaced(map: YAMLMap, name: string, value: YAMLMap): YAMLMap {
  const items = map.items.map((pair) =>
    isScalar(pair.key) && pair.key.value === name ? new Pair(pair.key, value) : pair,
  );
  if (!map.has(name)) items.push(new Pair(createNode(name), value));
  return withItems(map, items);
}

function withItems(map: YAMLMap, items: Pair[]): YAMLMap {
  const made = new YAMLMap();
  made.items = items;
  if (map.flow === true && map.items.length > 0) made.flow = true;
  if (map.comment) made.comment = map.comment;
  if (map.commentBefore) made.commentBefore = map.commentBefore;
  return made;
}

/** The indentation of lists below their fields, with kyaml's names. */
function listIndent(text: string): 'wide' | 'compact' {
  const found = /^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\r?\n(?: *#[^\n]*\n)?\1( *)- /m.exec(text);
  return (found?.[2] ?? '') === '' ? 'compact' : 'wide';
}
