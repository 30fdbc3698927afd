import { type Document, isSeq, type Node, Pair, parseDocument, Scalar, YAMLMap, type YAMLSeq } from 'yaml';
import { SluiceError } from '../../../../foundation/sluice-error.ts';
import { CheckedTree } from '../../../yaml/checked-tree.ts';

/** Parses a text as a YAML list; undefined if it is not one. It is read like the resources of a package. */
export function yamlList(text: string): YAMLSeq<Node> | undefined {
  // Most values are words, which need no parser.
  if (!/^\s*(?:#|---|\[|-\s)/.test(text)) return undefined;
  let document: Document;
  try {
    document = parseDocument(text, {
      schema: 'failsafe',
      customTags: ['null'],
      logLevel: 'silent',
      uniqueKeys: false,
    }) as Document;
  } catch {
    return undefined;
  }
  const { contents, errors } = document;
  if (errors.length > 0 || !isSeq(contents)) return undefined;
  const root = new YAMLMap();
  root.items.push(new Pair(new Scalar('list'), contents));
  try {
    new CheckedTree(root, (_, why) => new SluiceError('InvalidInput', why));
  } catch {
    return undefined;
  }
  return contents as YAMLSeq<Node>;
}
