import { isMap, isScalar, isSeq, type Node } from 'yaml';
import type { FieldPath } from '../../../resource/resource.ts';

/** Keys and places on the way to a node. Only good until the visitor returns. */
export type Trail = (string | number)[];

/** Calls a visitor for every value below a node, parents first. It may change the value that it is called with. */
export function walkFields(node: Node, visit: (value: Node, trail: Trail) => void, trail: Trail = []): void {
  if (isMap(node)) {
    for (const { key, value } of node.items) if (isScalar(key)) step(value as Node | null, String(key.value ?? 'null'));
  } else if (isSeq(node)) for (const [at, item] of node.items.entries()) step(item as Node | null, at);

  function step(value: Node | null, key: string | number): void {
    if (value === null) return;
    trail.push(key);
    visit(value, trail);
    walkFields(value, visit, trail);
    trail.pop();
  }
}

/** `spec.containers[0].image`, as the results of kpt's functions name a field. */
export function fieldText(path: FieldPath): string {
  let text = '';
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`;
    else text += text === '' ? key : `.${key}`;
  }
  return text;
}
