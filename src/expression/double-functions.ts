import { CelScalar, celFunc } from '@bufbuild/cel';

/** Of the error of an operation that gives NaN. */
export const NAN_PROBLEM = 'gives NaN';

const { DOUBLE, STRING } = CelScalar;
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const SPECIAL = /^([+-]?)(?:(inf|infinity)|nan)$/i;

/**
 * Conversions of texts to doubles, as the specification of CEL defines them: the library reads "+Inf" and any other text as NaN, and an empty
 * one as 0. If NaN is refused, also the operations that can give it: each is an error then, which `&&`, `||` and `?:` treat like other errors.
 */
export function doubleFunctions(refusesNaN: boolean) {
  const checked = (value: number): number => {
    if (refusesNaN && Number.isNaN(value)) throw new Error(NAN_PROBLEM);
    return value;
  };
  const operation = (name: string, apply: (left: number, right: number) => number) =>
    celFunc(name, [DOUBLE, DOUBLE], DOUBLE, (left, right) => checked(apply(left, right)));
  return [
    celFunc('double', [STRING], DOUBLE, (text) => checked(doubleOf(text))),
    ...(refusesNaN
      ? [
          operation('_+_', (left, right) => left + right),
          operation('_-_', (left, right) => left - right),
          operation('_*_', (left, right) => left * right),
          operation('_/_', (left, right) => left / right),
        ]
      : []),
  ];
}

function doubleOf(text: string): number {
  if (DECIMAL.test(text)) return Number(text);
  const special = SPECIAL.exec(text);
  if (special === null) throw new Error('a text is no number');
  if (special[2] === undefined) return Number.NaN;
  return special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
