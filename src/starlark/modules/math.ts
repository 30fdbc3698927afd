import { positional } from '../library/arguments.ts';
import { fail } from '../machine/machine.ts';
import type { Builtin } from '../values/callable.ts';
import { Float } from '../values/float.ts';
import { intOfFloat } from '../values/integer.ts';
import { isInt, typeName, type Value } from '../values/value.ts';
import { moduleOf } from './module.ts';

export const MATH = moduleOf(
  'math',
  {
    ceil: toInteger('ceil', Math.ceil),
    floor: toInteger('floor', Math.floor),
    log(_machine, args, named) {
      positional('log', args, named, 1, 2);
      const [value = 0, base = Math.E] = args.map((arg) => numberOf('log', arg));
      if (value <= 0 || base <= 0 || base === 1) fail('log: the logarithm of these numbers is not defined');
      return new Float(args.length === 1 ? Math.log(value) : Math.log(value) / Math.log(base));
    },
    // Halves are rounded away from zero.
    round: unary('round', (value) => Math.sign(value) * Math.round(Math.abs(value))),
    fabs: unary('fabs', Math.abs),
    exp: unary('exp', Math.exp),
    sqrt: unary('sqrt', Math.sqrt),
    acos: unary('acos', Math.acos),
    asin: unary('asin', Math.asin),
    atan: unary('atan', Math.atan),
    cos: unary('cos', Math.cos),
    sin: unary('sin', Math.sin),
    tan: unary('tan', Math.tan),
    degrees: unary('degrees', (value) => (value * 180) / Math.PI),
    radians: unary('radians', (value) => (value * Math.PI) / 180),
    acosh: unary('acosh', Math.acosh),
    asinh: unary('asinh', Math.asinh),
    atanh: unary('atanh', Math.atanh),
    cosh: unary('cosh', Math.cosh),
    sinh: unary('sinh', Math.sinh),
    tanh: unary('tanh', Math.tanh),
    atan2: binary('atan2', Math.atan2),
    copysign: binary('copysign', (a, b) => (b < 0 || Object.is(b, -0) ? -1 : 1) * Math.abs(a)),
    hypot: binary('hypot', Math.hypot),
    mod: binary('mod', (a, b) => a % b),
    pow: binary('pow', (a, b) => a ** b),
  },
  { e: new Float(Math.E), pi: new Float(Math.PI) },
);

function numberOf(name: string, value: Value): number {
  if (value instanceof Float) return value.value;
  return isInt(value) ? Number(value) : fail(`${name}: got ${typeName(value)}, want float or int`);
}

function unary(name: string, compute: (value: number) => number): Builtin['call'] {
  return (_machine, args, named) => {
    positional(name, args, named, 1);
    return new Float(compute(numberOf(name, args[0] ?? null)));
  };
}

function binary(name: string, compute: (a: number, b: number) => number): Builtin['call'] {
  return (_machine, args, named) => {
    positional(name, args, named, 2);
    return new Float(compute(numberOf(name, args[0] ?? null), numberOf(name, args[1] ?? null)));
  };
}

function toInteger(name: string, round: (value: number) => number): Builtin['call'] {
  return (_machine, args, named) => {
    positional(name, args, named, 1);
    const [value = null] = args;
    if (isInt(value)) return value;
    const rounded = round(numberOf(name, value));
    return Number.isFinite(rounded) ? intOfFloat(rounded) : fail(`${name}: cannot convert ${rounded} to integer`);
  };
}
