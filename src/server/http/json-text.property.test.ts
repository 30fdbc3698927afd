import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { decodeJson } from './json-text.ts';

test('any JSON is read as JSON.parse reads it, and has no key twice', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), fc.constantFrom(undefined, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(decodeJson(text)).toEqual({ value: JSON.parse(text), duplicates: [] });
    }),
    { numRuns: runs(100) },
  );
});

test('duplicate keys are reported with their path, also with escapes and in lists', () => {
  const text = '{"a": {"x": "\\"{[,", "x": 1}, "b": [{"c": 1}, {"c": 1, "\\u0063": 2}], "a": "\\\\"}';
  expect(decodeJson(text)).toEqual({ value: JSON.parse(text), duplicates: ['a.x', 'b[1].c', 'a'] });
});

test('__proto__ is a property like any other', () => {
  const { value } = decodeJson('{"__proto__": {"admin": true}, "constructor": 1}');
  expect(Object.keys(value as object)).toEqual(['__proto__', 'constructor']);
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect(({} as { admin?: boolean }).admin).toBeUndefined();
});

test.each([
  ['[', 'not valid JSON'],
  ['{"a":1,}', 'not valid JSON'],
  ['{"a" "b"}', 'not valid JSON'],
  ['"open', 'not valid JSON'],
  [']]]]', 'not valid JSON'],
  ['nul', 'not valid JSON'],
  ['['.repeat(101), 'nested more than 100'],
  ['{"a":'.repeat(3_000_000), 'nested more than 100'],
])('refuses %#', (text, problem) => {
  expect(() => decodeJson(text)).toThrow(
    expect.objectContaining({ code: 'BadRequest', message: expect.stringContaining(problem) }),
  );
});

test.each([`[${'0,'.repeat(24_001)}0]`, `[${'{"a":[]},'.repeat(12_000)}0]`])('refuses too many values', (text) => {
  expect(() => decodeJson(text)).toThrow(
    expect.objectContaining({ code: 'LimitExceeded', message: expect.stringContaining('more than 24000 values') }),
  );
  expect(decodeJson(text, 50_000).duplicates).toEqual([]);
});

test.each(['{"password": hunter2}', '{"password":hunter2222222222222222222222222222}', 'x"... hunter2 "'])(
  'an error does not contain the text: %s',
  (text) => {
    const read = () => decodeJson(text);
    expect(read).toThrow(/^the body is not valid JSON: Unexpected token '.'$/);
  },
);

test('brackets in strings do not count as nesting', () => {
  expect(decodeJson(JSON.stringify('['.repeat(500))).value).toBe('['.repeat(500));
});
