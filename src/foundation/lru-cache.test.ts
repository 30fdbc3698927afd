import { expect, test } from 'vitest';
import { LruCache } from './lru-cache.ts';

test('the total size is bounded, and what was used last stays', () => {
  const evicted: string[] = [];
  const cache = new LruCache<string, number>({ maxSize: 10, onEvict: (key, value) => evicted.push(`${key}=${value}`) });
  cache.set('a', 1, 4);
  cache.set('b', 2, 4);
  expect(cache.get('a')).toBe(1);
  expect(cache.peek('b')).toBe(2);
  cache.set('c', 3, 4);
  expect(evicted).toEqual(['b=2']);
  expect([cache.has('a'), cache.get('b'), cache.get('c')]).toEqual([true, undefined, 3]);
  expect([cache.count, cache.size]).toEqual([2, 8]);
});

test('a new value of a key takes the size of the old one off', () => {
  const cache = new LruCache<string, number>({ maxSize: 10 });
  cache.set('a', 1, 6);
  cache.set('a', 2, 8);
  expect([cache.get('a'), cache.size]).toEqual([2, 8]);
  expect([cache.delete('a'), cache.delete('a'), cache.size]).toEqual([true, false, 0]);
});

test('a value that alone is too large is not kept', () => {
  const cache = new LruCache<string, number>({ maxSize: 10 });
  cache.set('a', 1, 11);
  expect([cache.count, cache.size]).toEqual([0, 0]);
});

test('the number of entries is bounded', () => {
  const cache = new LruCache<number, number>({ maxEntries: 2 });
  for (const number of [1, 2, 3]) cache.set(number, number);
  expect([cache.has(1), cache.has(2), cache.has(3)]).toEqual([false, true, true]);
  cache.clear();
  expect(cache.count).toBe(0);
});
