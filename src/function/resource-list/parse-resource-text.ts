import { type Document, isMap, parseDocument, type Tags, type YAMLMap } from 'yaml';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Place } from './resource.ts';

/** Beside texts, only null is told apart. */
const NULL_TAG: Tags = ['null'];

/** Reads one YAML document of a package. Throws InvalidInput, with file and line. */
export function parseResourceText(
  text: string,
  { file }: Place,
  { resource = true }: { readonly resource?: boolean } = {},
): Document & { contents: YAMLMap } {
  const document = parseDocument(text, {
    schema: 'failsafe',
    customTags: NULL_TAG,
    logLevel: 'silent',
    uniqueKeys: false,
  }) as Document;
  const [error] = document.errors;
  if (error !== undefined)
    throw new SluiceError('InvalidInput', `${file}:${error.linePos?.[0].line ?? 1}: ${error.message.split('\n')[0]}`);
  if (!isMap(document.contents) || (resource && !document.contents.has('kind')))
    throw new SluiceError('InvalidInput', `${file}: not a KRM resource: it has no apiVersion and kind`);
  return document as Document & { contents: YAMLMap };
}
