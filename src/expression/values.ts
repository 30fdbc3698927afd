import { type CelInput, celList, isCelList, isCelMap, isCelType, isCelUint } from '@bufbuild/cel';
import { SluiceError } from '../foundation/sluice-error.ts';

/** A number that is a CEL double, even if it is whole: measured values, whose type must not depend on their fraction. */
export class Double {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/**
 * Plain values as the evaluator takes them: whole numbers become bigint, which are CEL's ints; absent fields vanish.
 * Throws LimitExceeded above `limit` values, InvalidInput for what CEL has no form for.
 */
export function toCel(value: unknown, limit: number): unknown {
  let count = 0;
  function convert(inner: unknown): unknown {
    count += 1;
    if (count > limit) throw new SluiceError('LimitExceeded', `an expression is given more than ${limit} values`);
    if (typeof inner === 'number') return Number.isSafeInteger(inner) && !Object.is(inner, -0) ? BigInt(inner) : inner;
    if (inner === null || ['string', 'boolean', 'bigint'].includes(typeof inner)) return inner;
    if (inner instanceof Uint8Array) return inner;
    if (inner instanceof Double) return inner.value;
    // The same list each time that it is read, so that it is measured once.
    if (Array.isArray(inner)) return celList(inner.map((item) => convert(item ?? null)) as CelInput[]);
    if (typeof inner !== 'object')
      throw new SluiceError('InvalidInput', `an expression cannot take a value of type ${typeof inner}`);
    const entries = Object.entries(inner).filter(([, field]) => field !== undefined);
    // A map has no inherited fields, and takes any key.
    return new Map(entries.map(([key, field]) => [key, convert(field)]));
  }
  if (typeof value !== 'object' || value === null || value instanceof Double) return convert(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, convert(inner)]));
}

/** The evaluator's values as plain ones. */
export function fromCel(value: unknown): unknown {
  if (typeof value === 'bigint') return safeNumber(value);
  if (isCelUint(value)) return safeNumber(value.value);
  if (isCelList(value)) return [...value].map(fromCel);
  if (isCelMap(value))
    return Object.fromEntries([...value].map(([key, inner]) => [String(fromCel(key)), fromCel(inner)]));
  if (isCelType(value)) return value.name;
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const { message } = value as { message?: { $typeName?: string; seconds?: bigint; nanos?: number } };
  if (message?.$typeName === 'google.protobuf.Timestamp') return timeText(message.seconds ?? 0n, message.nanos ?? 0);
  if (message?.$typeName === 'google.protobuf.Duration')
    return `${Number(message.seconds ?? 0n) + (message.nanos ?? 0) / 1e9}s`;
  throw new SluiceError('InvalidInput', 'the expression gives a value that has no plain form');
}

function safeNumber(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function timeText(seconds: bigint, nanos: number): string {
  return new Date(Number(seconds) * 1000 + Math.floor(nanos / 1e6)).toISOString();
}
