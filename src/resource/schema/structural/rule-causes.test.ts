import { describe, expect, test } from 'vitest';
import { ruleCauses } from './rule-causes.ts';
import type { StructuralSchema, ValidationRule } from './structural-schema.ts';

const causesOf = (schema: StructuralSchema, value: unknown, change?: { old: unknown }) =>
  ruleCauses(schema, value, change).map(({ field, message }) => `${field}: ${message}`);
const rules = (...list: (string | ValidationRule)[]) => ({
  'x-kubernetes-validations': list.map((rule) => (typeof rule === 'string' ? { rule } : rule)),
});

describe('rules about one state', () => {
  const schema: StructuralSchema = {
    type: 'object',
    properties: {
      min: { type: 'integer' },
      max: { type: 'integer' },
      names: { type: 'array', items: { type: 'string', ...rules("self.startsWith('a')") } },
      map: {
        type: 'object',
        additionalProperties: { type: 'integer', ...rules({ rule: 'self > 0', message: 'must be positive' }) },
      },
    },
    ...rules({ rule: 'self.min <= self.max', message: 'min must not be above max', fieldPath: '.min' }),
  };

  test('are evaluated at every position of the value', () => {
    expect(causesOf(schema, { min: 3, max: 2, names: ['ab', 'b'], map: { x: 0, 'y.z': 1 } })).toEqual([
      'min: Invalid value: "object": min must not be above max',
      'names[1]: Invalid value: "b": failed rule: self.startsWith(\'a\')',
      'map.x: Invalid value: 0: must be positive',
    ]);
    expect(causesOf(schema, { min: 1, max: 2 })).toEqual([]);
  });

  test('may make their message', () => {
    const sized: StructuralSchema = {
      type: 'string',
      ...rules({
        rule: 'self.size() < 3',
        messageExpression: "'has ' + string(self.size()) + ' characters'",
        message: 'too long',
      }),
    };
    expect(causesOf(sized, 'abcd')).toEqual([': Invalid value: "abcd": has 4 characters']);
    const broken = { type: 'string', ...rules({ rule: 'false', messageExpression: 'self.x', message: 'no' }) } as const;
    expect(causesOf(broken, 'abcd')).toEqual([': Invalid value: "abcd": no']);
  });

  test('that cannot be evaluated refuse the value and report why', () => {
    expect(causesOf({ type: 'object', ...rules('self.missing > 1') }, {})[0]).toContain(
      'rule cannot be evaluated:  expression',
    );
  });

  test('access fields whose names CEL does not permit by escaped names', () => {
    const odd: StructuralSchema = {
      type: 'object',
      properties: {
        namespace: { type: 'string' },
        'a-b.c/d': { type: 'object', additionalProperties: { type: 'string' } },
        a__b: { type: 'string' },
      },
      ...rules(
        "self.__namespace__ == 'x' && self.a__dash__b__dot__c__slash__d['k-1'] == 'v' && self.a__underscores__b == ''",
      ),
    };
    expect(causesOf(odd, { namespace: 'x', 'a-b.c/d': { 'k-1': 'v' }, a__b: '' })).toEqual([]);
  });

  test('cost a bounded time', () => {
    const loop = 'self.all(a, self.all(b, self.all(c, a + b + c >= 0)))';
    const heavy: StructuralSchema = { type: 'array', items: { type: 'integer' }, ...rules(...Array(200).fill(loop)) };
    const causes = causesOf(
      heavy,
      Array.from({ length: 300 }, (_, index) => index),
    );
    expect(causes.length).toBeGreaterThan(0);
    expect(causes.length).toBeLessThan(200);
    const many: StructuralSchema = { type: 'array', items: { type: 'integer', ...rules('self >= 0') } };
    expect(
      causesOf(
        many,
        Array.from({ length: 20_000 }, () => 1),
      ).at(-1),
    ).toContain('cost too much to evaluate');
  });
});

describe('rules about a change', () => {
  const schema: StructuralSchema = {
    type: 'object',
    properties: {
      fixed: { type: 'string', ...rules({ rule: 'self == oldSelf', message: 'fixed is immutable' }) },
      list: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
        items: {
          type: 'object',
          properties: { k: { type: 'string' }, v: { type: 'integer', ...rules('self >= oldSelf') } },
        },
      },
      plain: { type: 'array', items: { type: 'integer', ...rules('self == oldSelf') } },
    },
    ...rules('self.fixed.size() > 0'),
  };
  const old = {
    fixed: 'a',
    list: [
      { k: 'x', v: 1 },
      { k: 'y', v: 5 },
    ],
    plain: [1],
  };

  test('compare fields by name and items by key, and nothing that was not there', () => {
    const next = {
      fixed: 'b',
      list: [
        { k: 'y', v: 4 },
        { k: 'z', v: 0 },
        { k: 'x', v: 2 },
      ],
      plain: [2],
    };
    expect(causesOf(schema, next, { old })).toEqual([
      'fixed: Invalid value: "b": fixed is immutable',
      'list[0].v: Invalid value: 4: failed rule: self >= oldSelf',
    ]);
    expect(causesOf(schema, { fixed: 'b' }, { old: {} })).toEqual([]);
    expect(causesOf(schema, { fixed: '' })).toHaveLength(1);
  });
});
