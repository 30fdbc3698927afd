import { type Document, isSeq, type Node, Pair, parseDocument, Scalar, YAMLMap, type YAMLSeq } from 'yaml';
import { SluiceError } from '../../../../foundation/sluice-error.ts';
import { CheckedTree } from '../../../yaml/checked-tree.ts';

/** The list that a text is, in YAML; undefined if it is something else. It is read as the resources of a package are. */
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
