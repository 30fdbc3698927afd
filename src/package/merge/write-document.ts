import type { Document, ToStringOptions } from 'yaml';
import { readYamlDocument, samePart } from './yaml-document.ts';

/**
 * The text of a document that was read from `text` and changed since, in the style of that text: indentation of fields and lists,
 * line ends, spaces in flow collections, the comment behind `metadata:`. Undefined if it would not read as what it is.
 */
export function writeDocument(document: Document, text: string): string | undefined {
  let written = document.toString(styleOf(text));
  // The library moves a comment behind a key to a line of its own; kpt looks for this one behind the key.
  const comment = /^metadata:[ \t]*(#[^\r\n]*)/m.exec(text)?.[1];
  if (comment !== undefined) {
    written = written.replace(/^metadata:\n +(#[^\n]*)$/m, (whole, moved) =>
      moved.trim() === comment.trim() ? `metadata: ${moved}` : whole,
    );
  }
  const read = readYamlDocument(written);
  if (read === undefined || !samePart(read.contents, document.contents as never)) return undefined;
  return text.includes('\r\n') ? written.replace(/\r?\n/g, '\r\n') : written;
}

function styleOf(text: string): ToStringOptions {
  const list = /^( *)(?:[^\s#-][^\n]*:|-(?: [^\n]*)?:)[ \t]*(?:#[^\n]*)?\r?\n( *)- /m.exec(text);
  const field = /^[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\r?\n( +)[^\s#-]/m.exec(text);
  return {
    lineWidth: 0,
    indent: field?.[1]?.length ?? 2,
    indentSeq: list === null || (list[2]?.length ?? 0) > (list[1]?.length ?? 0),
    flowCollectionPadding: !/[{[](?=[^\s}\]])/.test(text),
  };
}
