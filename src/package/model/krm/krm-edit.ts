import { loadAll } from 'js-yaml';
import {
  type Document,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  type Pair,
  parseAllDocuments,
  stringify,
  visit,
  type YAMLMap,
} from 'yaml';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { canonicalJson } from '../../../foundation/text/canonical-json.ts';
import { isRecord } from './krm.ts';

/**
 * Sets `status` of one document of a YAML file, or removes it (`undefined`), by splicing text: comments and all other lines, line
 * ends included, stay byte for byte. `index` is the position of the document in the file, from 0, as `KrmObject.index`. An equal
 * status keeps its text. Throws InvalidInput, with file and line, for a document that is not in block style, uses anchors, or
 * cannot be read; it never writes a text that would be parsed as another value.
 */
export function setKrmStatus(
  file: string,
  text: string,
  index: number,
  status: Readonly<Record<string, unknown>> | undefined,
): string {
  const before = readDocuments(file, text)[index];
  if (!isRecord(before)) throw refused(file, text, undefined, `it has no object at place ${index}`);
  const { status: old, ...wanted } = before;
  if (status !== undefined) wanted.status = status;
  if (old === undefined && status === undefined) return text;

  const { document, root } = locate(file, text, index);
  visit(document, {
    // An alias makes two places out of one, and a small text out of a large value.
    Alias: (_key, node) => {
      throw refused(file, text, node.range?.[0], 'it uses an anchor; write the value out');
    },
    // Readers disagree whether the end of a file counts as a line break, so an appended line would change the value.
    Scalar: (_key, node) => {
      if (node.type?.startsWith('BLOCK') && node.range?.[1] === text.length && !text.endsWith('\n'))
        throw refused(file, text, node.range[0], 'the file ends inside a block text; end it with a line break');
    },
  });
  if (canonicalJson(before) === canonicalJson(wanted)) return text;
  const result = splice(file, text, root, status);
  const after = readDocuments(file, result);
  if (canonicalJson(after[index]) !== canonicalJson(wanted))
    throw refused(file, text, root.range?.[0], 'it is written in a way that cannot be edited line by line');
  return result;
}

function readDocuments(file: string, text: string): unknown[] {
  try {
    return loadAll(text) as unknown[];
  } catch (error) {
    throw new SluiceError('InvalidInput', `${file}: ${messageOf(error).split('\n')[0]}`, { cause: error });
  }
}

function locate(file: string, text: string, index: number): { document: Document; root: YAMLMap } {
  const document = parseAllDocuments(text)[index];
  const error = document?.errors[0];
  if (error !== undefined) throw refused(file, text, error.pos[0], error.message.split('\n')[0] ?? 'not valid YAML');
  if (document === undefined || !isMap(document.contents) || document.contents.flow === true)
    throw refused(file, text, document?.range[0], 'the object is not written as a block of lines');
  return { document, root: document.contents };
}

function splice(
  file: string,
  text: string,
  root: YAMLMap,
  status: Readonly<Record<string, unknown>> | undefined,
): string {
  const column = startOf(root.items[0]) - lineStart(text, startOf(root.items[0]));
  const lines = status === undefined ? [] : render(status, column);
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const pair = root.items.find(({ key }) => isScalar(key) && key.value === 'status');
  let start: number;
  let end: number;
  if (pair === undefined) {
    end = endWithComments(text, endOf(text, root.items.at(-1)), column);
    start = end;
  } else {
    start = lineStart(text, startOf(pair));
    end = endOf(text, pair);
    if (text.slice(start, startOf(pair)).trim() !== '')
      throw refused(file, text, startOf(pair), 'status does not begin a line');
  }
  const open = end === text.length && !text.endsWith('\n');
  let added = lines.map((line) => line + eol).join('');
  // A text without a final newline stays one.
  if (open && added !== '') added = added.slice(0, -eol.length);
  if (open && (start === end || added === '')) {
    if (start === end) added = eol + added;
    else start -= text.endsWith('\r\n', start) ? 2 : 1;
  }
  return text.slice(0, start) + added + text.slice(end);
}

function render(status: Readonly<Record<string, unknown>>, column: number): string[] {
  // Readers of YAML 1.1 must not take a text for a number or a truth value.
  const text = stringify({ status }, { lineWidth: 0, compat: 'yaml-1.1' });
  return text
    .trimEnd()
    .split('\n')
    .map((line) => (line === '' ? line : ' '.repeat(column) + line));
}

function startOf(pair: Pair | undefined): number {
  return (isNode(pair?.key) ? pair.key.range?.[0] : undefined) ?? 0;
}

/** Offset after the last line of an entry: after its line break, or the end of the text. */
function endOf(text: string, pair: Pair | undefined): number {
  const end = contentEnd(pair);
  return text[end - 1] === '\n' ? end : nextLine(text, end);
}

/** Offset after the last character of what is written; the parser counts comments below a block as part of it. */
function contentEnd(node: unknown): number {
  if (isPair(node)) return Math.max(contentEnd(node.key), contentEnd(node.value));
  if (isCollection(node) && node.flow !== true && node.items.length > 0) return contentEnd(node.items.at(-1));
  return (isNode(node) ? node.range?.[1] : undefined) ?? 0;
}

/** Comment lines that are indented more than the fields of the object belong to the previous lines. */
function endWithComments(text: string, from: number, column: number): number {
  let end = from;
  while (end < text.length) {
    const next = nextLine(text, end);
    const indent = /^( *)#/.exec(text.slice(end, next))?.[1]?.length ?? -1;
    if (indent <= column) break;
    end = next;
  }
  return end;
}

function lineStart(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1;
}

function nextLine(text: string, offset: number): number {
  const end = text.indexOf('\n', offset);
  return end === -1 ? text.length : end + 1;
}

function refused(file: string, text: string, offset: number | undefined, why: string): SluiceError {
  const line = offset === undefined ? '' : `:${text.slice(0, offset).split('\n').length}`;
  return new SluiceError('InvalidInput', `${file}${line}: its status cannot be set: ${why}`);
}
