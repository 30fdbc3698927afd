import { showValue } from '../../object/invalid-object.ts';
import { sameValue } from '../../object/same-value.ts';
import { patternMismatch } from './safe-pattern.ts';
import { hasFormat } from './string-formats.ts';
import type { StructuralSchema } from './structural-schema.ts';

export interface BrokenKeyword {
  /** The message of a cause. */
  readonly message: string;
  /** The item, if not the whole list is at fault. */
  readonly index?: number;
}

/** `Invalid value: "x": rule`. Of objects and lists only what they are is shown. */
export function invalid(value: unknown, rule: string): string {
  const shown = typeof value === 'object' && value !== null ? (Array.isArray(value) ? 'array' : 'object') : value;
  return `Invalid value: ${showValue(shown)}: ${rule}`;
}

/** True for a value of a type of OpenAPI, or of `integer or string`. */
export function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'array':
      return Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    case 'integer or string':
      return typeof value === 'string' || Number.isInteger(value);
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
    default:
      return typeof value === type;
  }
}

/** Returns the keywords of a schema that a value violates, except for its type, its fields and items, and junctors. */
export function brokenKeywords(schema: StructuralSchema, value: unknown): BrokenKeyword[] {
  const broken: BrokenKeyword[] = [];
  const want = (holds: boolean, rule: () => string) => {
    if (!holds) broken.push({ message: invalid(value, rule()) });
  };
  const { enum: values } = schema;
  if (values !== undefined && !values.some((known) => sameValue(known, value))) {
    const supported = values.map((known) => JSON.stringify(known)).join(', ');
    broken.push({ message: `Unsupported value: ${showValue(value)}: supported values: ${supported}` });
  }
  if (typeof value === 'string') textRules(schema, value, want);
  else if (typeof value === 'number') numberRules(schema, value, want);
  else if (Array.isArray(value)) {
    const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
    want(value.length >= minItems, () => `must have at least ${minItems} items`);
    want(value.length <= maxItems, () => `must have at most ${maxItems} items`);
    const listType = schema['x-kubernetes-list-type'];
    if (listType === 'set' || listType === 'map') broken.push(...repeated(schema, value));
  } else if (typeof value === 'object' && value !== null) {
    const { minProperties = 0, maxProperties = Number.POSITIVE_INFINITY } = schema;
    if (minProperties === 0 && maxProperties === Number.POSITIVE_INFINITY) return broken;
    const count = Object.keys(value).length;
    want(count >= minProperties, () => `must have at least ${minProperties} fields`);
    want(count <= maxProperties, () => `must have at most ${maxProperties} fields`);
  }
  return broken;
}

type Want = (holds: boolean, rule: () => string) => void;

function textRules({ minLength, maxLength, pattern, format }: StructuralSchema, text: string, want: Want): void {
  if (minLength !== undefined) want(isAtLeast(text, minLength), () => `must have at least ${minLength} characters`);
  if (maxLength !== undefined) want(!isAtLeast(text, maxLength + 1), () => `must have at most ${maxLength} characters`);
  const mismatch = pattern === undefined ? undefined : patternMismatch(pattern, text);
  want(mismatch === undefined, () => mismatch ?? '');
  if (format !== undefined) want(hasFormat(format, text), () => `must have the format ${format}`);
}

/** Characters are code points; a text has at most as many as UTF-16 units, and at least half as many. */
function isAtLeast(text: string, length: number): boolean {
  if (text.length < length) return false;
  return text.length >= 2 * length || [...text].length >= length;
}

function numberRules(schema: StructuralSchema, value: number, want: Want): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, format } = schema;
  if (minimum !== undefined) {
    if (exclusiveMinimum === true) want(value > minimum, () => `must be greater than ${minimum}`);
    else want(value >= minimum, () => `must be at least ${minimum}`);
  }
  if (maximum !== undefined) {
    if (exclusiveMaximum === true) want(value < maximum, () => `must be less than ${maximum}`);
    else want(value <= maximum, () => `must be at most ${maximum}`);
  }
  if (multipleOf !== undefined) want(Number.isInteger(value / multipleOf), () => `must be a multiple of ${multipleOf}`);
  if (format === 'int32') want(value >= -(2 ** 31) && value < 2 ** 31, () => 'must fit into 32 bits');
}

/** The second and further items that are the same, of a set, or have the same keys, of a map. */
function repeated(schema: StructuralSchema, items: readonly unknown[]): BrokenKeyword[] {
  const keys = schema['x-kubernetes-list-map-keys'];
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const identity = keys === undefined ? item : keys.map((key) => fieldOf(item, key));
    const text = JSON.stringify(identity, sortedFields) ?? '';
    if (!seen.has(text)) {
      seen.add(text);
      return [];
    }
    const shown = keys === undefined ? item : Object.fromEntries(keys.map((key) => [key, fieldOf(item, key)]));
    return [{ message: `Duplicate value: ${showValue(shown)}`, index }];
  });
}

function fieldOf(item: unknown, key: string): unknown {
  return typeof item === 'object' && item !== null && Object.hasOwn(item, key)
    ? (item as Record<string, unknown>)[key]
    : null;
}

function sortedFields(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)));
}
