import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { printable, printableLines } from './printable.ts';

describe('text from elsewhere', () => {
  test('what steers a terminal is shown as an escape', () => {
    expect(printable('\u001b[31mred\u001b]0;title\u0007')).toBe('\\x1b[31mred\\x1b]0;title\\x07');
    expect(printable('a\nb\tc\rd')).toBe('a\\nb\\tc\\rd');
    expect(printable('\u009b1m \u202egnp.exe\u2066 \ufeff')).toBe('\\x9b1m \\u202egnp.exe\\u2066 \\ufeff');
    expect(printable('naïve 名前 🎉')).toBe('naïve 名前 🎉');
  });

  test('line breaks and tabs stay where lines are printed', () => {
    expect(printableLines('a\n\tb\u001b[2J')).toBe('a\n\tb\\x1b[2J');
  });

  test('nothing that is left can steer', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
        expect(printable(text).isWellFormed()).toBe(true);
      }),
      { numRuns: runs(100) },
    );
  });
});
