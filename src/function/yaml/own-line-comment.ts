import { isMap, isScalar, isSeq, type Node, type YAMLMap, type YAMLSeq } from 'yaml';

/** Copies of a node keep it. */
const OWN_LINE = Symbol('the comment above the first entry stands in a line of its own');

/** A comment of kpt on a separate line. Few texts have one. */
const KPT_LINE = /^[ \t]*# ?kpt-/m;

/**
 * Marks the block lists and mappings under a key whose comment above the first entry begins on a separate line, and not after the
 * key. The parser does not distinguish the two; kpt accepts a setter of a list only after the key.
 */
export function markOwnLineComments(root: YAMLMap, text: string): void {
  if (KPT_LINE.test(text)) mark(root, text);
}

export function hasOwnLineComment(node: YAMLMap | YAMLSeq): boolean {
  return (node as { [OWN_LINE]?: boolean })[OWN_LINE] === true;
}

/** The comment begins behind the key from now on. */
export function clearOwnLineComment(node: YAMLMap | YAMLSeq): void {
  delete (node as { [OWN_LINE]?: boolean })[OWN_LINE];
}

function mark(node: Node | null, text: string): void {
  if (isSeq(node)) for (const item of node.items) mark(item as Node | null, text);
  if (!isMap(node)) return;
  for (const { key, value } of node.items as { key: Node; value: Node | null }[]) {
    if ((isMap(value) || isSeq(value)) && value.commentBefore && isScalar(key)) {
      const behindKey = text.slice(key.range?.[1], value.range?.[0]).split('\n', 1)[0] ?? '';
      if (!behindKey.includes('#')) Object.assign(value, { [OWN_LINE]: true });
    }
    mark(value, text);
  }
}
