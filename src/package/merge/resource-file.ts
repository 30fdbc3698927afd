import type { Document, YAMLMap } from 'yaml';
import { mergeKeyOf } from './merge-key-comment.ts';
import { isBlankDocument, splitDocuments } from './split-documents.ts';
import { readYamlDocument, scalarText } from './yaml-document.ts';

/** Larger files are data that users do not edit field by field; they merge as a whole. */
const MAX_FILE_BYTES = 1024 * 1024;

/** One document of a YAML file. */
export interface ResourceText {
  /** From its `---`, if it has one, up to the next. */
  readonly text: string;
  /** The identity; undefined for a document of only blanks and comments. */
  readonly resource?: ResourceIdentity;
}

/** The identity that a resource is matched by. Namespace and name are those upstream, if a comment contains them. */
export interface ResourceIdentity {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Splits a YAML file into its resources. Undefined if anything in it is no resource, or cannot be read, or if there are more than
 * `limit`: then it is just a text.
 */
export function readResourceFile(data: Uint8Array, limit = 1000): ResourceText[] | undefined {
  if (data.byteLength > MAX_FILE_BYTES) return undefined;
  let text: string;
  try {
    text = utf8.decode(data);
  } catch {
    return undefined;
  }
  const found: ResourceText[] = [];
  const parts = splitDocuments(text);
  if (parts.length > limit) return undefined;
  for (const part of parts) {
    if (isBlankDocument(part)) {
      if (part !== '') found.push({ text: part });
      continue;
    }
    const document = readYamlDocument(part);
    const resource = document === undefined ? undefined : identityOf(document, part);
    if (resource === undefined) return undefined;
    found.push({ text: part, resource });
  }
  return found;
}

function identityOf({ contents }: Document & { contents: YAMLMap }, text: string): ResourceIdentity | undefined {
  const apiVersion = scalarText(contents, 'apiVersion');
  const kind = scalarText(contents, 'kind');
  const name = scalarText(contents, 'metadata', 'name');
  if (apiVersion === undefined || kind === undefined || name === undefined) return undefined;
  const slash = apiVersion.indexOf('/');
  const key = mergeKeyOf(text) ?? { namespace: scalarText(contents, 'metadata', 'namespace') ?? '', name };
  return {
    group: slash === -1 ? '' : apiVersion.slice(0, slash),
    kind,
    ...key,
  };
}
