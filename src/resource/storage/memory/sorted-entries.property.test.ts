import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { SortedEntries } from './sorted-entries.ts';

test('equals a sorted map, over many runs that grow, are cut and vanish', () => {
  const key = fc.integer({ min: 0, max: 9999 }).map((number) => String(number).padStart(4, '0'));
  // Stretches of neighbours, so that runs fill up and whole ones are removed.
  const step = fc.record({
    start: key,
    count: fc.integer({ min: 1, max: 1500 }),
    remove: fc.boolean(),
    down: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), key, key, (steps, from, to) => {
      const entries = new SortedEntries<string>();
      const model = new Map<string, string>();
      for (const [round, { start, count, remove, down }] of steps.entries()) {
        for (let offset = 0; offset < count; offset++) {
          const at = String(Number(start) + (down ? count - offset : offset)).padStart(4, '0');
          if (remove) {
            entries.delete(at);
            model.delete(at);
          } else {
            entries.set(at, `${at} ${round}`);
            model.set(at, `${at} ${round}`);
          }
        }
      }
      const sorted = [...model].sort(([a], [b]) => (a < b ? -1 : 1));
      const wanted = (selects: (key: string) => boolean) => sorted.flatMap(([at, entry]) => (selects(at) ? entry : []));
      expect(entries.all()).toEqual(wanted(() => true));
      expect(entries.between(from, to)).toEqual(wanted((at) => at >= from && at < to));
      const odd = new Set([...model.keys()].filter((at) => Number(at) % 2 === 1));
      expect(entries.among(odd)).toEqual(wanted((at) => odd.has(at)));
    }),
    { numRuns: runs(50) },
  );
});
