import type { Document, ToStringOptions } from 'yaml';
import { keepFormat } from './keep-format.ts';
import { readYamlDocument, samePart } from './yaml-document.ts';

/**
 * Prints a document that was read from `text` and changed since: unchanged parts keep their text, and changed parts are written in
 * its style. The same text if nothing changed. Undefined if the result could not be parsed as the same value.
 */
export function writeDocument(document: Document, text: string): string | undefined {
  const before = readYamlDocument(text);
  if (before === undefined) return undefined;
  if (samePart(before.contents, document.contents as never)) return text;
  const unix = text.replaceAll('\r\n', '\n');
  const style = styleOf(unix);
  const printed = print(document, style, unix);
  for (const written of [keepFormat(unix, print(before, style, unix), printed), printed]) {
    if (samePart(readYamlDocument(written)?.contents, document.contents as never)) {
      return text.includes('\r\n') ? written.replaceAll('\n', '\r\n') : written;
    }
  }
  return undefined;
}

function print(document: Document, style: ToStringOptions, text: string): string {
  const printed = document.toString(style);
  // The library moves a comment after a key to a separate line; kpt expects this one after the key.
  const comment = /^metadata:[ \t]*(#.*)/m.exec(text)?.[1];
  if (comment === undefined) return printed;
  return printed.replace(/^metadata:\n +(#.*)$/m, (whole, moved: string) =>
    moved.trim() === comment.trim() ? `metadata: ${moved}` : whole,
  );
}

/** Returns the indentation of a text, as options of the printer. */
export function styleOf(text: string): ToStringOptions {
  const lines = text.split('\n');
  let indent: number | undefined;
  let indentSeq: boolean | undefined;
  for (const [at, line] of lines.entries()) {
    const field = /^( *)[^\s#-]/.exec(line)?.[1]?.length;
    const next = /^( *)(- |[^\s#-])/.exec(lines[at + 1] ?? '');
    if (field === undefined || next === null) continue;
    const deeper = (next[1]?.length ?? 0) - field;
    if (next[2] === '- ') indentSeq ??= deeper > 0;
    else if (deeper > 0) indent ??= deeper;
  }
  return {
    lineWidth: 0,
    indent: indent ?? 2,
    indentSeq: indentSeq ?? true,
    flowCollectionPadding: !/[{[](?=[^\s}\]])/.test(text),
  };
}
