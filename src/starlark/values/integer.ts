import { fail } from '../machine/machine.ts';

/** An int: a number while it is exact as one, a bigint beyond. There is only one form of each int. */
export type Int = number | bigint;

/** Ints have no limit in Starlark; this one is far above what configuration needs, and arithmetic is still fast. */
const MAX_BITS = 4096;

/** The one form of an int. Fails beyond the bound. */
export function toInt(value: bigint): Int {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  if (BigInt.asIntN(MAX_BITS, value) !== value) fail(`an int has more than ${MAX_BITS} bits`);
  return value;
}

/** Converts a float without fraction. */
export function intOfFloat(value: number): Int {
  return Number.isSafeInteger(value) ? value + 0 : toInt(BigInt(value));
}

export function add(a: Int, b: Int): Int {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return toInt(BigInt(a) + BigInt(b));
}

export function subtract(a: Int, b: Int): Int {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b;
    if (Number.isSafeInteger(difference)) return difference;
  }
  return toInt(BigInt(a) - BigInt(b));
}

export function multiply(a: Int, b: Int): Int {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b;
    // Adding 0 turns -0, which is no int, into 0.
    if (Number.isSafeInteger(product)) return product + 0;
  }
  return toInt(BigInt(a) * BigInt(b));
}

/** Rounds towards minus infinity. */
export function floorDivide(a: Int, b: Int): Int {
  if (b === 0) fail('floored division by zero');
  if (typeof a === 'number' && typeof b === 'number') {
    const rest = a % b;
    // Exact, as the remainder is subtracted first.
    const quotient = (a - rest) / b;
    if (Number.isSafeInteger(quotient)) return (rest !== 0 && rest < 0 !== b < 0 ? quotient - 1 : quotient) + 0;
  }
  const [x, y] = [BigInt(a), BigInt(b)];
  const rest = x % y;
  const quotient = x / y;
  return toInt(rest !== 0n && rest < 0n !== y < 0n ? quotient - 1n : quotient);
}

/** Has the sign of the divisor. */
export function modulo(a: Int, b: Int): Int {
  if (b === 0) fail('integer modulo by zero');
  if (typeof a === 'number' && typeof b === 'number') {
    const rest = a % b;
    return (rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest) + 0;
  }
  const [x, y] = [BigInt(a), BigInt(b)];
  const rest = x % y;
  return toInt(rest !== 0n && rest < 0n !== y < 0n ? rest + y : rest);
}

export function negate(a: Int): Int {
  return typeof a === 'number' ? 0 - a : toInt(-a);
}

function isShort(value: Int): value is number {
  return typeof value === 'number' && (value | 0) === value;
}

export function bitAnd(a: Int, b: Int): Int {
  return isShort(a) && isShort(b) ? a & b : toInt(BigInt(a) & BigInt(b));
}

export function bitOr(a: Int, b: Int): Int {
  return isShort(a) && isShort(b) ? a | b : toInt(BigInt(a) | BigInt(b));
}

export function bitXor(a: Int, b: Int): Int {
  return isShort(a) && isShort(b) ? a ^ b : toInt(BigInt(a) ^ BigInt(b));
}

export function shiftLeft(a: Int, count: Int): Int {
  if (count < 0) fail(`negative shift count: ${count}`);
  if (count >= 512) fail(`shift count too large: ${count}`);
  return toInt(BigInt(a) << BigInt(count));
}

export function shiftRight(a: Int, count: Int): Int {
  if (count < 0) fail(`negative shift count: ${count}`);
  return count >= MAX_BITS ? (a < 0 ? -1 : 0) : toInt(BigInt(a) >> BigInt(count));
}

/** Reads digits of a base, without sign or prefix; undefined if they are none. `digits` is not empty. */
export function parseDigits(digits: string, base: number): Int | undefined {
  if (digits.length > MAX_BITS) fail(`an int has more than ${MAX_BITS} bits`);
  let small = 0;
  let large = 0n;
  let factor = 1;
  for (let at = 0; at < digits.length; at++) {
    const code = digits.charCodeAt(at);
    const digit = code <= 57 ? code - 48 : (code | 32) - 87;
    if (digit < 0 || digit >= base || (code > 57 && digit < 10)) return undefined;
    // Some digits at a time, so that a long text does not take quadratic time.
    small = small * base + digit;
    factor *= base;
    if (factor >= 2 ** 40) {
      large = large * BigInt(factor) + BigInt(small);
      small = 0;
      factor = 1;
    }
  }
  return toInt(large * BigInt(factor) + BigInt(small));
}
