import type { Range } from './ipv4.ts';

/** Values by block of addresses, with a search for everything that overlaps a block. Each step costs at most 32 hops. */
export class RangeMap<Value> {
  #root: Node<Value> = { value: undefined, low: undefined, high: undefined };

  get(range: Range): Value | undefined {
    let node: Node<Value> | undefined = this.#root;
    for (let depth = 0; node !== undefined && depth < range.length; depth++) node = child(node, range.base, depth);
    return node?.value;
  }

  set(range: Range, value: Value): void {
    let node = this.#root;
    for (let depth = 0; depth < range.length; depth++) {
      let next = child(node, range.base, depth);
      if (next === undefined) {
        next = { value: undefined, low: undefined, high: undefined };
        if (isHigh(range.base, depth)) node.high = next;
        else node.low = next;
      }
      node = next;
    }
    node.value = value;
  }

  delete(range: Range): void {
    const path: Node<Value>[] = [this.#root];
    for (let depth = 0; depth < range.length; depth++) {
      const next = child(path[depth] as Node<Value>, range.base, depth);
      if (next === undefined) return;
      path.push(next);
    }
    (path[range.length] as Node<Value>).value = undefined;
    // Empty nodes are removed, so that memory is proportional to the current entries.
    for (let depth = range.length - 1; depth >= 0 && isEmpty(path[depth + 1] as Node<Value>); depth--) {
      const parent = path[depth] as Node<Value>;
      if (isHigh(range.base, depth)) parent.high = undefined;
      else parent.low = undefined;
    }
  }

  /** The values of all blocks that contain the given one, are the same, or lie inside it: larger ones first, then by address. */
  *overlapping(range: Range): Generator<Value> {
    let node: Node<Value> | undefined = this.#root;
    for (let depth = 0; node !== undefined && depth < range.length; depth++) {
      if (node.value !== undefined) yield node.value;
      node = child(node, range.base, depth);
    }
    if (node !== undefined) yield* all(node);
  }
}

interface Node<Value> {
  value: Value | undefined;
  low: Node<Value> | undefined;
  high: Node<Value> | undefined;
}

function isHigh(address: number, depth: number): boolean {
  return ((address >>> (31 - depth)) & 1) === 1;
}

function child<Value>(node: Node<Value>, address: number, depth: number): Node<Value> | undefined {
  return isHigh(address, depth) ? node.high : node.low;
}

function isEmpty(node: Node<unknown>): boolean {
  return node.value === undefined && node.low === undefined && node.high === undefined;
}

function* all<Value>(node: Node<Value>): Generator<Value> {
  if (node.value !== undefined) yield node.value;
  if (node.low !== undefined) yield* all(node.low);
  if (node.high !== undefined) yield* all(node.high);
}
