import { expect, test } from 'vitest';
import { INITIAL_STATE, type TargetRecord } from './plan-state.ts';
import { restoreState } from './restore-state.ts';
import { limitOf, percentOf } from './wave-spec.ts';

test('an assignment to a wave that the plan has not recorded does not count; the time of the plan never goes back', () => {
  const record = { order: { joined: 2, key: 'k' }, revision: 'r', commit: 'c', attempt: 1, sinceMs: 70 } as const;
  const records: TargetRecord[] = [
    { ...record, id: 'a', phase: 'Approving', wave: 'lost' },
    { ...record, id: 'b', phase: 'Approved', wave: 'lost', published: 3 },
    { ...record, id: 'c', phase: 'Approving', wave: 'one' },
  ];
  const waves = [{ name: 'one', startedMs: 10, analysis: 1 }];
  const state = restoreState({ ...INITIAL_STATE, phase: 'Running', elapsedMs: 50, waves }, records);
  expect([...state.targets.values()].map(({ phase, wave }) => [phase, wave])).toEqual([
    ['Pending', undefined],
    ['Ahead', undefined],
    ['Approving', 'one'],
  ]);
  expect(state).toMatchObject({ elapsedMs: 70, joins: 2 });
});

test('percentages of targets are rounded up, those of limits down', () => {
  expect([percentOf(1, 30), percentOf(5, 30), percentOf(1.1, 1000), percentOf(100, 7), percentOf(1, 0)]).toEqual([
    ...[1, 2, 11, 7, 0],
  ]);
  expect([limitOf({ percent: 2 }, 30), limitOf({ percent: 10 }, 30), limitOf({ count: 4 }, 1)]).toEqual([0, 3, 4]);
});
