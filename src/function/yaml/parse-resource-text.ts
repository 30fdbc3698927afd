import { type Document, isMap, isScalar, parseDocument, type Tags, type YAMLMap } from 'yaml';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { CheckedTree } from './checked-tree.ts';
import { markOwnLineComments } from './own-line-comment.ts';

/** Beside texts, only null is distinguished. */
const NULL_TAG: Tags = ['null'];

export interface ParsedResource {
  readonly document: Document & { contents: YAMLMap };
  /** True if the text has anchors or tags, so that parts of it cannot be replaced one by one. */
  readonly entangled: boolean;
}

/** The place of a text in the package, for messages. */
export interface TextOrigin {
  readonly file: string;
  /** Line of the file that the text begins at, from 1. */
  readonly line?: number;
}

/** Thrown for a text that is not a KRM resource, as opposed to an invalid one. */
export class NotAResource extends SluiceError {
  readonly isYaml: boolean;

  constructor(message: string, isYaml: boolean) {
    super('InvalidInput', message);
    this.isYaml = isYaml;
  }
}

/**
 * Reads one document of a package. Aliases become copies of what they refer to. Throws NotAResource for what is not valid YAML or has
 * no kind, and InvalidInput for a resource that cannot be worked on; both name file and line.
 */
export function parseResourceText(text: string, { file, line = 1 }: TextOrigin): ParsedResource {
  let document: Document;
  try {
    // The parser's own search for repeated keys is quadratic.
    const options = { schema: 'failsafe', customTags: NULL_TAG, logLevel: 'silent', uniqueKeys: false } as const;
    document = parseDocument(text, options) as Document;
  } catch {
    throw new NotAResource(`${file}:${line}: it is nested too deep`, false);
  }
  const [error] = document.errors;
  if (error !== undefined) {
    const at = line + (error.linePos?.[0].line ?? 1) - 1;
    if (error.code === 'RESOURCE_EXHAUSTION') throw new NotAResource(`${file}:${at}: it is nested too deep`, false);
    const why = (error.message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/, '');
    throw new NotAResource(`${file}:${at}: not valid YAML: ${why}`, false);
  }
  const { contents } = document;
  if (!isMap(contents) || !hasKind(contents))
    throw new NotAResource(`${file}:${line}: not a KRM resource: it has no kind`, true);
  const { entangled } = new CheckedTree(contents, (offset, why) => {
    const at = line + text.slice(0, offset).split('\n').length - 1;
    return new SluiceError('InvalidInput', `${file}:${at}: ${why}`);
  });
  markOwnLineComments(contents, text);
  return { document: document as Document & { contents: YAMLMap }, entangled };
}

function hasKind(root: YAMLMap): boolean {
  const kind = root.get('kind', true);
  return isScalar(kind) && typeof kind.value === 'string' && kind.value !== '';
}
