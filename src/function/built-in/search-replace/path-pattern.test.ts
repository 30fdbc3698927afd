import { expect, test } from 'vitest';
import { PathPattern } from './path-pattern.ts';

test.each<[pattern: string, path: string, matches: boolean]>([
  ['a.b.c', 'a.b.c', true],
  ['a.b.c', 'a.c.b', false],
  ['a.b', 'a.b.c', false],
  ['a.*.c.*', 'a.b.c.d', true],
  ['a.*.c.*', 'a.b.c', false],
  ['a.*.c', 'a.b[1].c', true],
  ['a.**.c.*.d', 'a.b.c.c.d', true],
  ['a.**', 'a', true],
  ['a.**.b', 'a.b', true],
  ['**.b', 'a.c[0].b', true],
  ['**.b', 'a.c[0].b.d', false],
  ['a.c[0]', 'a.c[0]', true],
  ['a.c[1]', 'a.c[0]', false],
  ['a.c', 'a.c[0]', false],
  ['a.c[0]', 'a.c', false],
  ['a.c[*].d.*[*].f', 'a.c[0].d.e[1].f', true],
  ['**.c[*].d.*[*].**.f', 'a.b.c[0].d.e[1].f', true],
  ['**.c[*].d.d.*[*].**.f', 'a.c[2].c[0].d.e[1].f', false],
  ['a[0][*]', 'a[0][1]', true],
  ['a[0][*]', 'a[0]', false],
  ['metadata.annotations.a.b/c', 'metadata.annotations.a.b/c', true],
  [`${'**.'.repeat(190)}x`, `${'a.'.repeat(90)}b`, false],
])('%s and %s: %s', (pattern, path, matches) => {
  expect(new PathPattern(pattern).matches(path)).toBe(matches);
});

test('a pattern has a bound', () => {
  expect(() => new PathPattern('**.'.repeat(1000))).toThrow('at most 200');
});
