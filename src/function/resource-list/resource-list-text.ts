import { posix } from 'node:path';
import { isMap, isScalar, isSeq, type Node, Pair, YAMLMap, YAMLSeq } from 'yaml';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { checkPath } from '../../git/objects/paths.ts';
import type { ResourceList } from '../model/function.ts';
import type { FunctionResult } from '../model/function-result.ts';
import { DEFAULT_FUNCTION_LIMITS, type FunctionLimits } from '../model/pipeline.ts';
import { Resource } from '../resource/resource.ts';
import { graftNode } from '../yaml/graft-node.ts';
import { createNode, withoutJsonFormat } from '../yaml/node-value.ts';
import { parseResourceText } from '../yaml/parse-resource-text.ts';
import { keepKeyComments, newDocument } from '../yaml/print-node.ts';
import { type PlaceAnnotation, readPlaceAnnotations, withoutPlace, withPlace } from './place-annotations.ts';
import { readResults } from './read-results.ts';

const API_VERSIONS = /^config\.kubernetes\.io\/(?:v1|v1beta1|v1alpha1)$/;

/** The name of the format in messages. */
const NAME = 'ResourceList';

/**
 * A ResourceList as functions outside of this process read it, comments included. Annotations of the items have their place in the
 * package.
 */
export function writeResourceList({ items, config }: Pick<ResourceList, 'items' | 'config'>): string {
  const root = new YAMLMap();
  const add = (name: string, value: Node) => root.items.push(new Pair(createNode(name), value));
  add('apiVersion', createNode('config.kubernetes.io/v1'));
  add('kind', createNode(NAME));
  const list = new YAMLSeq();
  list.items = items.map(withPlace);
  add('items', list);
  if (config !== undefined) add('functionConfig', config.root);
  return keepKeyComments(newDocument(root).toString({ lineWidth: 0, indentSeq: false }));
}

export interface ReadListOptions {
  /** The items that the function was given. What it did not change keeps their text, comments and order of fields. */
  readonly sent?: readonly Resource[];
  readonly limits?: Pick<FunctionLimits, 'outputBytes' | 'resources'>;
}

/**
 * Reads the output of a function. Throws InvalidInput if it is not a ResourceList, or if an item has no place in the package or that of
 * another one; LimitExceeded above the limits.
 */
export function readResourceList(
  text: string,
  { sent = [], limits = DEFAULT_FUNCTION_LIMITS }: ReadListOptions = {},
): { items: Resource[]; results: FunctionResult[] } {
  if (Buffer.byteLength(text) > limits.outputBytes)
    throw new SluiceError('LimitExceeded', `the ${NAME} has more than ${limits.outputBytes} bytes`);
  if (!/\S/.test(text)) throw new SluiceError('InvalidInput', `it printed no ${NAME}`);
  const list = parseResourceText(text, { file: NAME }).document.contents;
  if (list.flow === true) withoutJsonFormat(list);
  return readListNode(list, { sent, limits });
}

/** As `readResourceList`, for a tree that the caller no longer uses. */
export function readListNode(
  list: YAMLMap,
  { sent = [], limits = DEFAULT_FUNCTION_LIMITS }: ReadListOptions = {},
): { items: Resource[]; results: FunctionResult[] } {
  const [apiVersion, kind] = [textOf(list, 'apiVersion'), textOf(list, 'kind')];
  if (kind !== NAME || !API_VERSIONS.test(apiVersion))
    throw invalid(
      `it is ${JSON.stringify(`${apiVersion} ${kind}`.slice(0, 100))}, not config.kubernetes.io/v1 ${NAME}`,
    );
  const nodes = itemsOf(list.get('items', true));
  if (nodes.length > limits.resources)
    throw new SluiceError(
      'LimitExceeded',
      `the ${NAME} has ${nodes.length} items, at most ${limits.resources} are read`,
    );
  const match = new SentItems(sent);
  const taken = new Map<string, Resource>();
  const items = nodes.map((root) => {
    const { internal, legacy } = readPlaceAnnotations(root);
    const before = match.take(root, [internal, legacy]);
    const path = annotatedFirst(internal.path, legacy.path, before?.file);
    const index = annotatedFirst(internal.index, legacy.index, before === undefined ? undefined : String(before.index));
    withoutPlace(root, before);
    const contents = before === undefined ? root : (graftNode(before.clone().root, root) as YAMLMap);
    const item = Resource.of(
      contents,
      { file: path === undefined ? '' : cleanPath(path, root), index: toIndex(index) },
      before,
    );
    if (path === undefined || index === undefined) return item;
    const place = `${item.file}\0${item.index}`;
    const other = taken.get(place);
    if (other !== undefined)
      throw invalid(
        `${item.describe()} and ${other.kind} ${other.name} have the same path and the same index ${item.index}`,
      );
    taken.set(place, item);
    return item;
  });
  return { items, results: readResults(list.get('results', true)) };
}

