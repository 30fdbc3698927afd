import { cleanText } from '../../../src/foundation/text/clean-text.ts';
import { ellipsize } from '../../../src/foundation/text/shorten.ts';

const MAX_INLINE_CHARACTERS = 300;

/**
 * Foreign text on one line of Markdown, as code: hosts interpret no HTML, links, mentions and references there. Backquotes would end it, and
 * vertical bars a cell of a table: letters that look the same replace them. They have no meaning for a shell either, so that a quoted argument of
 * a command stays one when it is copied.
 */
export function inlineCode(text: string, most = MAX_INLINE_CHARACTERS): string {
  const line = plainLine(text, most).replaceAll('`', 'ˋ').replaceAll('|', '¦');
  return line === '' ? '' : `\`${line}\``;
}

/** Foreign text on one line for places without Markdown, such as titles, descriptions and events. */
export function plainLine(text: string, most = MAX_INLINE_CHARACTERS): string {
  return ellipsize(cleanText(text).replaceAll(/\s+/g, ' '), most);
}

/**
 * Foreign text on one line of a commit message, or of a title, which becomes one: there hosts notify users and teams who are named, and close what
 * keywords refer to. Letters that look the same replace those that begin a mention or a reference; addresses of mail stay.
 */
export function commitLine(text: string, most = MAX_INLINE_CHARACTERS): string {
  return plainLine(text, most)
    .replaceAll(/(?<![A-Za-z0-9_])@/g, '＠')
    .replaceAll(/#(?=\d|$)/g, '＃')
    .replaceAll(/!(?=\d|$)/g, 'ǃ')
    .replaceAll(/(?<=gh)-(?=\d|$)/gi, '‐')
    .replaceAll('://', '∶//');
}

/** Foreign text as a block of code, in a fence that is longer than any in the text. */
export function codeBlock(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  // Line breaks and tabs stay; other control characters could mislead readers of terminals.
  const clean = text
    .toWellFormed()
    .replaceAll(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '�');
  return `${fence}${language}\n${clean.endsWith('\n') ? clean : `${clean}\n`}${fence}`;
}
