import type { ScalarForm } from './yaml-tree.ts';

/** Words that YAML 1.1 or 1.2 read as something else than a string. */
const RESERVED = /^(?:y|n|yes|no|on|off|true|false|null)$/i;
const PLAIN = /^[\p{L}\p{N}_/][\p{L}\p{N} !"#$%&'()*+,\-./:;<=>?@[\\\]^_`{|}~]*$/u;
/** A text that begins with a digit is no number and no date, in any YAML version, if one of these is in it. */
const NO_NUMBER = /[g-npqrsuvwyG-NPQRSUVWY/]/;

/** A string as a YAML scalar on one line, in the requested form if that is safe and in double quotes if not. */
export function renderString(value: string, wish: ScalarForm | undefined, flow: boolean): string {
  if (wish === 'single' && isPrintable(value)) return `'${value.replaceAll("'", "''")}'`;
  return wish !== 'double' && isPlainSafe(value, flow) ? value : doubleQuoted(value);
}

/** True if every YAML reader reads the unquoted text as this string. In doubt false. */
function isPlainSafe(value: string, flow: boolean): boolean {
  if (!PLAIN.test(value) || RESERVED.test(value) || value.length > 1000) return false;
  if (/^\p{N}/u.test(value) && !NO_NUMBER.test(value)) return false;
  if (/: | #|[ :]$/.test(value)) return false;
  // libyaml and its ports end or reject a plain text in a flow collection at each of these.
  return !flow || !/[,[\]{}?:]/.test(value);
}

/** No control characters, no line breaks of any YAML version, no byte order mark. */
function isPrintable(value: string): boolean {
  return !/[^\x20-\x7E\xA0-\u2027\u202A-\uD7FF\uE000-\uFEFE\uFF00-\uFFFD\u{10000}-\u{10FFFF}]/u.test(value);
}

function doubleQuoted(value: string): string {
  const escaped = value.replaceAll(
    /["\\]|[^\x20-\x7E\xA0-\u2027\u202A-\uD7FF\uE000-\uFEFE\uFF00-\uFFFD\u{10000}-\u{10FFFF}]/gu,
    (char) => {
      if (char === '"' || char === '\\') return `\\${char}`;
      if (char === '\n') return '\\n';
      if (char === '\t') return '\\t';
      if (char === '\r') return '\\r';
      return `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
    },
  );
  return `"${escaped}"`;
}

export interface LiteralBlock {
  readonly indicator: '|' | '|-';
  readonly lines: readonly string[];
}

/** A text of several lines as a literal block, or undefined if it needs quotes to be safe. */
export function literalBlock(value: string): LiteralBlock | undefined {
  if (!value.includes('\n')) return undefined;
  const closed = value.endsWith('\n');
  const lines = (closed ? value.slice(0, -1) : value).split('\n');
  // Lines with blanks at an end are hard to see and easy to lose; the first and last must not be empty.
  const odd = (line: string): boolean => !isPrintable(line) || /\s$/.test(line);
  if (lines.some(odd) || lines[0] === '' || lines.at(-1) === '' || lines[0]?.startsWith(' ')) return undefined;
  return { indicator: closed ? '|' : '|-', lines };
}
