import { expect, test } from 'vitest';
import { SluiceError } from '../sluice-error.ts';
import { conflictDelayMs, MAX_CONFLICT_RETRIES, retryConflicts } from './retry-conflicts.ts';

const conflict = new SluiceError('Conflict', 'another writer was faster');

function failing(error: unknown, times: number) {
  const calls = { count: 0 };
  const attempt = async () => {
    calls.count += 1;
    if (calls.count <= times) throw error;
    return 'written';
  };
  return { calls, attempt };
}

test('a conflict is retried at most five times', async () => {
  const won = failing(conflict, MAX_CONFLICT_RETRIES);
  expect(await retryConflicts(won.attempt, { random: () => 0 })).toBe('written');
  const lost = failing(conflict, 100);
  await expect(retryConflicts(lost.attempt, { random: () => 0 })).rejects.toBe(conflict);
  expect(lost.calls.count).toBe(1 + MAX_CONFLICT_RETRIES);
});

test('what another attempt cannot win is thrown at once', async () => {
  for (const code of ['PushRefused', 'Refused', 'Busy', 'Unavailable'] as const) {
    const { calls, attempt } = failing(new SluiceError(code, 'no'), 100);
    await expect(retryConflicts(attempt)).rejects.toMatchObject({ code });
    expect(calls.count).toBe(1);
  }
});

test('retries end with the request', async () => {
  const request = new AbortController();
  let calls = 0;
  const attempt = async () => {
    calls += 1;
    if (calls === 2) request.abort();
    throw conflict;
  };
  await expect(retryConflicts(attempt, { signal: request.signal, random: () => 0 })).rejects.toBe(conflict);
  expect(calls).toBe(2);
});

test('pauses grow and are random', () => {
  expect([1, 2, 5].map((retry) => conflictDelayMs(retry, () => 0))).toEqual([5, 10, 80]);
  expect(conflictDelayMs(1, () => 0.5)).toBe(7.5);
});
