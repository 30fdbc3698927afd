import { expect, test } from 'vitest';
import { findCondition, isConditionTrue, setCondition } from './condition.ts';

const ready = { type: 'Ready', status: 'True', reason: 'Synced', message: '' } as const;

test('the time moves with the status only, and nothing changes without a change', () => {
  const first = setCondition(undefined, ready, 0);
  expect(first).toEqual([{ ...ready, lastTransitionTime: '1970-01-01T00:00:00Z' }]);
  expect(setCondition(first, ready, 9000)).toBe(first);
  const changed = setCondition(first, { ...ready, message: 'fine' }, 9000);
  expect(changed).toEqual([{ ...ready, message: 'fine', lastTransitionTime: '1970-01-01T00:00:00Z' }]);
  const turned = setCondition(changed, { ...ready, status: 'False', reason: 'Gone' }, 9000);
  expect(turned).toEqual([
    { type: 'Ready', status: 'False', reason: 'Gone', message: '', lastTransitionTime: '1970-01-01T00:00:09Z' },
  ]);
});

test('other conditions stay where they are', () => {
  const both = setCondition(setCondition([], ready, 0), { ...ready, type: 'Other' }, 0);
  const changed = setCondition(both, { ...ready, status: 'Unknown' }, 0);
  expect(changed.map((condition) => condition.type)).toEqual(['Ready', 'Other']);
  expect(isConditionTrue(changed, 'Ready')).toBe(false);
  expect(isConditionTrue(changed, 'Other')).toBe(true);
  expect(isConditionTrue(undefined, 'Other')).toBe(false);
  expect(findCondition(changed, 'Ready')?.status).toBe('Unknown');
});
