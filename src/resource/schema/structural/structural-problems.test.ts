import { describe, expect, test } from 'vitest';
import { structuralProblems } from './structural-problems.ts';

const problems = (fields: object) =>
  structuralProblems({ type: 'object', properties: { a: fields } }).map(({ field, message }) => `${field}: ${message}`);

describe('structuralProblems', () => {
  test.each<[string, object]>([
    ['a plain field', { type: 'string', maxLength: 3, pattern: '^a+$' }],
    ['a map', { type: 'object', additionalProperties: { type: 'string' } }],
    ['anything', { 'x-kubernetes-preserve-unknown-fields': true }],
    ['integer or text', { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] }],
    ['a set', { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' }],
    [
      'a list of type map',
      {
        type: 'array',
        items: { type: 'object', properties: { k: { type: 'string', default: 'x' } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
      },
    ],
    [
      'a choice of fields that are declared outside',
      {
        type: 'object',
        properties: { b: { type: 'string' }, c: { type: 'string' } },
        oneOf: [{ required: ['b'] }, { properties: { c: { minLength: 1 } }, required: ['c'] }],
        not: { required: ['b', 'c'] },
      },
    ],
  ])('%s is structural', (_name, fields) => {
    expect(problems(fields)).toEqual([]);
  });

  test.each<[string, object | null, string]>([
    ['no type', { description: 'x' }, 'a.type: Required value'],
    ['an unknown type', { type: 'file' }, 'a.type: Forbidden: must be a type'],
    ['a reference', { $ref: '#/x' }, 'a[$ref]: Forbidden: has no place'],
    ['no schema', null, 'a: Forbidden: must be a schema'],
    ['closed objects', { type: 'object', additionalProperties: false }, 'must not be false'],
    [
      'fields beside a map',
      { type: 'object', properties: { b: { type: 'string' } }, additionalProperties: { type: 'string' } },
      'must not be combined with properties',
    ],
    ['a list without items', { type: 'array' }, 'a.items: Required value'],
    ['unique items', { type: 'array', items: { type: 'string' }, uniqueItems: true }, 'use x-kubernetes-list-type'],
    ['fields of a text', { type: 'string', properties: { b: { type: 'string' } } }, 'wants type object'],
    [
      'a set of objects',
      { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'set' },
      'scalar, or atomic',
    ],
    [
      'a map list without keys',
      { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'map' },
      'list-map-keys: Required value',
    ],
    [
      'a key that is no field',
      {
        type: 'array',
        items: { type: 'object' },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['constructor'],
      },
      '"constructor" must be a scalar field',
    ],
    [
      'a type inside of anyOf',
      { type: 'string', anyOf: [{ type: 'string' }] },
      'anyOf[0].type: Forbidden: must be outside',
    ],
    [
      'a field inside of allOf only',
      { type: 'object', allOf: [{ properties: { b: { minLength: 1 } } }] },
      'allOf[0].properties.b: Forbidden: must be outside',
    ],
    ['lookahead', { type: 'string', pattern: '^(?=a)' }, 'a.pattern: Forbidden: must be a regular expression'],
    ['a broken pattern', { type: 'string', pattern: '(' }, 'a.pattern: Forbidden: must be a regular expression'],
    [
      'a pattern that is large once it is compiled',
      { type: 'string', pattern: '(ab){1000}' },
      'a.pattern: Forbidden: must be a regular expression in the syntax of RE2: pattern: a regular expression has at most 2000 parts, and this one has 5005',
    ],
    [
      'a broken rule',
      { type: 'string', 'x-kubernetes-validations': [{ rule: 'self ==' }] },
      'a.x-kubernetes-validations[0].rule: Forbidden: expression',
    ],
    [
      'an unknown name in a rule',
      { type: 'string', 'x-kubernetes-validations': [{ rule: 'other == 1' }] },
      'not known',
    ],
    ['a wrong bound', { type: 'string', maxLength: -1 }, 'must be a whole number'],
  ])('%s is not', (_name, fields, expected) => {
    const found = structuralProblems({ type: 'object', properties: { a: fields } });
    expect(found.map(({ field, message }) => `${field}: ${message}`.replace(/^properties\./, '')).join('\n')).toContain(
      expected,
    );
  });

  test('the root is an object', () => {
    expect(structuralProblems({ type: 'string' })[0]?.message).toContain('must be object at the root');
  });

  test('depth and size are bounded', () => {
    let deep: object = { type: 'string' };
    for (let level = 0; level < 10_000; level += 1) deep = { type: 'object', properties: { a: deep } };
    expect(structuralProblems(deep).map((cause) => cause.message)).toEqual([
      'Forbidden: is nested more than 64 levels deep',
    ]);
    const wide = Object.fromEntries(Array.from({ length: 30_000 }, (_, index) => [`f${index}`, { type: 'string' }]));
    expect(structuralProblems({ type: 'object', properties: wide }).map((cause) => cause.message)).toEqual([
      'Forbidden: the schema has more than 20000 parts',
    ]);
    const patterns = Object.fromEntries(
      Array.from({ length: 200 }, (_, index) => [`f${index}`, { type: 'string', pattern: `^${index}[a-z]{0,500}$` }]),
    );
    expect(structuralProblems({ type: 'object', properties: patterns }).map((cause) => cause.message)).toEqual([
      'Forbidden: the schema has patterns of more than 20000 parts',
    ]);
  });
});
