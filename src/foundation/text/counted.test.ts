import { expect, test } from 'vitest';
import { counted } from './counted.ts';

test('a number has its noun in the right form', () => {
  expect([0, 1, 2].map((count) => counted(count, 'repository', 'repositories'))).toEqual([
    '0 repositories',
    '1 repository',
    '2 repositories',
  ]);
  expect(counted(3, 'step')).toBe('3 steps');
});
