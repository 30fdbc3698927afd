import { isMap, isScalar, isSeq, type Node, type Scalar } from 'yaml';
import { samePart } from '../../../package/merge/yaml-document.ts';
import { lineComment, putLineComment } from '../support/text/line-comment.ts';
import { isText, readsAsText, scalarText, writeScalar, writeText } from '../support/text/scalar-text.ts';
import type { Slot } from './find-fields.ts';
import type { ReplacementOptions } from './replacement-config.ts';

const SCALARS_ONLY = 'delimiter option can only be used with scalar nodes';

/** The value that a replacement copies: a part of a text or number, or the whole node of the source. */
export interface CopiedValue {
  readonly node: Node;
  /** The text that replaces a scalar; undefined for a mapping or a list. */
  readonly text: string | undefined;
  /** True if it must be read back as a text. */
  readonly isText: boolean;
}

export function isEmpty(node: Node): boolean {
  return isScalar(node) ? node.value === null : (isMap(node) || isSeq(node)) && node.items.length === 0;
}

/** The value of a source, or a text with the problem. */
export function copiedValue(node: Node, { delimiter, index = 0 }: ReplacementOptions = {}): CopiedValue | string {
  if (!isScalar(node) && delimiter) return SCALARS_ONLY;
  // The target may be inside of the source.
  const copy = node.clone() as Node;
  if (!isScalar(node)) return { node: copy, text: undefined, isText: false };
  const text = scalarText(node);
  if (!delimiter) return { node: copy, text, isText: isText(node) };
  const parts = text.split(delimiter);
  const part = parts[index];
  if (part === undefined) return `options.index ${index} is out of bounds: the value has ${parts.length} part(s)`;
  return { node: copy, text: part, isText: isText(node) };
}

/** Writes a value into a place. Returns a text with the problem if it cannot be written there. */
export function writeValue(
  slot: Slot,
  value: CopiedValue,
  options: ReplacementOptions & { readonly keepsSourceType?: boolean } = {},
): string | undefined {
  const { delimiter, index = 0, keepsSourceType = false } = options;
  const { node } = slot;
  if (delimiter) {
    if (!isScalar(node) || value.text === undefined) return SCALARS_ONLY;
    const text = joined(scalarText(node), value.text, delimiter, index);
    writeOver(node, text, value.isText || isText(node));
  } else if (value.text === undefined) {
    if (!samePart(value.node, node)) slot.put(copyOf(value.node, node));
  } else if (isScalar(node)) {
    const isTyped = keepsSourceType || node.value === null;
    writeOver(node, value.text, isTyped ? value.isText : isText(node) || readsAsText(value.text));
  } else {
    const made = copyOf(value.node, node) as Scalar;
    writeOver(made, value.text, value.isText);
    slot.put(made);
  }
  return undefined;
}

/** A value that is not a text is written as it is. */
function writeOver(node: Scalar, text: string, asText: boolean): void {
  if (node.value !== null && text === scalarText(node) && asText === isText(node)) return;
  if (asText) writeText(node, text);
  else {
    // In quotes it would be a text.
    if (isText(node)) node.type = 'PLAIN';
    writeScalar(node, text);
  }
}

function joined(before: string, text: string, delimiter: string, index: number): string {
  const parts = before.split(delimiter);
  if (index < 0) parts.unshift(text);
  else if (index >= parts.length) parts.push(text);
  else parts[index] = text;
  return parts.join(delimiter);
}

/** A copy with the comment in the line of what it replaces. */
function copyOf(node: Node, replaced: Node): Node {
  const copy = node.clone() as Node;
  delete copy.comment;
  delete copy.commentBefore;
  copy.spaceBefore = replaced.spaceBefore === true;
  const comment = lineComment(replaced)?.trim();
  if (comment) putLineComment(copy, comment);
  return copy;
}
