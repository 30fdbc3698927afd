import { FAILSAFE_SCHEMA, load } from 'js-yaml';
import { type Document, isMap, isScalar, isSeq, type ToStringOptions, type YAMLMap } from 'yaml';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { keepFormat } from '../../package/merge/keep-format.ts';
import { styleOf } from '../../package/merge/write-document.ts';
import { parseResourceText } from './parse-resource-text.ts';
import { keepKeyComments, newDocument, printQuoted } from './print-node.ts';
import { isSame, type SavedMap, saveNode } from './saved-node.ts';
import { spliceDocument } from './splice-document.ts';

const NEW_STYLE: ToStringOptions = { lineWidth: 0, indentSeq: true };

/** The text that a resource was read from, with its parsed content. */
export class ResourceText {
  readonly text: string;
  readonly #entangled: boolean;
  readonly #saved: SavedMap;
  readonly #comment: string | null;
  readonly #commentBefore: string | null;

  constructor(text: string, document: Document & { contents: YAMLMap }, entangled: boolean) {
    this.text = text;
    this.#entangled = entangled;
    this.#saved = saveNode(document.contents) as SavedMap;
    this.#comment = document.comment;
    this.#commentBefore = document.commentBefore;
  }

  /** True if a document is equal to this text, comments included. */
  isOf(document: Document & { contents: YAMLMap }): boolean {
    return this.#sameAround(document) && isSame(this.#saved, document.contents);
  }

  /** The text of a document that was read from this one and changed since. */
  changedTo(document: Document & { contents: YAMLMap }, name: string): string {
    const { text } = this;
    if (this.isOf(document)) return text;
    if (!this.#entangled && this.#sameAround(document)) {
      const spliced = spliceDocument(text, this.#saved, document.contents, () => styleOf(text));
      if (spliced !== undefined && readsAs(spliced, document.contents)) return spliced;
    }
    const mark = text.startsWith('\ufeff') ? '\ufeff' : '';
    const unix = text.slice(mark.length).replaceAll('\r\n', '\n');
    const style = styleOf(unix);
    const printed = document.toString(style);
    const before = parseResourceText(unix, { file: name }).document.toString(style);
    const candidates = [
      () => keepFormat(unix, keepKeyComments(before), keepKeyComments(printed)),
      () => keepKeyComments(printed),
      () => printed,
      () => printQuoted(document, style),
    ];
    for (const candidate of candidates) {
      const written = candidate();
      if (readsAs(written, document.contents))
        return mark + (text.includes('\r\n') ? written.replaceAll('\n', '\r\n') : written);
    }
    throw new SluiceError('InvalidInput', `${name}: it cannot be written as YAML that reads back the same`);
  }

  #sameAround({ comment, commentBefore }: Document): boolean {
    return (comment ?? '') === (this.#comment ?? '') && (commentBefore ?? '') === (this.#commentBefore ?? '');
  }
}

/** The text of a new resource. */
export function newResourceText(document: Document & { contents: YAMLMap }, name: string): string {
  const plain = newDocument(document.contents);
  const printed = plain.toString(NEW_STYLE);
  for (const written of [keepKeyComments(printed), printed, printQuoted(plain, NEW_STYLE)])
    if (readsAs(written, document.contents)) return written;
  throw new SluiceError('InvalidInput', `${name}: it cannot be written as YAML that reads back the same`);
}

/** Reads a text with another library, which is several times as fast, and compares. */
function readsAs(text: string, contents: YAMLMap): boolean {
  let value: unknown;
  try {
    value = load(text, { schema: FAILSAFE_SCHEMA });
  } catch {
    return false;
  }
  return isSameValue(value, contents);
}

function isSameValue(value: unknown, node: unknown): boolean {
  if (node === null) return isNullText(value);
  if (isScalar(node)) return node.value === null ? isNullText(value) : value === String(node.value);
  if (isSeq(node)) {
    return (
      Array.isArray(value) &&
      value.length === node.items.length &&
      node.items.every((item, at) => isSameValue(value[at], item))
    );
  }
  if (!isMap(node) || typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return (
    Object.keys(value).length === node.items.length &&
    node.items.every(({ key, value: inner }) => {
      const name = isScalar(key) ? String(key.value ?? 'null') : '';
      return Object.hasOwn(value, name) && isSameValue((value as Record<string, unknown>)[name], inner);
    })
  );
}

function isNullText(value: unknown): boolean {
  return value === null || value === '' || value === '~' || /^null$/i.test(String(value));
}
