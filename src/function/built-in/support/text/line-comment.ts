import { isMap, isScalar, isSeq, type Node, type YAMLMap, type YAMLSeq } from 'yaml';
import { clearOwnLineComment, hasOwnLineComment } from '../../../yaml/own-line-comment.ts';

/**
 * The comment in the line of a value, without its `#`: behind a scalar or a flow collection, and behind the key of a block list or a
 * block mapping. A comment in a line of its own before the first entry is none.
 */
export function lineComment(node: Node): string | undefined {
  if (!isBlock(node)) return node.comment?.split('\n', 1)[0];
  return hasOwnLineComment(node) ? undefined : node.commentBefore?.split('\n', 1)[0];
}

/** Puts a comment (without `#`) into the line of a value, in place of the one that is there. */
export function putLineComment(node: Node, comment: string): void {
  const line = ` ${comment}`;
  if (!isBlock(node)) node.comment = line;
  else {
    // Comments in lines of their own stay; only comments of kpt are behind the key.
    const before = node.commentBefore ? node.commentBefore.split('\n') : [];
    if (!hasOwnLineComment(node) && /^ ?kpt-/.test(before[0] ?? '')) before.shift();
    node.commentBefore = [line, ...before].join('\n');
    clearOwnLineComment(node);
  }
}

function isBlock(node: Node): node is YAMLMap | YAMLSeq {
  return !isScalar(node) && (isSeq(node) || isMap(node)) && node.flow !== true && node.items.length > 0;
}
