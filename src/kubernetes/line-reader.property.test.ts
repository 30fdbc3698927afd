import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { LineReader } from './line-reader.ts';

test('property: lines are complete wherever the stream was split', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string({ unit: 'grapheme' }).map((line) => line.replaceAll('\n', '')),
        { maxLength: 20 },
      ),
      fc.array(fc.nat(40)),
      (lines, cuts) => {
        const bytes = Buffer.from(lines.join('\n').toWellFormed(), 'utf8');
        const reader = new LineReader(10_000);
        const found: string[] = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          found.push(...reader.push(bytes.subarray(at, at + cut)));
          at += cut;
        }
        expect([...found, reader.rest()].join('\n')).toBe(lines.join('\n').toWellFormed());
        expect(found.every((line) => !line.includes('\n'))).toBe(true);
      },
    ),
    { numRuns: runs(100) },
  );
});

test('a line without an end is refused at the limit', () => {
  const reader = new LineReader(10);
  expect([...reader.push(Buffer.from('0123456789\n01234'))]).toEqual(['0123456789']);
  expect(() => [...reader.push(Buffer.from('567890'))]).toThrow(/more than 10 bytes/);
});