/** Finds what an item was when it was sent, each at most once. */
class SentItems {
  readonly #byPlace = new Map<string, Resource>();
  readonly #byName = new Map<string, Resource[]>();
  readonly #left: Set<Resource>;

  constructor(sent: readonly Resource[]) {
    this.#left = new Set(sent);
    for (const item of sent) {
      this.#byPlace.set(`${item.file}\0${item.index}`, item);
      const list = this.#byName.get(nameOf(item.root));
      if (list === undefined) this.#byName.set(nameOf(item.root), [item]);
      else list.push(item);
    }
  }

  take(root: YAMLMap, places: readonly PlaceAnnotation[]): Resource | undefined {
    const kind = textOf(root, 'kind');
    const found =
      places
        .map(({ path = '', index }) => this.#byPlace.get(`${path}\0${index}`))
        .find((item) => item !== undefined && item.kind === kind && this.#left.has(item)) ??
      this.#byName.get(nameOf(root))?.find((item) => this.#left.has(item));
    if (found !== undefined) this.#left.delete(found);
    return found;
  }
}

function itemsOf(node: unknown): YAMLMap[] {
  if (node === undefined || (isScalar(node) && node.value === null)) return [];
  if (!isSeq(node)) throw invalid('its items are not a list');
  for (const [at, item] of node.items.entries()) {
    if (!isMap(item) || textOf(item, 'kind') === '') throw invalid(`item ${at} is not a resource: it has no kind`);
  }
  return node.items as YAMLMap[];
}

/** The changed place: a function may know only one of the two pairs of annotations. */
function annotatedFirst(
  internal: string | undefined,
  legacy: string | undefined,
  sent: string | undefined,
): string | undefined {
  return internal === undefined || (internal === sent && legacy !== undefined) ? legacy : internal;
}

function cleanPath(path: string, root: YAMLMap): string {
  const clean = posix.normalize(path);
  try {
    checkPath(clean);
  } catch (error) {
    throw invalid(`${textOf(root, 'kind')} ${nameAt(root, 'name')}: ${messageOf(error)}`);
  }
  return clean;
}

function toIndex(text: string | undefined): number {
  if (text === undefined) return 0;
  if (!/^\d{1,6}$/.test(text))
    throw invalid(`the index ${JSON.stringify(text.slice(0, 20))} of an item is not a number`);
  return Number(text);
}

function nameOf(root: YAMLMap): string {
  const [namespace, name] = [nameAt(root, 'namespace'), nameAt(root, 'name')];
  return JSON.stringify([textOf(root, 'apiVersion'), textOf(root, 'kind'), namespace, name]);
}

function nameAt(root: YAMLMap, field: string): string {
  const metadata = root.get('metadata', true);
  return isMap(metadata) ? textOf(metadata, field) : '';
}

function textOf(map: YAMLMap, field: string): string {
  const value = map.get(field, true);
  return isScalar(value) && value.value !== null ? String(value.value) : '';
}

function invalid(why: string): SluiceError {
  return new SluiceError('InvalidInput', `the ${NAME} of the function is invalid: ${why}`);
}
