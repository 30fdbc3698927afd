import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { EVERYTHING, formatLabelSelector, labelSelector, matchesLabels } from './label-selector.ts';

describe('labelSelector', () => {
  test.each([
    ['', []],
    ['app=web', [{ key: 'app', operator: 'In', values: ['web'] }]],
    ['app == web', [{ key: 'app', operator: 'In', values: ['web'] }]],
    ['app!=web', [{ key: 'app', operator: 'NotIn', values: ['web'] }]],
    ['app=', [{ key: 'app', operator: 'In', values: [''] }]],
    [
      'example.org/app , !old',
      [
        { key: 'example.org/app', operator: 'Exists', values: [] },
        { key: 'old', operator: 'DoesNotExist', values: [] },
      ],
    ],
    [
      'tier in (b, a,a),x notin (y)',
      [
        { key: 'tier', operator: 'In', values: ['a', 'b'] },
        { key: 'x', operator: 'NotIn', values: ['y'] },
      ],
    ],
    ['tier in (,a)', [{ key: 'tier', operator: 'In', values: ['', 'a'] }]],
    ['in in (in)', [{ key: 'in', operator: 'In', values: ['in'] }]],
  ])('reads %j', (text, requirements) => {
    expect(labelSelector(text)).toEqual({ requirements });
  });

  test.each([
    ['app=web,', 'column 9: expected a label key, found the end'],
    ['=web', 'column 1: expected a label key, found "="'],
    ['app web', 'column 5: expected "=", "!=", "in", "notin" or ",", found "web"'],
    ['tier in a', 'column 9: expected "(", found "a"'],
    ['tier in (a', 'column 11: expected "," or ")", found the end'],
    ['tier in (a b)', 'column 12: expected "," or ")", found "b"'],
    ['a=b c', 'column 5: expected ",", found "c"'],
    ['a=b;c', 'column 4: unexpected character ";"'],
    ['a > 3', 'column 3: unexpected character ">"'],
    ['-a=b', 'column 1: "-a" is no label key'],
    ['x=-', 'column 1: "-" is no label value'],
    [`x=${'v'.repeat(64)}`, 'is no label value'],
    ['EXAMPLE.org/x', 'is no label key'],
    ['a'.repeat(70_000), 'at most 65536 are allowed'],
  ])('refuses %.40j', (text, message) => {
    expect(() => labelSelector(text)).toThrow(message);
  });

  test('reads matchLabels and matchExpressions, and refuses what contradicts itself', () => {
    const selector = labelSelector({
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'NotIn', values: ['old'] },
        { key: 'x', operator: 'Exists' },
      ],
    });
    expect(formatLabelSelector(selector)).toBe('app=web,tier notin (old),x');
    expect(() => labelSelector({ matchExpressions: [{ key: 'x', operator: 'In' }] })).toThrow(
      'matchExpressions[0]: In needs at least one value',
    );
    expect(() => labelSelector({ matchExpressions: [{ key: 'x', operator: 'Exists', values: ['a'] }] })).toThrow(
      'Exists takes no values',
    );
    expect(() => labelSelector({ matchLabels: { 'a b': 'c' } })).toThrow('matchLabels[a b]');
  });
});

describe('matchesLabels', () => {
  test('everything matches all; inherited fields are no labels', () => {
    expect(matchesLabels(EVERYTHING, undefined)).toBe(true);
    expect(matchesLabels(labelSelector('constructor'), {})).toBe(false);
    expect(matchesLabels(labelSelector('!constructor'), {})).toBe(true);
  });

  test('a label that is not there fails In and meets NotIn', () => {
    expect(matchesLabels(labelSelector('a=b'), {})).toBe(false);
    expect(matchesLabels(labelSelector('a='), {})).toBe(false);
    expect(matchesLabels(labelSelector('a!=b'), undefined)).toBe(true);
  });
});

const key = fc.constantFrom('app', 'example.org/tier', 'in', 'notin', 'a.b_c-d');
const value = fc.constantFrom('', 'web', 'in', 'v1.2', 'A_b');
const requirement = fc.oneof(
  fc.record({
    key,
    operator: fc.constantFrom('In' as const, 'NotIn' as const),
    values: fc.uniqueArray(value, { minLength: 1 }).map((values) => values.sort()),
  }),
  fc.record({ key, operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const), values: fc.constant([]) }),
);
const labels = fc.dictionary(key, value);

test('the text form selects the same, and so does the object form', () => {
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 5 }), labels, (requirements, object) => {
      const fromText = labelSelector(formatLabelSelector({ requirements }));
      const fromObject = labelSelector({ matchExpressions: requirements });
      expect(fromObject).toEqual({ requirements });
      expect(fromText).toEqual({ requirements });
      expect(matchesLabels(fromText, object)).toBe(requirements.every((each) => holds(each, object)));
    }),
    { numRuns: runs(2000) },
  );
});

test('any text is either read or refused with a place', () => {
  const piece = fc.constantFrom(
    'a',
    'in',
    'notin',
    '=',
    '==',
    '!',
    '!=',
    '(',
    ')',
    ',',
    ' ',
    '\n',
    '1',
    'x/y',
    '*',
    '\0',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join('');
      try {
        const selector = labelSelector(text);
        expect(labelSelector(formatLabelSelector(selector))).toEqual(selector);
      } catch (error) {
        expect(error).toMatchObject({ code: 'InvalidInput' });
        expect(String(error)).toMatch(/label selector, column \d+/);
      }
    }),
    { numRuns: runs(3000) },
  );
});

/** The meaning of a requirement, in another form. */
function holds(
  each: { key: string; operator: string; values: readonly string[] },
  object: Readonly<Record<string, string>>,
): boolean {
  const present = Object.keys(object).includes(each.key);
  const among = present && each.values.some((wanted) => wanted === object[each.key]);
  if (each.operator === 'In') return among;
  if (each.operator === 'NotIn') return !among;
  return present === (each.operator === 'Exists');
}
