import { type Range, sizeOf } from './ipv4.ts';

/**
 * The free addresses of one block: a binary trie over the bits below its length. A node counts how much of its block is free and
 * how large the largest aligned free block in it is, so that finding the lowest free block of a size, taking and giving back each
 * cost at most 32 steps, however many blocks are taken. Taken blocks may overlap and are counted.
 */
export class FreeSpace {
  readonly #range: Range;
  #root: Node | undefined;

  constructor(range: Range) {
    this.#range = range;
  }

  /** Number of free addresses. */
  get free(): number {
    return this.#root === undefined ? sizeOf(this.#range.length) : this.#root.free;
  }

  /** Marks a block inside of this one as taken. */
  take(range: Range): void {
    this.#root = change(this.#root, this.#range.length, range, 1);
  }

  /** Undoes one `take` of exactly this block. */
  release(range: Range): void {
    this.#root = change(this.#root, this.#range.length, range, -1);
  }

  /** True if no address of the block is taken. */
  isFree(range: Range): boolean {
    let node = this.#root;
    for (let depth = this.#range.length; node !== undefined; depth++) {
      if (node.count > 0 || depth === range.length) return false;
      node = bit(range.base, depth) === 0 ? node.low : node.high;
    }
    return true;
  }

  /** The lowest aligned free block with this length, if there is one. */
  lowest(length: number): Range | undefined {
    if (length < this.#range.length) return undefined;
    const wanted = 32 - length;
    let { base } = this.#range;
    let node = this.#root;
    if (node !== undefined && node.largest < wanted) return undefined;
    for (let depth = this.#range.length; node !== undefined; depth++) {
      if (largestOf(node.low, depth + 1) >= wanted) node = node.low;
      else {
        base += sizeOf(depth + 1);
        node = node.high;
      }
    }
    return { base, length };
  }
}

interface Node {
  /** The number of times that exactly this block is taken. */
  count: number;
  low: Node | undefined;
  high: Node | undefined;
  free: number;
  /** Bits of the largest aligned free block in this node, -1 if nothing is free. */
  largest: number;
}

/** Bit number `depth` of an address, counted from the most significant. */
function bit(address: number, depth: number): number {
  return (address >>> (31 - depth)) & 1;
}

function largestOf(node: Node | undefined, depth: number): number {
  return node === undefined ? 32 - depth : node.largest;
}

function freeOf(node: Node | undefined, depth: number): number {
  return node === undefined ? sizeOf(depth) : node.free;
}

/** Returns undefined if the block is completely free, as free blocks have no node. */
function change(old: Node | undefined, depth: number, range: Range, by: number): Node | undefined {
  const node = old ?? { count: 0, low: undefined, high: undefined, free: 0, largest: 0 };
  if (depth === range.length) node.count += by;
  else if (bit(range.base, depth) === 0) node.low = change(node.low, depth + 1, range, by);
  else node.high = change(node.high, depth + 1, range, by);

  if (node.count > 0) {
    node.free = 0;
    node.largest = -1;
    return node;
  }
  if (node.low === undefined && node.high === undefined) return undefined;
  node.free = freeOf(node.low, depth + 1) + freeOf(node.high, depth + 1);
  node.largest = Math.max(largestOf(node.low, depth + 1), largestOf(node.high, depth + 1));
  return node;
}
