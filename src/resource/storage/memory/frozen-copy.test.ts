import { expect, test } from 'vitest';
import { deepFreeze } from '../../object/object.ts';
import { frozenCopy } from './frozen-copy.ts';

test('copies shallowly frozen values, and shares deeply frozen ones', () => {
  const inner = { list: [1] };
  const made = frozenCopy(Object.freeze({ inner }));
  const flawed = deepFreeze({ at: { odd: undefined } });
  expect(Object.keys(frozenCopy({ flawed }).flawed.at)).toEqual([]);
  inner.list.push(2);
  expect(made).toEqual({ inner: { list: [1] } });
  expect(Object.isFrozen(made.inner.list)).toBe(true);
  expect(frozenCopy({ again: made }).again).toBe(made);
});

test('leaves out undefined and keeps a key named __proto__', () => {
  const made = frozenCopy({ gone: undefined, nothing: null, odd: JSON.parse('{"__proto__": {"x": 1}}') });
  expect(Object.keys(made)).toEqual(['nothing', 'odd']);
  expect(JSON.stringify(made.odd)).toBe('{"__proto__":{"x":1}}');
});
