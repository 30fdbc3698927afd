import { type Document, isMap, isScalar, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';

/** Copies a document with other contents, by default with a copy of its own. Unchanged parts are shared. */
export function copyDocument(document: Document, contents: unknown = copyNode(document.contents)): Document {
  const copy = Object.create(Object.getPrototypeOf(document), Object.getOwnPropertyDescriptors(document)) as Document;
  copy.contents = contents as never;
  return copy;
}

/** Several times as fast as the copy function of the library, which uses property descriptors. */
function copyNode(node: unknown): unknown {
  if (isScalar(node)) return Object.assign(new Scalar(node.value), node);
  if (isMap(node)) {
    const items = node.items.map(({ key, value }) => new Pair(copyNode(key), copyNode(value)));
    return Object.assign(new YAMLMap(node.schema), node, { items });
  }
  if (isSeq(node))
    return Object.assign(new YAMLSeq(node.schema), node, { items: (node.items as Node[]).map(copyNode) });
  return node;
}
