import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { parseJsonPath } from './json-path.ts';

const object = {
  metadata: { annotations: { 'example.org/x': 'yes' }, name: 'web' },
  spec: {
    size: 0,
    parts: [
      { name: 'a', on: true },
      { name: 'b', on: false, deep: { n: 7 } },
    ],
    matrix: [[1, 2], [3]],
  },
  status: {
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'Synced', status: 'False' },
    ],
  },
};

test.each([
  ['.spec.size', 0],
  ['.spec.parts[0].name', 'a'],
  ['.spec.parts[-1].name', 'b'],
  ['.spec.parts[2].name', undefined],
  ['.spec.parts[*].deep.n', 7],
  ['.spec.matrix[1][0]', 3],
  ['.spec.parts[?(@.on==false)].name', 'b'],
  ['.spec.parts[?(@.deep.n == 7)].name', 'b'],
  ['.spec.parts[?(@.name!="a")].name', 'b'],
  ['.status.conditions[?(@.type=="Synced")].status', 'False'],
  ["['metadata']['annotations']['example.org/x']", 'yes'],
  ['.metadata.annotations["example.org/x"]', 'yes'],
  [String.raw`.metadata.annotations.example\.org/x`, 'error'],
  [String.raw`.metadata.annotations.example\.org\/x`, 'yes'],
  ['.metadata.constructor', undefined],
  ['.metadata.__proto__', undefined],
  ['.spec.size.toString', undefined],
])('%s', (text, expected) => {
  if (expected === 'error') expect(() => parseJsonPath(text)).toThrow('is no path');
  else expect(parseJsonPath(text).first(object)).toEqual(expected);
});

test.each([
  '',
  'spec',
  '.',
  '..name',
  '.a[',
  '.a[1:2]',
  '.a[?(@.b)]',
  '.a[?(@.b=~"x")]',
  '$.a',
  '{.a}',
  '.a b',
  `.${'a'.repeat(600)}`,
])('%j is no path', (text) => {
  expect(() => parseJsonPath(text)).toThrow();
});

test('a path that multiplies stays small', () => {
  let nested: unknown = 'end';
  for (let level = 0; level < 6; level += 1) nested = Array.from({ length: 1000 }, () => nested);
  expect(parseJsonPath('.a[*][*][*][*][*][*]').first({ a: nested })).toBe('end');
});

test('any text is read or refused', () => {
  const piece = fc.constantFrom('.', 'a', '[', ']', '0', "'", '"', '*', '?(@', '==', ')', '\\', '-', ' ');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      try {
        parseJsonPath(pieces.join('')).first({ a: [{ a: 1 }] });
      } catch (error) {
        expect(isSluiceError(error, 'InvalidInput')).toBe(true);
      }
    }),
    { numRuns: runs(100) },
  );
});
