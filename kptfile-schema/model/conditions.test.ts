import { describe, expect, test } from 'vitest';
import { conditionsOf, gatesOf, type Kptfile, type KptfileCondition } from '../index.ts';

function kptfile(conditions: KptfileCondition[], gates: string[] = []): Kptfile {
  const readinessGates = gates.map((conditionType) => ({ conditionType }));
  return { apiVersion: 'kpt.dev/v1', kind: 'Kptfile', status: { conditions }, info: { readinessGates } };
}

describe('conditionsOf', () => {
  test('keeps the four fields and the order of the file', () => {
    const found = conditionsOf(
      kptfile([
        { type: 'B', status: 'True', reason: 'Done', message: 'all is well', lastTransitionTime: 'now' },
        { type: 'A', status: 'False' },
      ]),
    );
    expect([...found]).toEqual([
      ['B', { type: 'B', status: 'True', reason: 'Done', message: 'all is well' }],
      ['A', { type: 'A', status: 'False' }],
    ]);
  });

  test('duplicates that agree count once, those that disagree count as False', () => {
    const found = conditionsOf(
      kptfile([
        { type: 'Same', status: 'True', reason: 'First' },
        { type: 'Same', status: 'True', reason: 'Second' },
        { type: 'Other', status: 'True' },
        { type: 'Other', status: 'False' },
        { type: 'Other', status: 'False' },
      ]),
    );
    expect(found.get('Same')).toEqual({ type: 'Same', status: 'True', reason: 'First' });
    expect(found.get('Other')).toMatchObject({ status: 'False', reason: 'DuplicateConditions' });
  });

  test.each([[undefined], [''], ['true'], ['TRUE'], ['Yes'], ['True ']])('status %j counts as Unknown', (status) => {
    const condition = { type: 'A', ...(status === undefined ? {} : { status }) };
    expect(conditionsOf(kptfile([condition])).get('A')).toMatchObject({ status: 'Unknown', reason: 'InvalidStatus' });
    expect(conditionsOf(kptfile([condition, { type: 'A', status: 'True' }])).get('A')?.status).toBe('False');
  });

  test('entries without a type are left out', () => {
    expect(conditionsOf(kptfile([{ status: 'True' }, { type: '', status: 'True' }])).size).toBe(0);
    expect(conditionsOf({ apiVersion: 'kpt.dev/v1', kind: 'Kptfile' }).size).toBe(0);
  });
});

test('gatesOf names each gate once, in the order of the file', () => {
  expect(gatesOf(kptfile([], ['B', 'A', 'B', '']))).toEqual(['B', 'A']);
  expect(gatesOf({ apiVersion: 'kpt.dev/v1', kind: 'Kptfile' })).toEqual([]);
});
