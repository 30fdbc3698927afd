import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sortedByName } from './sorted-by-name.ts';

test('sorts like the built-in sort, across the limits of runs', async () => {
  const sizes = fc.constantFrom(0, 1, 3_999, 4_000, 4_001, 12_345);
  await fc.assert(
    fc.asyncProperty(sizes, fc.integer({ min: 1, max: 2 ** 31 - 1 }), async (size, seed) => {
      const items = Array.from({ length: size }, (_, index) => ({ name: `r${(index * seed) % 99_991}-${index}` }));
      const expected = items.toSorted((a, b) => (a.name < b.name ? -1 : 1));
      expect(await sortedByName(items)).toEqual(expected);
    }),
    { numRuns: 10 },
  );
});
