import { expect, test } from 'vitest';
import { SharedBytes, StoreLimit } from './store-limit.ts';

test('objects and bytes are counted as they come, change and go', () => {
  const limit = new StoreLimit('kustomizations', undefined, { objects: 2, bytes: 50 });
  expect(limit.set('a', 'x'.repeat(30))).toBeUndefined();
  expect(limit.set('a', 'x'.repeat(40))).toBeUndefined();
  expect(limit.set('b', 'x'.repeat(20))?.message).toContain('50 bytes');
  expect(limit.set('a', undefined)).toBeUndefined();
  expect(limit.set('c', '')).toBeUndefined();
  expect(limit.set('d', '')).toMatchObject({ code: 'LimitExceeded', message: expect.stringContaining('more than 2 ') });
});

test('the stores of a namespace share a limit, and give their part back', () => {
  const shared = new SharedBytes(100);
  const [one, other] = [new StoreLimit('x', shared), new StoreLimit('x', shared)];
  expect(one.set('a', 'x'.repeat(60))).toBeUndefined();
  expect(other.set('a', 'x'.repeat(60))?.message).toContain('the targets of the namespace keep more than 100 bytes');
  other.release();
  one.release();
  expect(other.set('a', 'x'.repeat(90))).toBeUndefined();
});
