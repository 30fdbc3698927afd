import { isMap, isScalar, isSeq, type Node, type Pair, type Scalar, type YAMLMap, type YAMLSeq } from 'yaml';
import { plainValue } from './node-value.ts';

/**
 * Updates a tree to the content of another one, and keeps its comments, quotes and order of fields as far as possible, since programs
 * that read and write YAML tend to lose them. Comments of the other tree take precedence. Returns the replacement of `mine`.
 */
export function graftNode(mine: Node, theirs: Node): Node {
  if (isMap(mine) && isMap(theirs)) graftMap(mine, theirs);
  else if (isSeq(mine) && isSeq(theirs)) graftSeq(mine, theirs);
  else if (isScalar(mine) && isScalar(theirs)) graftScalar(mine, theirs);
  else {
    if (mine.commentBefore && !theirs.commentBefore) theirs.commentBefore = mine.commentBefore;
    return theirs;
  }
  // A setter of a list. Other comments that moved are ones that were there.
  if (!isScalar(mine) && theirs.commentBefore?.startsWith(' kpt-') === true)
    mine.commentBefore ??= theirs.commentBefore;
  return mine;
}

function graftMap(mine: YAMLMap, theirs: YAMLMap): void {
  const others = new Map<string, Pair<Scalar, Node>>();
  for (const pair of theirs.items as Pair<Scalar, Node>[]) others.set(nameOf(pair), pair);
  if (mine.items.length === 0 && theirs.items.length > 0) mine.flow = theirs.flow === true;
  const kept: Pair<Scalar, Node>[] = [];
  for (const pair of mine.items as Pair<Scalar, Node>[]) {
    const other = others.get(nameOf(pair));
    if (other === undefined) continue;
    others.delete(nameOf(pair));
    pair.value = pair.value === null ? other.value : graftNode(pair.value, other.value ?? pair.value);
    kept.push(pair);
  }
  mine.items = [...kept, ...others.values()];
}

function graftSeq(mine: YAMLSeq, theirs: YAMLSeq): void {
  const items = theirs.items as Node[];
  const own = mine.items as Node[];
  if (own.length === 0 && items.length > 0) mine.flow = theirs.flow === true;
  if (own.length === items.length) {
    mine.items = items.map((item, at) => graftNode(own[at] as Node, item));
    return;
  }
  // Equal items, in the order of both.
  const places = new Map<string, Node[]>();
  for (const node of own) {
    const key = identityOf(node);
    const list = places.get(key);
    if (list === undefined) places.set(key, [node]);
    else list.push(node);
  }
  mine.items = items.map((item) => {
    const node = places.get(identityOf(item))?.shift();
    return node === undefined ? item : graftNode(node, item);
  });
}

/** Items with names are identified by them. */
function identityOf(node: Node): string {
  const name = isMap(node) ? node.get('name', true) : undefined;
  return isScalar(name) ? `name ${String(name.value)}` : JSON.stringify(plainValue(node));
}

function graftScalar(mine: Scalar, theirs: Scalar): void {
  if (theirs.comment) mine.comment = theirs.comment;
  if (isSameScalar(mine, theirs)) return;
  mine.value = theirs.value;
  delete mine.tag;
  if (theirs.type !== undefined) mine.type = theirs.type;
}

/** `1.0` is 1, but texts of many digits exceed the precision of a number. */
function isSameScalar(mine: Scalar, theirs: Scalar): boolean {
  const value = plainValue(mine);
  if (value !== plainValue(theirs)) return false;
  return typeof value !== 'number' || mine.value === theirs.value || `${mine.value}${theirs.value}`.length < 16;
}

function nameOf({ key }: Pair<Scalar, Node>): string {
  return String(key.value ?? 'null');
}
