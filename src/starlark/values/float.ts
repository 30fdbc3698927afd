import { StarlarkObject } from './value.ts';

/** A number with a fraction; kept apart from ints, as `1.0` and `1` are written differently. */
export class Float extends StarlarkObject {
  readonly type = 'float';
  readonly value: number;

  constructor(value: number) {
    super();
    this.value = value;
  }

  override get truth(): boolean {
    return this.value !== 0;
  }
}

/** As `str` and `%g` write it: the shortest text that reads as the same number, with a point or an exponent. */
export function floatText(value: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  const [mantissa = '', power = ''] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent < -4 || exponent > 5) return `${mantissa}e${exponentText(exponent)}`;
  const text = Object.is(value, -0) ? '-0' : String(value);
  return text.includes('.') ? text : `${text}.0`;
}

/** As `%e` writes it. */
export function scientificText(value: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  const [mantissa = '', power = ''] = value.toExponential(6).split('e');
  return `${Object.is(value, -0) ? '-' : ''}${mantissa}e${exponentText(Number(power))}`;
}

/** As `%f` writes it. */
export function fixedText(value: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}.000000`;
  return `${Object.is(value, -0) ? '-' : ''}${value.toFixed(6)}`;
}

function exponentText(exponent: number): string {
  return `${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

function nonFinite(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  return value > 0 ? '+inf' : '-inf';
}
