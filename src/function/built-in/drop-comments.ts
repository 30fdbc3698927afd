import { type Document, isMap, isPair, isSeq, type Node } from 'yaml';
import type { KrmFunction } from '../model/function.ts';

export const dropComments: KrmFunction = {
  name: 'drop-comments',
  doc: {
    summary: 'Removes all comments from the resources of a package.',
    description:
      'Removes every YAML comment from all resources, including those that bind fields to setters and those by which kpt finds resources, the Kptfile too. It needs no configuration.',
    examples: ['pipeline:\n  mutators:\n    - image: drop-comments:latest\n'],
    differences: ['Text without comments does not change; the published function reformats all YAML.'],
  },
  run({ items }) {
    for (const item of items) {
      strip(item.document);
      dropFrom(item.root);
    }
  },
};

function dropFrom(node: unknown): void {
  if (isPair(node)) {
    dropFrom(node.key);
    dropFrom(node.value);
    return;
  }
  if (node === null || node === undefined) return;
  strip(node as Node);
  if (isMap(node) || isSeq(node)) for (const item of node.items) dropFrom(item);
}

function strip(node: Node | Document): void {
  node.comment = null;
  node.commentBefore = null;
}
