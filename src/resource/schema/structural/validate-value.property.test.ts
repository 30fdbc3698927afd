import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { sameValue } from '../../object/same-value.ts';
import type { StructuralSchema } from './structural-schema.ts';
import { validateValue } from './validate-value.ts';

const text: StructuralSchema = { type: 'string' };
const object = (properties: Record<string, StructuralSchema>, more: StructuralSchema = {}): StructuralSchema => ({
  type: 'object',
  properties,
  ...more,
});
const causesOf = (schema: StructuralSchema, value: unknown) =>
  validateValue(schema, value).causes.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`));

describe('defaults', () => {
  const schema = object({
    size: { type: 'integer', default: 1 },
    inner: object({ name: { ...text, default: 'x' } }, { default: {} }),
    maybe: { ...text, nullable: true, default: 'y' },
    list: { type: 'array', items: object({ on: { type: 'boolean', default: true } }) },
  });

  test('are filled in at every depth, below defaults too', () => {
    expect(validateValue(schema, { list: [{}, { on: false }] }).value).toEqual({
      size: 1,
      inner: { name: 'x' },
      maybe: 'y',
      list: [{ on: true }, { on: false }],
    });
  });

  test('null counts as absent unless the schema permits it', () => {
    expect(validateValue(schema, { size: null, maybe: null, list: null }).value).toEqual({
      size: 1,
      inner: { name: 'x' },
      maybe: null,
    });
  });

  test('are never shared between values', () => {
    const first = validateValue(schema, {}).value as { inner: { name: string } };
    first.inner.name = 'changed';
    expect(validateValue(schema, {}).value).toMatchObject({ inner: { name: 'x' } });
  });
});

describe('unknown fields', () => {
  test('are left out and reported, also in lists and maps', () => {
    const schema = object({
      list: { type: 'array', items: object({ a: text }) },
      map: { type: 'object', additionalProperties: object({ a: text }) },
    });
    const result = validateValue(schema, {
      list: [{ a: 'x', b: 1 }],
      map: { k: { c: 1, a: 'y' } },
      more: 1,
      none: null,
    });
    expect(result.value).toEqual({ list: [{ a: 'x' }], map: { k: { a: 'y' } } });
    expect(result.unknownFields).toEqual([['list', 0, 'b'], ['map', 'k', 'c'], ['more']]);
  });

  test('stay where the schema preserves them, and fields with a schema are still validated', () => {
    const schema = object({ a: { type: 'integer' } }, { 'x-kubernetes-preserve-unknown-fields': true });
    expect(validateValue(schema, { a: 1, b: { c: [null, { d: 1 }] } })).toEqual({
      value: { a: 1, b: { c: [null, { d: 1 }] } },
      unknownFields: [],
      causes: [],
    });
    expect(causesOf(schema, { a: 'x', b: 1 })).toEqual(['a: Invalid value: "x": expected integer']);
  });

  test('of an embedded object apiVersion, kind and metadata are known', () => {
    const schema = object({}, { 'x-kubernetes-embedded-resource': true });
    const result = validateValue(schema, { apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, other: 1 });
    expect(result.value).toEqual({ apiVersion: 'v1', kind: 'X', metadata: { name: 'x' } });
    expect(result.unknownFields).toEqual([['other']]);
  });
});

describe('causes', () => {
  test.each<[string, StructuralSchema, unknown, string[]]>([
    ['a type', object({ a: text }), { a: 1 }, ['a: Invalid value: 1: expected string']],
    ['no whole number', { type: 'integer' }, 1.5, ['Invalid value: 1.5: expected integer']],
    ['null in a list', { type: 'array', items: text }, ['a', null], ['[1]: Invalid value: null: expected string']],
    ['a missing field', object({ a: text }, { required: ['a'] }), {}, ['a: Required value']],
    [
      'one of several values',
      { type: 'string', enum: ['a', 'b'] },
      'c',
      ['Unsupported value: "c": supported values: "a", "b"'],
    ],
    ['a pattern', { type: 'string', pattern: '^a' }, 'b', ['Invalid value: "b": must match "^a"']],
    [
      'a length in code points',
      { type: 'string', maxLength: 2 },
      '😀😀😀',
      ['Invalid value: "😀😀😀": must have at most 2 characters'],
    ],
    ['code points that fit', { type: 'string', maxLength: 2, minLength: 2 }, '😀😀', []],
    ['bounds', { type: 'number', minimum: 1, exclusiveMinimum: true }, 1, ['Invalid value: 1: must be greater than 1']],
    ['a multiple', { type: 'integer', multipleOf: 5 }, 7, ['Invalid value: 7: must be a multiple of 5']],
    ['32 bits', { type: 'integer', format: 'int32' }, 2 ** 31, ['Invalid value: 2147483648: must fit into 32 bits']],
    [
      'a format',
      { type: 'string', format: 'date-time' },
      'now',
      ['Invalid value: "now": must have the format date-time'],
    ],
    ['a format that is not known', { type: 'string', format: 'colour' }, 'now', []],
    [
      'too many items',
      { type: 'array', items: text, maxItems: 1 },
      ['a', 'b'],
      ['Invalid value: "array": must have at most 1 items'],
    ],
    [
      'too few fields',
      { type: 'object', additionalProperties: text, minProperties: 1 },
      {},
      ['Invalid value: "object": must have at least 1 fields'],
    ],
    [
      'a set',
      { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
      ['a', 'b', 'a'],
      ['[2]: Duplicate value: "a"'],
    ],
    [
      'a list of type map',
      {
        type: 'array',
        items: object({ k: text, v: text }),
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
      },
      [{ k: 'a' }, { v: 'x' }, { k: 'a', v: 'y' }],
      ['[2]: Duplicate value: {"k":"a"}'],
    ],
    [
      'integer or text',
      { 'x-kubernetes-int-or-string': true },
      true,
      ['Invalid value: true: expected integer or string'],
    ],
    [
      'allOf',
      { type: 'string', allOf: [{ minLength: 2 }, { pattern: 'b' }] },
      'a',
      ['Invalid value: "a": must have at least 2 characters', 'Invalid value: "a": must match "b"'],
    ],
    [
      'anyOf',
      object({ a: text, b: text }, { anyOf: [{ required: ['a'] }, { required: ['b'] }] }),
      {},
      ['Invalid value: "object": must match at least one of the allowed forms (anyOf)'],
    ],
    [
      'oneOf',
      object({ a: text, b: text }, { oneOf: [{ required: ['a'] }, { required: ['b'] }] }),
      { a: '', b: '' },
      ['Invalid value: "object": must match exactly one of the allowed forms (oneOf)'],
    ],
    ['not', { type: 'integer', not: { enum: [0] } }, 0, ['Invalid value: 0: has a form that is not allowed (not)']],
  ])('%s', (_name, schema, value, expected) => {
    expect(causesOf(schema, value)).toEqual(expected);
  });

  test('name their place', () => {
    const schema = object({ spec: object({ foo: { type: 'array', items: object({ 'a.b': text }) } }) });
    expect(causesOf(schema, { spec: { foo: [{ 'a.b': 1 }] } })).toEqual([
      'spec.foo[0][a.b]: Invalid value: 1: expected string',
    ]);
    expect(validateValue(text, 1, ['spec', 'x']).causes[0]).toMatchObject({ field: 'spec.x', path: ['spec', 'x'] });
  });
});

describe('hostile input', () => {
  const anything: StructuralSchema = { 'x-kubernetes-preserve-unknown-fields': true };

  test('nesting is bounded', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    const [cause, ...others] = validateValue(anything, deep).causes;
    expect(cause?.message).toContain('nested more than 100 levels deep');
    expect(others).toEqual([]);
  });

  test('fields of prototypes are fields like any other', () => {
    const value = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "a": {"__proto__": 1}}');
    const open = validateValue({ type: 'object', ...anything }, value);
    expect(JSON.stringify(open.value)).toBe(JSON.stringify(value));
    expect(Object.getPrototypeOf(open.value)).toBe(Object.prototype);
    expect(validateValue(object({ a: object({}) }), value)).toMatchObject({
      value: { a: {} },
      unknownFields: [['a', '__proto__'], ['__proto__'], ['constructor']],
    });
    expect(causesOf(object({}, { required: ['toString', '__proto__'] }), {})).toHaveLength(2);
    const map = validateValue(
      { type: 'object', additionalProperties: { type: 'integer' } },
      JSON.parse('{"__proto__": 1}'),
    );
    expect(JSON.stringify(map.value)).toBe('{"__proto__":1}');
  });

  test('a pattern that backtracking engines choke on ends, and huge texts match none', () => {
    const schema: StructuralSchema = { type: 'string', pattern: '^(a+)+$' };
    expect(causesOf(schema, `${'a'.repeat(50_000)}!`)).toHaveLength(1);
    expect(causesOf(schema, 'a'.repeat(500_000))).toHaveLength(1);
    expect(causesOf(schema, 'aaa')).toEqual([]);
  });

  test('forms within forms over large values end with a cause', () => {
    let forms: StructuralSchema = { minProperties: 1 };
    for (let level = 0; level < 12; level += 1)
      forms = { anyOf: [{ not: { not: forms } }, { not: { not: forms } }, forms] };
    const schema: StructuralSchema = { type: 'array', items: { type: 'object', not: forms, ...anything } };
    const value = Array.from({ length: 100_000 }, () => ({}));
    expect(causesOf(schema, value)).toContain('Invalid value: too large to be validated');
  });

  test('the reported causes are few', () => {
    const causes = causesOf(
      { type: 'array', items: text },
      Array.from({ length: 5000 }, () => 1),
    );
    expect(causes).toHaveLength(100);
  });
});

test('validating a validated value changes nothing', () => {
  const leaf = fc.oneof(
    fc.constant<StructuralSchema>({ type: 'string', default: 'd' }),
    fc.constant<StructuralSchema>({ type: 'integer' }),
    fc.constant<StructuralSchema>({ type: 'boolean', nullable: true, default: null }),
    fc.constant<StructuralSchema>({ 'x-kubernetes-preserve-unknown-fields': true }),
  );
  const { schema } = fc.letrec<{ schema: StructuralSchema }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', '__proto__'), tie('schema'))).map((fields) => ({
        type: 'object' as const,
        properties: Object.fromEntries(fields),
      })),
      tie('schema').map((items) => ({ type: 'array' as const, items })),
      tie('schema').map((additionalProperties) => ({ type: 'object' as const, additionalProperties })),
    ),
  }));
  const key = fc.constantFrom('a', 'b', 'c', 'd', '__proto__');
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
    ),
  }));
  fc.assert(
    fc.property(schema, value, (form, given) => {
      const before = JSON.stringify(given);
      const first = validateValue(form, given);
      expect(JSON.stringify(given)).toBe(before);
      if (first.causes.length > 0) return;
      const second = validateValue(form, first.value);
      expect(second.causes).toEqual([]);
      expect(second.unknownFields).toEqual([]);
      expect(sameValue(second.value, first.value)).toBe(true);
    }),
    { numRuns: runs(500) },
  );
});
