import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { repeatSilentRequest } from './repeat-silent-request.ts';

/** A request that gets no response. */
const silence = (signal: AbortSignal) => delay(60_000, 'late', { signal });

test('a request without a response is repeated', async () => {
  let attempts = 0;
  const request = async (signal: AbortSignal) => {
    attempts += 1;
    return attempts < 3 ? silence(signal) : 'response';
  };
  expect(await repeatSilentRequest(request, 5)).toBe('response');
  expect(attempts).toBe(3);
});

test('the last failure of a request that never gets a response is thrown', async () => {
  let attempts = 0;
  const request = (signal: AbortSignal) => {
    attempts += 1;
    return silence(signal);
  };
  await expect(repeatSilentRequest(request, 2)).rejects.toThrow('aborted');
  expect(attempts).toBe(4);
});

test('a failure is thrown at once', async () => {
  let attempts = 0;
  const request = async () => {
    attempts += 1;
    throw new Error('refused');
  };
  await expect(repeatSilentRequest(request)).rejects.toThrow('refused');
  expect(attempts).toBe(1);
});
