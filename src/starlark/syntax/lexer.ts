import { type Position, positionOf } from '../machine/position.ts';
import { Float } from '../values/float.ts';
import { parseDigits } from '../values/integer.ts';
import type { Value } from '../values/value.ts';
import { readString } from './string-literal.ts';
import { ScriptSyntaxError } from './syntax-error.ts';

const FLOAT = /(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+/y;
const INT = /0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[0-9]+/y;
const BASES: Readonly<Record<string, number>> = { x: 16, o: 8, b: 2 };

/** `type` is the text itself for keywords and punctuation. */
export interface Token {
  readonly type: string;
  /** Text of a name; value of a literal. */
  readonly value: Value;
  readonly position: Position;
}

const KEYWORDS = new Set('and break continue def elif else for if in lambda load not or pass return while'.split(' '));

/** Words of Python that Starlark reserves. */
const RESERVED = new Set(
  'as assert async await class del except finally from global import is nonlocal raise try with yield'.split(' '),
);

const PUNCTUATION =
  /(?:\*\*|\/\/|<<|>>)=|\/\/=|(?:==|!=|<=|>=|\+=|-=|\*=|\/=|%=|&=|\|=|\^=|\/\/|<<|>>|\*\*)|[-+*/%&|^~<>=.,;:()[\]{}]/y;
const NAME = /[\p{L}_][\p{L}\p{Nd}_]*/uy;
const STRING_START = /(?:r|b|rb)?(?:"""|'''|"|')/y;
const TAB = 8;

/** The tokens of a script. Ends with `newline` and `eof`. Throws ScriptSyntaxError. */
export function tokenize(script: string): Token[] {
  const text = script.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n');
  const tokens: Token[] = [];
  const indents = [0];
  const open: Token[] = [];
  let line = 1;
  let lineStart = 0;
  let at = 0;
  let fresh = true;

  const here = () => positionOf(line, at - lineStart + 1);
  const push = (type: string, value: Value = null, position = here()) => {
    tokens.push({ type, value, position });
  };
  const match = (pattern: RegExp) => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  const nextLine = () => {
    at += 1;
    line += 1;
    lineStart = at;
  };

  for (;;) {
    if (fresh && open.length === 0) {
      let width = 0;
      while (text[at] === ' ' || text[at] === '\t') {
        width += text[at] === ' ' ? 1 : TAB - (width % TAB);
        at += 1;
      }
      if (text[at] === '#') while (at < text.length && text[at] !== '\n') at += 1;
      if (text[at] === '\n') {
        nextLine();
        continue;
      }
      fresh = false;
      if (at >= text.length) width = 0;
      if (width > (indents.at(-1) ?? 0)) {
        indents.push(width);
        push('indent');
      }
      while (width < (indents.at(-1) ?? 0)) {
        indents.pop();
        push('outdent');
      }
      if (width !== indents.at(-1))
        throw new ScriptSyntaxError(here(), 'unindent does not match any outer indentation level');
    }
    const character = text[at];
    if (character === undefined) break;
    if (character === '\n') {
      if (open.length === 0) {
        push('newline');
        fresh = true;
      }
      nextLine();
    } else if (character === ' ' || character === '\t') at += 1;
    else if (character === '#') while (at < text.length && text[at] !== '\n') at += 1;
    else if (character === '\\') {
      if (text[at + 1] !== '\n') throw new ScriptSyntaxError(here(), 'stray backslash in program');
      at += 1;
      nextLine();
    } else if ((character >= '0' && character <= '9') || (character === '.' && /[0-9]/.test(text[at + 1] ?? ''))) {
      const { value, length } = readNumber(text, at, here());
      push('number', value);
      at += length;
    } else {
      const quote = match(STRING_START);
      if (quote !== undefined) {
        const start = here();
        const { value, end, newlines, lastLineStart } = readString(text, at, quote, start);
        push('string', value, start);
        at = end;
        line += newlines;
        if (newlines > 0) lineStart = lastLineStart;
        continue;
      }
      const name = match(NAME);
      if (name !== undefined) {
        if (RESERVED.has(name)) throw new ScriptSyntaxError(here(), `${name} is a reserved word`);
        if (KEYWORDS.has(name)) push(name);
        else push('name', name);
        at += name.length;
        continue;
      }
      const punctuation = match(PUNCTUATION);
      if (punctuation === undefined)
        throw new ScriptSyntaxError(
          here(),
          `unexpected input character ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))}`,
        );
      push(punctuation);
      const token = tokens.at(-1) as Token;
      if ('([{'.includes(punctuation)) open.push(token);
      else if (')]}'.includes(punctuation)) {
        const opened = open.pop();
        if (opened === undefined || '([{'.indexOf(opened.type) !== ')]}'.indexOf(punctuation))
          throw new ScriptSyntaxError(here(), `unexpected '${punctuation}'`);
      }
      at += punctuation.length;
    }
  }
  const unclosed = open.at(-1);
  if (unclosed !== undefined) throw new ScriptSyntaxError(unclosed.position, `'${unclosed.type}' is never closed`);
  if (tokens.length > 0 && !['newline', 'outdent'].includes(tokens.at(-1)?.type ?? '')) push('newline');
  while (indents.length > 1) {
    indents.pop();
    push('outdent');
  }
  push('eof');
  return tokens;
}

/** Reads the number literal at an offset. */
function readNumber(text: string, at: number, position: Position): { value: Value; length: number } {
  FLOAT.lastIndex = at;
  const float = FLOAT.exec(text)?.[0];
  if (float !== undefined) {
    const value = Number(float);
    if (!Number.isFinite(value)) throw new ScriptSyntaxError(position, 'floating-point literal too large');
    return { value: new Float(value), length: float.length };
  }
  INT.lastIndex = at;
  const literal = INT.exec(text)?.[0] ?? '';
  const base = BASES[literal[1]?.toLowerCase() ?? ''] ?? 10;
  const next = text[at + literal.length] ?? '';
  if (/[0-9a-zA-Z_]/.test(next)) throw new ScriptSyntaxError(position, `invalid number literal ${literal}${next}`);
  if (base === 10 && literal.length > 1 && literal.startsWith('0') && !/^0+$/.test(literal))
    throw new ScriptSyntaxError(position, `obsolete form of octal literal; use 0o${literal.slice(1)}`);
  const digits = base === 10 ? literal : literal.slice(2);
  const value = parseDigits(digits, base);
  if (value === undefined) throw new ScriptSyntaxError(position, `invalid number literal ${literal}`);
  return { value, length: literal.length };
}
