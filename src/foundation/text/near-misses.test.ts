import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nearHints, nearMisses } from './near-misses.ts';

/** The whole table, by the definition. */
function distanceOf(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, row) => [row]);
  for (let column = 0; column <= b.length; column += 1) (rows[0] ?? [])[column] = column;
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0;
  for (let row = 1; row <= a.length; row += 1)
    for (let column = 1; column <= b.length; column += 1)
      (rows[row] ?? [])[column] = Math.min(
        at(row - 1, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1),
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
      );
  return at(a.length, b.length);
}

test('finds exactly the names within a quarter of the length, and those that contain it', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '-'), maxLength: 24 });
  fc.assert(
    fc.property(text, fc.array(text, { maxLength: 8 }), (wanted, names) => {
      const allowed = Math.max(2, Math.floor(wanted.length / 4));
      const isContained = (name: string) => wanted.length >= 3 && (name.includes(wanted) || wanted.includes(name));
      const near = names.filter((name) => isContained(name) || distanceOf(wanted, name) <= allowed);
      expect(nearMisses(wanted, names, names.length).toSorted()).toEqual(near.toSorted());
    }),
  );
});

test('of very many long names the last are compared only by what they contain', () => {
  const wanted = `${'a'.repeat(200)}b`;
  const many = Array.from({ length: 1000 }, (_, at) => `${'a'.repeat(200)}-${at}`);
  expect(nearMisses(wanted, [...many, `c${wanted}`, `${'a'.repeat(200)}c`], 1002)).toSatisfy(
    (near: readonly string[]) => near.includes(`c${wanted}`) && near.length < 500,
  );
});

test('of many unknown names the first ten get a hint', () => {
  const hint = nearHints(['tested']);
  const hints = Array.from({ length: 12 }, () => hint('testet'));
  expect(hints.filter((text) => text === '; did you mean tested?')).toHaveLength(10);
  expect(hints.slice(10)).toEqual(['', '']);
});
