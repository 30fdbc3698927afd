import fc from 'fast-check';
import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { linearRegex } from './linear-regex.ts';
import { patternSize } from './pattern-size.ts';

/** The number of instructions of a pattern; undefined for one that RE2 refuses. */
function programSize(pattern: string): number | undefined {
  try {
    return RE2JS.compile(pattern).programSize();
  } catch {
    return undefined;
  }
}

test.each([
  ['', 3],
  ['abc', 6],
  ['a{600}', 605],
  ['a{0,63}', 131],
  ['(ab){1000}', 5005],
  ['((ab){10}c){10}', 565],
  ['^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$', 161],
  ['\\Q(ab){9}', 12],
  ['[(]{9}', 17],
  ['[](]{9}', 18],
  ['[[:alpha:](]{9}', 26],
  ['(ab){5}(?i){5}', 140],
  ['(ab){5}\\Q\\E{5}', 140],
  ['\\({9}', 14],
])('%s has at most %i parts', (pattern, size) => {
  expect(patternSize(pattern)).toBe(size);
  expect(programSize(pattern)).toBeLessThanOrEqual(size);
});

test('no pattern has more instructions than parts', () => {
  const atom = fc.constantFrom(
    ...[
      'a',
      'b',
      '.',
      '^',
      '$',
      '\\b',
      '\\d',
      '\\pL',
      '\\p{Greek}',
      '\\x{1000}',
      '\\(',
      '\\)',
      '\\Q(\\E',
      '\\Qab){2}\\E',
    ],
    ...[
      '[a-z]',
      '[^a]',
      '[]a(]',
      '[^]a)]',
      '[[:alpha:](]',
      '[\\](]',
      '[\\pL)]',
      '[[(]',
      '{',
      '{,2}',
      '{2',
      '()',
      '(?i)',
      '(?-s)',
      '\\Q\\E',
      '(?-s)',
      '\\Q\\E',
      '(?:)',
      'é',
      '𝒳',
    ],
  );
  const count = fc.constantFrom(
    '',
    '',
    '',
    '*',
    '+',
    '?',
    '*?',
    '{0}',
    '{1}',
    '{3}',
    '{0,3}',
    '{2,}',
    '{2,4}?',
    '{0,}',
    '{,3}',
  );
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc
      .array(
        fc
          .tuple(
            fc.oneof(
              { maxDepth: 4, withCrossShrink: true },
              atom,
              fc
                .tuple(fc.constantFrom('(', '(?:', '(?i:', '(?P<n>'), tie('pattern'))
                .map(([open, inner]) => `${open}${inner})`),
              fc.tuple(tie('pattern'), tie('pattern')).map((both) => `(?:${both.join('|')})`),
            ),
            count,
          )
          .map((both) => both.join('')),
        { maxLength: 4 },
      )
      .map((parts) => parts.join('')),
  }));
  const text = fc.string({ unit: fc.constantFrom(...'ab()[]{}\\QEpL|*+?^:-2,3'), maxLength: 20 });
  let compiled = 0;
  fc.assert(
    fc.property(fc.oneof(pattern, text), (one) => {
      const instructions = programSize(one);
      if (instructions === undefined) return;
      compiled += 1;
      expect(patternSize(one)).toBeGreaterThanOrEqual(instructions);
    }),
    { numRuns: runs(20_000) },
  );
  expect(compiled).toBeGreaterThan(10);
});

test('a size takes time in proportion to the text, also of one that RE2 refuses', () => {
  for (const text of ['[', '(', '\\', '[[:', '[[:a:]', '\\Q', '{9', 'a{9}', '(?i)', '[a-\\x{100}'])
    for (const end of ['', '\\', ']', ')']) patternSize(text.repeat(100_000) + end);
});

test('what is large once it is compiled is refused, and what is remembered is bounded', () => {
  const refused = ['(ab){1000}', `(?i)${'[b-\\x{1e942}]'.repeat(3)}`, '\\pL'.repeat(50), 'a'.repeat(2000)];
  for (const pattern of refused)
    expect(() => linearRegex(pattern, 'here')).toThrow('here: a regular expression has at most');
  const many = linearRegex('(a|b)*a(a|b){100}c', 'here');
  expect(many.test(Array.from({ length: 20_000 }, (_, at) => ((at * at) % 7 > 2 ? 'a' : 'b')).join(''))).toBe(false);
  const { dfa } = many.re2();
  expect([...dfa.cachedStates()].reduce((sum, state) => sum + 8 * state.nfaStates.length, 0)).toBeLessThan(128 * 1024);
});
