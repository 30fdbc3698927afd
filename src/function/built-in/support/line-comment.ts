import { isMap, isScalar, isSeq, type Node } from 'yaml';

/**
 * The comment in the line of a value, without its `#`: behind a scalar or a flow collection, and behind the key of a block list or a
 * block mapping. The parser makes no difference between the latter and a comment in a line of its own before the first entry.
 */
export function lineComment(node: Node): string | undefined {
  return (isBlock(node) ? node.commentBefore : node.comment)?.split('\n', 1)[0];
}

/** Puts a comment (without `#`) into the line of a value, in place of the one that is there. */
export function putLineComment(node: Node, comment: string): void {
  const line = ` ${comment}`;
  if (!isBlock(node)) node.comment = line;
  else {
    // What stands in lines of its own stays there; only comments of kpt are known to stand behind the key.
    const before = node.commentBefore ? node.commentBefore.split('\n') : [];
    if (/^ ?kpt-/.test(before[0] ?? '')) before.shift();
    node.commentBefore = [line, ...before].join('\n');
  }
}

function isBlock(node: Node): boolean {
  return !isScalar(node) && (isSeq(node) || isMap(node)) && node.flow !== true && node.items.length > 0;
}
