import { compareText } from '../path-rules.ts';

interface Node<Value> {
  value: Value | undefined;
  /** By the next segment of the path. Absent in leaves, of which there can be hundreds of thousands. */
  below: Map<string, Node<Value>> | undefined;
}

/** Values by path, which can be read and changed by folder: the cost is the depth of a path, not the number of paths. */
export class PathTree<Value> {
  readonly #root: Node<Value> = { value: undefined, below: undefined };
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(path: string): Value | undefined {
    return this.#find(path)?.value;
  }

  set(path: string, value: Value): void {
    let node = this.#root;
    for (const segment of segmentsOf(path)) {
      node.below ??= new Map();
      let next = node.below.get(segment);
      if (next === undefined) {
        next = { value: undefined, below: undefined };
        node.below.set(segment, next);
      }
      node = next;
    }
    if (node.value === undefined) this.#size += 1;
    node.value = value;
  }

  delete(path: string): void {
    const parents: [Node<Value>, string][] = [];
    let node = this.#root;
    for (const segment of segmentsOf(path)) {
      const next = node.below?.get(segment);
      if (next === undefined) return;
      parents.push([node, segment]);
      node = next;
    }
    if (node.value !== undefined) this.#size -= 1;
    node.value = undefined;
    for (let last = parents.pop(); last !== undefined && isEmpty(node); last = parents.pop()) {
      const [parent, segment] = last;
      parent.below?.delete(segment);
      if (parent.below?.size === 0) parent.below = undefined;
      node = parent;
    }
  }

  /** True if a path below this one has a value. */
  hasBelow(path: string): boolean {
    return this.#find(path)?.below !== undefined;
  }

  /** The values at a path and at the paths that contain it, the outermost first. */
  *above(path: string): Generator<Value> {
    let node: Node<Value> | undefined = this.#root;
    if (node.value !== undefined) yield node.value;
    for (const segment of segmentsOf(path)) {
      node = node.below?.get(segment);
      if (node === undefined) return;
      if (node.value !== undefined) yield node.value;
    }
  }

  /** The paths below this one with their values, in the order of their segments. */
  *below(path: string): Generator<[string, Value]> {
    const node = this.#find(path);
    if (node !== undefined) yield* walk(node, path);
  }

  #find(path: string): Node<Value> | undefined {
    let node: Node<Value> | undefined = this.#root;
    for (const segment of segmentsOf(path)) {
      node = node.below?.get(segment);
      if (node === undefined) return undefined;
    }
    return node;
  }
}

function isEmpty({ value, below }: Node<unknown>): boolean {
  return value === undefined && below === undefined;
}

function* walk<Value>({ below }: Node<Value>, path: string): Generator<[string, Value]> {
  if (below === undefined) return;
  for (const [segment, node] of [...below].sort(([a], [b]) => compareText(a, b))) {
    const full = path === '' ? segment : `${path}/${segment}`;
    if (node.value !== undefined) yield [full, node.value];
    yield* walk(node, full);
  }
}

/** The root is the empty path. */
function segmentsOf(path: string): string[] {
  return path === '' ? [] : path.split('/');
}
