import { isScalar, type Node, Scalar } from 'yaml';
import { createNode, plainValue } from '../../../yaml/node-value.ts';

/** Text that is read as null without quotes. */
const NOTHING = /^(?:~|null|Null|NULL|)$/;

/** The text of a scalar as it is written; empty for null. */
export function scalarText(node: Scalar): string {
  return node.value === null ? '' : String(node.value);
}

/** True for a text that YAML reads as a text without quotes. */
export function readsAsText(text: string): boolean {
  return isText(Object.assign(new Scalar(text), { type: 'PLAIN' as const }));
}

/** True for a scalar that is a text, and not a number, a boolean or null. */
export function isText(node: Node | null | undefined): boolean {
  return isScalar(node) && typeof plainValue(node) === 'string';
}

/**
 * Writes a text over a scalar, in its quotes if it has some. Without quotes it is read as YAML: `8080` is a number and
 * `true` a truth value.
 */
export function writeScalar(node: Scalar, text: string): void {
  node.value = text;
  if (node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE') return;
  if (text.includes('\n')) {
    delete node.type;
    return;
  }
  node.type = 'PLAIN';
  if (NOTHING.test(text)) node.value = null;
}

/** Writes a text over a scalar so that it is read as a text, in quotes where it needs them. */
export function writeText(node: Scalar, text: string): void {
  writeScalar(node, text);
  if (node.type !== 'PLAIN') return;
  node.value = text;
  node.type = (createNode(text) as Scalar).type ?? 'PLAIN';
}
