import { isMap, isScalar, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import type { Resource } from '../../resource/resource.ts';
import { createNode } from '../../yaml/node-value.ts';
import { scalarText } from '../support/text/scalar-text.ts';
import type { ItemStep, Step } from './field-path.ts';

/** A place of a node in a resource. */
export interface Slot {
  readonly node: Node;
  put(node: Node): void;
}

/** The field that a source names; undefined if it is missing. The first item counts where a list has several. */
export function findSource(resource: Resource, steps: readonly Step[]): Node | undefined {
  let at: Node | null | undefined = resource.root;
  for (const step of steps) {
    if (step.type === 'every') return undefined;
    if (step.type === 'item') {
      if (!isSeq(at)) return undefined;
      at = (at.items as Node[]).find((item) => fieldOf(item, step.field) === step.value);
    } else if (isMap(at)) at = pairOf(at, step.key)?.value;
    else if (isSeq(at) && isIndex(step.key)) at = at.items[Number(step.key)] as Node | undefined;
    else return undefined;
    if (at === undefined || at === null) return undefined;
  }
  return at;
}

/**
 * Every field that a path leads to. With `create` missing parts are created empty; a list gets an item behind
 * its last one. `why` is the reason if there is none.
 */
export function findTargets(
  resource: Resource,
  steps: readonly Step[],
  options: SearchOptions,
): { readonly slots: readonly Slot[]; readonly why?: string } {
  const search = new TargetSearch(steps, options);
  search.from(resource.root, 0);
  return search.slots.length > 0 || search.why === undefined ? search : { slots: [], why: search.why };
}

interface SearchOptions {
  /** Creates missing parts of the path. */
  readonly create: boolean;
  /** `[name=web]` is the first item with exactly that text, as for a source. */
  readonly exactItems: boolean;
}

class TargetSearch {
  readonly slots: Slot[] = [];
  why?: string;
  readonly #steps: readonly Step[];
  readonly #create: boolean;
  readonly #exactItems: boolean;

  constructor(steps: readonly Step[], { create, exactItems }: SearchOptions) {
    this.#steps = steps;
    this.#create = create;
    this.#exactItems = exactItems;
  }

  from(node: Node, depth: number): void {
    const step = this.#steps[depth];
    if (step === undefined) return;
    if (isMap(node)) {
      if (step.type === 'key') this.#key(node, step.key, depth);
      else this.why = 'a mapping is in place of a list';
    } else if (isSeq(node)) {
      if (step.type === 'every') for (let at = 0; at < node.items.length; at++) this.#item(node, at, depth);
      else if (step.type === 'item') this.#matching(node, step, depth);
      else this.#place(node, step.key, depth);
    }
  }

  #key(map: YAMLMap, key: string, depth: number): void {
    let pair = pairOf(map, key);
    if (pair === undefined) {
      if (!this.#create) return;
      pair = new Pair(createNode(key), this.#made(depth + 1)) as Pair<unknown, Node>;
      append(map, pair);
    }
    const found = pair;
    this.#step(
      () => found.value ?? emptyScalar(),
      (node) => {
        found.value = node;
      },
      depth,
    );
  }

  #place(list: YAMLSeq, key: string, depth: number): void {
    const { length } = list.items;
    if (!isIndex(key)) this.why = `a list is in place of a mapping with ${JSON.stringify(key)}`;
    else if (Number(key) < length) this.#item(list, Number(key), depth);
    else if (Number(key) === length && this.#create) {
      append(list, this.#made(depth + 1));
      this.#item(list, length, depth);
    } else this.why = `index ${key} specified but only ${length} elements found`;
  }

  /** As in newer versions of kustomize, the value is searched anywhere in the text of the field, and may be a regular expression. */
  #matching(list: YAMLSeq, { field, value, search }: ItemStep, depth: number): void {
    const { length } = list.items;
    let any = false;
    for (let at = 0; at < length; at++) {
      const text = fieldOf(list.items[at] as Node, field);
      if (text === undefined || !(this.#exactItems ? text === value : search(text))) continue;
      any = true;
      this.#item(list, at, depth);
      if (this.#exactItems) break;
    }
    if (any || !this.#create) return;
    append(list, createNode(field === '' ? value : { [field]: value }));
    this.#item(list, length, depth);
  }

  #item(list: YAMLSeq, at: number, depth: number): void {
    this.#step(
      () => list.items[at] as Node,
      (node) => {
        list.items[at] = node;
      },
      depth,
    );
  }

  #step(get: () => Node, put: (node: Node) => void, depth: number): void {
    if (depth === this.#steps.length - 1) {
      this.slots.push({
        get node() {
          return get();
        },
        put,
      });
      return;
    }
    const node = get();
    if (this.#create && isScalar(node) && node.value === null) put(this.#made(depth + 1));
    this.from(get(), depth + 1);
  }

  /** The node to create for a missing part before the step at a depth. */
  #made(depth: number): Node {
    const next = this.#steps[depth];
    if (next === undefined) return emptyScalar();
    return next.type !== 'key' || isIndex(next.key) ? new YAMLSeq() : new YAMLMap();
  }
}

function append(collection: YAMLMap | YAMLSeq, item: unknown): void {
  if (collection.items.length === 0) collection.flow = false;
  collection.items.push(item as never);
}

function emptyScalar(): Scalar {
  return Object.assign(new Scalar(null), { type: 'PLAIN' as const });
}

function isIndex(key: string): boolean {
  return /^\d{1,9}$/.test(key);
}

function pairOf(map: YAMLMap, key: string): Pair<unknown, Node | null> | undefined {
  return map.items.find((pair) => isScalar(pair.key) && String(pair.key.value ?? 'null') === key) as never;
}

/** The text of a field of an item, or of the item itself for no field. */
function fieldOf(item: Node, field: string): string | undefined {
  const node = field === '' ? item : isMap(item) ? pairOf(item, field)?.value : undefined;
  return isScalar(node) ? scalarText(node) : undefined;
}
