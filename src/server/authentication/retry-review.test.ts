import { expect, test } from 'vitest';
import { type ErrorCode, SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { retryReview } from './retry-review.ts';

/** Runs a review that fails with these codes, one after the other, before it succeeds. */
async function runWith(codes: readonly ErrorCode[], signal = new AbortController().signal) {
  const clock = new ManualClock();
  let attempts = 0;
  const review = async () => {
    const code = codes[attempts];
    attempts += 1;
    if (code !== undefined) throw new SluiceError(code, `failure ${attempts}`);
    return 'reviewed';
  };
  const result = retryReview(review, { clock, signal, random: () => 0 }).catch((error: unknown) => error);
  await clock.advanceAsync(9_000);
  return { attempts, result: await result };
}

test('failures that pass are repeated, five times at most', async () => {
  expect(await runWith(['Unavailable', 'Timeout', 'TooManyRequests', 'Internal'])).toEqual({
    attempts: 5,
    result: 'reviewed',
  });
  const { attempts, result } = await runWith(Array.from({ length: 9 }, () => 'Unavailable' as const));
  expect(attempts).toBe(5);
  expect(result).toMatchObject({ code: 'Unavailable', message: 'failure 5' });
});

test('a refusal of this server is not repeated, and is not one of the user', async () => {
  for (const code of ['Refused', 'Unauthenticated', 'NotFound'] as const) {
    const { attempts, result } = await runWith([code]);
    expect(attempts).toBe(1);
    expect(result).toMatchObject({ code: 'Unavailable', message: expect.stringContaining('failure 1') });
    expect(String(result).includes('bind the account')).toBe(code === 'Refused');
  }
});

test('a review that takes too long ends, also if it does not heed its signal', async () => {
  const clock = new ManualClock();
  const signals: AbortSignal[] = [];
  const endless = (signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<never>(() => undefined);
  };
  const result = retryReview(endless, { clock, signal: new AbortController().signal }).catch((error: unknown) => error);
  await clock.advanceAsync(10_000);
  expect(await result).toMatchObject({ code: 'Timeout' });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  expect(clock.pending).toBe(0);
  const caller = new AbortController();
  const ended = retryReview(endless, { clock, signal: caller.signal }).catch((error: unknown) => error);
  caller.abort();
  expect(await ended).toMatchObject({ code: 'Timeout' });
});
