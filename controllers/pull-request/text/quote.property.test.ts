import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cleanText } from '../../../src/foundation/text/clean-text.ts';
import { ellipsize, shorten } from '../../../src/foundation/text/shorten.ts';
import { runs } from '../../../test/support/runs.ts';
import { codeBlock, commitLine, inlineCode, plainLine } from './quote.ts';

/** Code units of all kinds, among them halves of surrogate pairs, which make up many of them. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom('😀', '\ud83d', '\ude00', 'a', ' ', '`', '@'),
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    ),
    { size: 'medium' },
  )
  .map((units) => units.join(''));
const most = fc.integer({ min: 1, max: 50 });

test('no text for a host has half of a surrogate pair, wherever it is cut', () => {
  fc.assert(
    fc.property(text, most, (foreign, limit) => {
      for (const quote of [plainLine, inlineCode, commitLine, cleanText])
        expect(quote(foreign, limit)).toSatisfy(isWhole);
      expect(codeBlock(foreign, 'yaml')).toSatisfy(isWhole);
      const whole = foreign.toWellFormed();
      for (const cut of [shorten, ellipsize]) {
        expect(cut(whole, limit)).toSatisfy(isWhole);
        expect(cut(whole, limit).length).toBeLessThanOrEqual(limit);
      }
    }),
    { numRuns: runs(300) },
  );
});

function isWhole(made: string): boolean {
  return made.isWellFormed();
}
