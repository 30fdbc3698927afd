import { describe, expect, test } from 'vitest';
import { closingIn } from './gitea-closing.ts';

function entry(type: string, login: string, second: number, body = '') {
  return { type, user: { login }, body, created_at: new Date(Date.UTC(2030, 0, 1) + second * 1000).toISOString() };
}

describe('the end of a pull request on Gitea', () => {
  test('is by the removal of its branch where the host writes both at once', () => {
    const closed = [entry('close', 'anna', 1), entry('reopen', 'anna', 2), entry('close', 'sluice', 10)];
    expect(closingIn(closed)).toEqual({ by: 'sluice', comment: undefined });
    for (const second of [10, 11])
      expect(closingIn([...closed, entry('delete_branch', 'sluice', second)])).toEqual({
        ...{ by: 'sluice', comment: undefined, isByRemoval: true },
      });
  });

  test.each([
    { what: 'removed the branch later', removal: entry('delete_branch', 'anna', 60) },
    { what: 'closed what another one removes', removal: entry('delete_branch', 'bob', 10) },
  ])('is that of a user who $what', ({ removal }) => {
    const entries = [entry('comment', 'anna', 9, 'no'), entry('close', 'anna', 10), removal];
    expect(closingIn(entries)).toEqual({ by: 'anna', comment: 'no' });
  });

  test('is the last one: an earlier removal does not count', () => {
    const before = [entry('close', 'sluice', 1), entry('delete_branch', 'sluice', 1), entry('reopen', 'sluice', 2)];
    expect(closingIn([...before, entry('close', 'sluice', 2)])).toEqual({ by: 'sluice', comment: undefined });
  });
});
