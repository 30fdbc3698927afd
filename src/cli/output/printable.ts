/**
 * Control characters (which steer a terminal) and the marks that reorder text. Package names, messages of commits and
 * conditions come from repositories that untrusted users can write.
 */
const DANGEROUS =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Text for one line of a terminal: everything that could steer it is shown as an escape such as `\x1b`. */
export function printable(text: string): string {
  return text.replace(DANGEROUS, escaped);
}

/** Like `printable`, but keeps line breaks and tabs. */
export function printableLines(text: string): string {
  return text.replace(DANGEROUS, (character) =>
    character === '\n' || character === '\t' ? character : escaped(character),
  );
}

function escaped(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  if (character === '\r') return '\\r';
  const code = character.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}
