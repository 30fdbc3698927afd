import { isMap, isScalar, isSeq, type Node, type Pair, type Scalar, type YAMLMap, type YAMLSeq } from 'yaml';

/**
 * A node of a document as it was read, with the place of its text. Functions change nodes in place; what they changed is
 * found by comparing the tree with what was saved of it.
 */
export type SavedNode = SavedScalar | SavedMap | SavedSeq;

interface SavedBase {
  /** The node itself, to find it again if a function moved it. */
  readonly node: Node;
  /** Offsets in the text of the document. */
  readonly start: number;
  readonly end: number;
  /** After the comments that the parser counts as part of the node. */
  readonly outerEnd: number;
  readonly comment: string | null | undefined;
  readonly commentBefore: string | null | undefined;
}

export interface SavedScalar extends SavedBase {
  readonly kind: 'scalar';
  readonly value: unknown;
  readonly type: Scalar['type'];
}

export interface SavedMap extends SavedBase {
  readonly kind: 'map';
  readonly flow: boolean;
  readonly items: readonly SavedPair[];
}

export interface SavedSeq extends SavedBase {
  readonly kind: 'seq';
  readonly flow: boolean;
  readonly items: readonly SavedNode[];
}

export interface SavedPair {
  readonly name: string;
  readonly key: SavedScalar;
  readonly value: SavedNode | undefined;
}

/** Saves a tree that `parseResourceText` checked. */
export function saveNode(node: Node): SavedNode {
  const [start, end, outerEnd] = node.range ?? [0, 0, 0];
  const { comment, commentBefore } = node;
  if (isMap(node)) {
    const items: SavedPair[] = [];
    for (const { key, value } of node.items as Pair<Scalar, Node | null>[]) {
      items.push({
        name: String(key.value ?? 'null'),
        key: saveNode(key) as SavedScalar,
        value: value === null ? undefined : saveNode(value),
      });
    }
    return { kind: 'map', node, start, end, outerEnd, comment, commentBefore, flow: node.flow === true, items };
  }
  if (isSeq(node)) {
    const items: SavedNode[] = [];
    for (const item of node.items as Node[]) items.push(saveNode(item));
    return { kind: 'seq', node, start, end, outerEnd, comment, commentBefore, flow: node.flow === true, items };
  }
  const { value, type } = node as Scalar;
  return { kind: 'scalar', node, start, end, outerEnd, comment, commentBefore, value, type };
}

/** True if a node is as it was saved: values, quotes, comments and the order of everything. */
export function isSame(saved: SavedNode | undefined, node: Node | null | undefined): boolean {
  if (saved === undefined || node === null || node === undefined) return saved === undefined && (node ?? null) === null;
  if ((saved.comment ?? '') !== (node.comment ?? '') || (saved.commentBefore ?? '') !== (node.commentBefore ?? ''))
    return false;
  if (saved.kind === 'scalar') return isScalar(node) && saved.value === node.value && sameType(saved.type, node.type);
  if (saved.kind === 'map') return isMap(node) && sameFlow(saved, node) && samePairs(saved.items, node.items);
  return isSeq(node) && sameFlow(saved, node) && sameItems(saved.items, node.items as Node[]);
}

/** A scalar without a type is one that may be written in any way that reads as its text. */
export function sameType(saved: Scalar['type'], type: Scalar['type']): boolean {
  return saved === type || type === undefined;
}

function sameFlow(saved: SavedMap | SavedSeq, node: YAMLMap | YAMLSeq): boolean {
  return saved.flow === (node.flow === true) || (saved.items.length === 0 && node.items.length === 0);
}

function samePairs(saved: readonly SavedPair[], pairs: readonly Pair[]): boolean {
  if (saved.length !== pairs.length) return false;
  for (const [at, old] of saved.entries()) {
    const { key, value } = pairs[at] as Pair<Node, Node | null>;
    if (!isSame(old.key, key) || !isSame(old.value, value)) return false;
  }
  return true;
}

function sameItems(saved: readonly SavedNode[], items: readonly Node[]): boolean {
  return saved.length === items.length && saved.every((old, at) => isSame(old, items[at]));
}
