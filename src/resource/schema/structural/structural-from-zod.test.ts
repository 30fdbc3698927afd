import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { structuralFromZod } from './structural-from-zod.ts';

const ANYTHING = { 'x-kubernetes-preserve-unknown-fields': true };

describe('structuralFromZod', () => {
  test.each<[string, z.ZodType, object]>([
    ['an integer', z.int(), { type: 'integer', format: 'int64' }],
    ['a short integer', z.int32(), { type: 'integer', format: 'int32' }],
    ['a bounded integer', z.int().min(1).max(9), { type: 'integer', format: 'int64', minimum: 1, maximum: 9 }],
    ['a bound on one side', z.int32().min(1), { type: 'integer', format: 'int32', minimum: 1 }],
    ['a number', z.number().gt(1), { type: 'number', minimum: 1, exclusiveMinimum: true }],
    ['a text or null', z.string().nullish(), { type: 'string', nullable: true }],
    ['a literal', z.literal('x'), { type: 'string', enum: ['x'] }],
    ['a time', z.iso.datetime(), { type: 'string', format: 'date-time' }],
    ['bytes', z.base64(), { type: 'string', format: 'byte' }],
    ['a pattern', z.string().regex(/^a(?:b)+$/), { type: 'string', pattern: '^a(?:b)+$' }],
    [
      'a map',
      z.record(z.string(), z.int()),
      { type: 'object', additionalProperties: { type: 'integer', format: 'int64' } },
    ],
    ['anything', z.unknown(), ANYTHING],
    ['a map of anything', z.record(z.string(), z.unknown()), { type: 'object', additionalProperties: ANYTHING }],
    [
      'an integer or a text',
      z.union([z.int(), z.string()]).meta({ 'x-kubernetes-int-or-string': true }),
      { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
    ],
    [
      'a bounded integer or a text with a pattern',
      z.union([z.int().min(0).max(9), z.string().max(4).regex(/%$/)]).meta({ 'x-kubernetes-int-or-string': true }),
      {
        ...{ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
        ...{ minimum: 0, maximum: 9, maxLength: 4, pattern: '%$' },
      },
    ],
    [
      'a set with a text',
      z.array(z.string()).meta({ 'x-kubernetes-list-type': 'set' }).optional().describe('Names.'),
      { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set', description: 'Names.' },
    ],
    ['a default before a transform', z.string().default('a').transform(Number), { type: 'string', default: 'a' }],
  ])('%s', (_name, type, expected) => {
    expect(structuralFromZod(type)).toEqual(expected);
  });

  test('objects are pruned unless they are loose, and what has a default need not be given', () => {
    const fields = { a: z.string(), b: z.string().default('x'), c: z.string().optional() };
    const properties = { a: { type: 'string' }, b: { type: 'string', default: 'x' }, c: { type: 'string' } };
    expect(structuralFromZod(z.object(fields))).toEqual({ type: 'object', properties, required: ['a'] });
    expect(structuralFromZod(z.strictObject(fields))).toEqual({ type: 'object', properties, required: ['a'] });
    expect(structuralFromZod(z.looseObject(fields))).toEqual({
      type: 'object',
      properties,
      required: ['a'],
      ...ANYTHING,
    });
  });

  test('the branches of a discriminated union keep their discriminator', () => {
    const shape = z.discriminatedUnion('type', [
      z.object({ type: z.literal('circle'), radius: z.number() }),
      z.object({ type: z.literal('square'), side: z.number(), note: z.string().optional() }),
    ]);
    expect(structuralFromZod(shape)).toEqual({
      type: 'object',
      properties: {
        type: { type: 'string', enum: ['circle', 'square'] },
        radius: { type: 'number' },
        side: { type: 'number' },
        note: { type: 'string' },
      },
      oneOf: [
        { properties: { type: { enum: ['circle'] } }, required: ['radius', 'type'] },
        { properties: { type: { enum: ['square'] } }, required: ['side', 'type'] },
      ],
    });
  });

  const recursive: z.ZodType = z.object({
    get inner() {
      return recursive.optional();
    },
  });
  test.each<[string, z.ZodType]>([
    ['a union of several types', z.object({ a: z.union([z.string(), z.boolean()]) })],
    ['a union without a discriminator', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])],
    [
      'a field of several meanings',
      z.discriminatedUnion('t', [
        z.object({ t: z.literal('a'), x: z.string() }),
        z.object({ t: z.literal('b'), x: z.int() }),
      ]),
    ],
    ['a tuple', z.tuple([z.string(), z.int()])],
    ['a date', z.date()],
    ['recursion', recursive],
    ['lookahead', z.string().regex(/^(?!a)/)],
    ['a reference back', z.string().regex(/(a)\1/)],
  ])('%s has no structural form', (_name, type) => {
    expect(() => structuralFromZod(type)).toThrow();
  });
});
