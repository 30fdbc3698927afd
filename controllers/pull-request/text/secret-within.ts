import { loadAll, YAMLException } from 'js-yaml';
import { isResourcePath } from '../../../src/function/resource/resource-path.ts';
import { splitDocuments } from '../../../src/package/merge/split-documents.ts';

/** Bytes of a document that are read at once, a tenth of a second at most. */
const MAX_DOCUMENT_BYTES = 256 * 1024;
/** A Secret as it is usually written, also in text that is no YAML; with an anchor, a tag or as a block too, and as JSON in strings. */
const PLAIN = /kind\\*["']?\s*:\s*(?:[&!>|]\S{0,50}\s{1,50}){0,3}\\*["']?Secret(?:List)?\b/;
/** However YAML and JSON write the word, it is there, has an escape, or is binary. */
const ANY = /Secret|\\[xuU\r\n]|!!binary|yaml\.org,2002/;
/** Names of files of YAML and JSON. */
const STRUCTURED = /\.(?:ya?ml|json)$/i;
const BINARY = /!!binary|yaml\.org,2002/;

/**
 * Whether a file has a Secret at any place, such as in a list. Also true where that cannot be found out: for YAML that has the word, and is not valid, too
 * large, or not to be read (`isRead`).
 */
export async function hasSecretWithin(
  path: string,
  text: string,
  { isRead, pause }: { readonly isRead: boolean; readonly pause: () => Promise<void> },
): Promise<boolean> {
  if (PLAIN.test(text)) return true;
  if (!ANY.test(text) || !(isResourcePath(path) || STRUCTURED.test(path))) return false;
  if (!isRead || BINARY.test(text)) return true;
  for (const part of splitDocuments(text)) {
    if (!ANY.test(part)) continue;
    if (part.length > MAX_DOCUMENT_BYTES) return true;
    try {
      if (isSecretIn(loadAll(part), new Set())) return true;
    } catch (error) {
      if (!(error instanceof YAMLException)) throw error;
      return true;
    }
    await pause();
  }
  return false;
}

/** `seen`: what aliases refer to is there several times, and can contain itself. */
function isSecretIn(value: unknown, seen: Set<unknown>): boolean {
  if (value === null || seen.has(value)) return false;
  seen.add(value);
  if (typeof value === 'string') return PLAIN.test(value);
  if (typeof value !== 'object') return false;
  const { kind } = value as { readonly kind?: unknown };
  if (kind === 'Secret' || kind === 'SecretList') return true;
  return Object.entries(value).some(([key, one]) => PLAIN.test(key) || isSecretIn(one, seen));
}
