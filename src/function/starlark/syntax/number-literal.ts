import { Float } from '../values/float.ts';
import { parseDigits } from '../values/integer.ts';
import type { Value } from '../values/value.ts';
import type { Position } from './position.ts';
import { ScriptSyntaxError } from './syntax-error.ts';

const FLOAT = /(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+/y;
const INT = /0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[0-9]+/y;
const BASES: Readonly<Record<string, number>> = { x: 16, o: 8, b: 2 };

/** Reads the number literal at an offset. */
export function readNumber(text: string, at: number, position: Position): { value: Value; length: number } {
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
