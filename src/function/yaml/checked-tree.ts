import { isAlias, isMap, isScalar, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import type { SluiceError } from '../../foundation/sluice-error.ts';

/** More levels than any resource has; every walk over a document may recurse this deep. */
const MAX_DEPTH = 100;

/** Nodes that the aliases of one document may expand to. */
const MAX_COPIES = 100_000;

type Refuse = (offset: number, why: string) => SluiceError;

/**
 * Makes a plain tree of the parser's: no aliases, keys that are texts and occur once, not too deep. Done in place, in one
 * walk; throws the error of `refuse` where that is not possible.
 */
export class CheckedTree {
  /** True if there were anchors, aliases or tags. */
  entangled = false;
  readonly #refuse: Refuse;
  /** By name; undefined while what it names is being read. */
  readonly #anchors = new Map<string, Node | undefined>();
  #copies = 0;

  constructor(root: YAMLMap, refuse: Refuse) {
    this.#refuse = refuse;
    this.#check(root, 0);
  }

  /** The replacement of a node. */
  #check(node: Node, depth: number): Node {
    const offset = node.range?.[0] ?? 0;
    if (isAlias(node)) {
      this.entangled = true;
      const target = this.#anchors.get(node.source);
      if (target === undefined)
        throw this.#refuse(offset, `the alias *${node.source} refers to nothing that is complete before it`);
      return this.#copy(target, depth, offset);
    }
    if (depth > MAX_DEPTH) throw this.#refuse(offset, `it nests deeper than ${MAX_DEPTH} levels`);
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, undefined);
    if (anchor !== undefined || hasOwnTag(node)) this.entangled = true;
    if (isMap(node)) this.#checkMap(node, depth);
    else if (isSeq(node)) {
      for (const [at, item] of node.items.entries()) node.items[at] = this.#checkValue(item as Node | null, depth + 1);
    }
    if (anchor !== undefined) {
      this.#anchors.set(anchor, node);
      delete (node as { anchor?: string }).anchor;
    }
    return node;
  }

  #checkValue(node: Node | null, depth: number): Node {
    return node === null ? emptyScalar() : this.#check(node, depth);
  }

  #checkMap(map: YAMLMap, depth: number): void {
    const names = new Set<string>();
    const merged: YAMLMap[] = [];
    for (const pair of map.items as Pair<Node, Node | null>[]) {
      const offset = pair.key.range?.[0] ?? map.range?.[0] ?? 0;
      if (!isScalar(pair.key)) throw this.#refuse(offset, 'a key is not a text');
      const { anchor } = pair.key;
      const name = String(pair.key.value ?? 'null');
      if (names.has(name))
        throw this.#refuse(offset, `the key ${JSON.stringify(name.slice(0, 100))} occurs twice in one mapping`);
      names.add(name);
      if (anchor !== undefined || hasOwnTag(pair.key)) this.#check(pair.key, depth);
      const isMerge = name === '<<' && pair.key.type === 'PLAIN' && namesAliases(pair.value);
      pair.value = this.#checkValue(pair.value, depth + 1);
      if (isMerge)
        for (const one of isSeq(pair.value) ? pair.value.items : [pair.value]) {
          if (!isMap(one)) throw this.#refuse(offset, '<< refers to something that is not a mapping');
          merged.push(one);
        }
    }
    if (merged.length === 0) return;
    names.delete('<<');
    const items = map.items.filter(({ key }) => !(isScalar(key) && key.value === '<<'));
    for (const pair of merged.flatMap((one) => one.items)) {
      const name = String((pair.key as Scalar).value ?? 'null');
      if (names.has(name)) continue;
      names.add(name);
      items.push(pair);
    }
    map.items = items;
  }

  /** A copy without places, comments and anchors. */
  #copy(node: Node, depth: number, offset: number): Node {
    this.#copies++;
    if (this.#copies > MAX_COPIES)
      throw this.#refuse(offset, `its aliases expand to more than ${MAX_COPIES} values; write fewer of them`);
    if (depth > MAX_DEPTH) throw this.#refuse(offset, `it nests deeper than ${MAX_DEPTH} levels`);
    if (isMap(node)) {
      const made = new YAMLMap();
      if (node.flow === true) made.flow = true;
      for (const { key, value } of node.items as Pair<Node, Node | null>[])
        made.items.push(
          new Pair(this.#copy(key, depth, offset), this.#copy(value ?? emptyScalar(), depth + 1, offset)),
        );
      return made;
    }
    if (isSeq(node)) {
      const made = new YAMLSeq();
      if (node.flow === true) made.flow = true;
      for (const item of node.items as Node[]) made.items.push(this.#copy(item, depth + 1, offset));
      return made;
    }
    const { value, type, tag } = node as Scalar;
    return Object.assign(new Scalar(value), type === undefined ? {} : { type }, tag === undefined ? {} : { tag });
  }
}

/** The parser sets tags only where they are written out. */
function hasOwnTag(node: Node): boolean {
  return (node as { tag?: string }).tag !== undefined;
}

function namesAliases(value: Node | null): boolean {
  return isAlias(value) || (isSeq(value) && value.items.some(isAlias));
}

function emptyScalar(): Scalar {
  return Object.assign(new Scalar(null), { type: 'PLAIN' as const });
}
