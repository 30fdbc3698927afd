import { isMap, isScalar, isSeq, type Node, type YAMLMap, type YAMLSeq } from 'yaml';
import { clearOwnLineComment, hasOwnLineComment } from '../../../yaml/own-line-comment.ts';

/**
 * Returns the comment on the line of a value, without its `#`: after a scalar or a flow collection, and after the key of a block
 * list or a block mapping. A comment on a separate line before the first entry does not count.
 */
export function lineComment(node: Node): string | undefined {
  if (!isBlock(node)) return node.comment?.split('\n', 1)[0];
  return hasOwnLineComment(node) ? undefined : node.commentBefore?.split('\n', 1)[0];
}

/** Sets the comment (without `#`) on the line of a value, replacing an existing one. */
export function putLineComment(node: Node, comment: string): void {
  const line = ` ${comment}`;
  if (!isBlock(node)) node.comment = line;
  else {
    // Comments on separate lines stay; only comments of kpt are after the key.
    const before = node.commentBefore ? node.commentBefore.split('\n') : [];
    if (!hasOwnLineComment(node) && /^ ?kpt-/.test(before[0] ?? '')) before.shift();
    node.commentBefore = [line, ...before].join('\n');
    clearOwnLineComment(node);
  }
}

function isBlock(node: Node): node is YAMLMap | YAMLSeq {
  return !isScalar(node) && (isSeq(node) || isMap(node)) && node.flow !== true && node.items.length > 0;
}
