import type { Position } from '../machine/position.ts';
import { ScriptSyntaxError } from './syntax-error.ts';

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['\n', ''],
]);

const CODES: ReadonlyMap<string, number> = new Map([
  ['x', 2],
  ['u', 4],
  ['U', 8],
]);

export interface StringLiteral {
  readonly value: string;
  /** Offset after it. */
  readonly end: number;
  /** Lines that it spans, and where the last one begins. */
  readonly newlines: number;
  readonly lastLineStart: number;
}

/** Reads the string literal at an offset, which begins with `start`: prefix and quotes. */
export function readString(text: string, at: number, start: string, position: Position): StringLiteral {
  const quotes = start.replace(/^[rb]*/, '');
  const prefix = start.slice(0, start.length - quotes.length);
  if (prefix.includes('b')) throw new ScriptSyntaxError(position, 'bytes literals are not supported here');
  const raw = prefix === 'r';
  const multiline = quotes.length === 3;
  const parts: string[] = [];
  let from = at + start.length;
  let index = from;
  let newlines = 0;
  let lastLineStart = 0;
  for (;;) {
    const character = text[index];
    if (character === undefined || (character === '\n' && !multiline))
      throw new ScriptSyntaxError(
        position,
        `unexpected ${character === undefined ? 'end of script' : 'end of line'} in string`,
      );
    if (text.startsWith(quotes, index)) break;
    if (character === '\n') {
      newlines += 1;
      lastLineStart = index + 1;
    }
    if (character !== '\\') {
      index += 1;
      continue;
    }
    const escaped = text[index + 1];
    if (escaped === '\n') {
      newlines += 1;
      lastLineStart = index + 2;
    }
    if (raw) {
      // The backslash stays, and so does what follows it, be it a quote.
      index += escaped === undefined ? 1 : 2;
      continue;
    }
    parts.push(text.slice(from, index));
    const { value, length } = readEscape(text, index, position);
    parts.push(value);
    index += length;
    from = index;
  }
  parts.push(text.slice(from, index));
  return { value: parts.join(''), end: index + quotes.length, newlines, lastLineStart };
}

/** The escape at an offset, where the backslash is. */
function readEscape(text: string, at: number, position: Position): { value: string; length: number } {
  const letter = text[at + 1] ?? '';
  const plain = ESCAPES.get(letter);
  if (plain !== undefined) return { value: plain, length: 2 };
  const octal = /^[0-7]{1,3}/.exec(text.slice(at + 1, at + 4))?.[0];
  if (octal !== undefined)
    return { value: character(Number.parseInt(octal, 8), 0x7f, `\\${octal}`, position), length: octal.length + 1 };
  const width = CODES.get(letter);
  if (width === undefined) throw new ScriptSyntaxError(position, `invalid escape sequence \\${letter}`);
  const digits = text.slice(at + 2, at + 2 + width);
  if (digits.length < width || !/^[0-9a-fA-F]+$/.test(digits))
    throw new ScriptSyntaxError(
      position,
      `truncated escape sequence \\${letter}${digits.replace(/[^0-9a-fA-F].*/s, '')}`,
    );
  const most = letter === 'x' ? 0x7f : 0x10ffff;
  return { value: character(Number.parseInt(digits, 16), most, `\\${letter}${digits}`, position), length: width + 2 };
}

function character(code: number, most: number, sequence: string, position: Position): string {
  if (most === 0x7f && code > most)
    throw new ScriptSyntaxError(
      position,
      `non-ASCII octal or hex escape ${sequence} (use \\u${code.toString(16).padStart(4, '0')} for U+${code.toString(16).toUpperCase().padStart(4, '0')})`,
    );
  if (code > most || (code >= 0xd800 && code <= 0xdfff))
    throw new ScriptSyntaxError(position, `invalid Unicode code point in escape sequence ${sequence}`);
  return String.fromCodePoint(code);
}
