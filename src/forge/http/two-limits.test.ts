import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { ForgeBudget } from './forge-budget.ts';
import type { ForgeResponse } from './forge-response.ts';

const NO_SIGNAL = new AbortController().signal;
const API = 'https://git.example.com/api';

function start() {
  const clock = new ManualClock();
  const budget = new ForgeBudget({ clock, host: 'git.example.com', name: 'Secret default/forge', account: 'user' });
  /** Returns the status, or the time that the request has to wait for. */
  const send = async (path: string, response: Partial<ForgeResponse> = {}): Promise<unknown> => {
    const request = { what: path, method: 'POST' as const, url: `${API}${path}`, signal: NO_SIGNAL };
    const sent = budget.run(request, async () => ({ status: 200, headers: {}, text: '{}', ...response }));
    return sent.then(
      ({ status }) => status,
      ({ details }) => details,
    );
  };
  const rate = (remaining: number, seconds: number) => ({
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-limit': '5000',
    'x-ratelimit-reset': String(clock.now() / 1000 + seconds),
  });
  const pauses = () => budget.usage.resources.map(({ resource, pausedMs }) => [resource, pausedMs]);
  return { clock, budget, send, rate, pauses };
}

test('the last point of GraphQL pauses GraphQL until the reset, and no request of REST', async () => {
  const { clock, budget, send, rate, pauses } = start();
  await send('/repos/o/n/statuses/1', { headers: rate(4000, 3000) });
  await send('/graphql', { headers: rate(0, 90) });
  expect(budget.usage.resources.map(({ resource, rate: of }) => [resource, of?.remaining])).toEqual([
    ['core', 4000],
    ['graphql', 0],
  ]);
  expect(pauses()).toEqual([
    ['core', 0],
    ['graphql', 90_000],
  ]);
  expect(await send('/repos/o/n/statuses/2', { headers: rate(3999, 3000) })).toBe(200);
  expect(await send('/graphql')).toEqual({ retryAfterMs: 90_000 });
  clock.advance(90_000);
  expect(await send('/graphql', { headers: rate(4999, 3600) })).toBe(200);
});

test('a primary limit that refused a request pauses what it counts alone, in both directions', async () => {
  const { send, rate } = start();
  const text = JSON.stringify({ data: null, errors: [{ type: 'RATE_LIMITED', message: 'API rate limit exceeded' }] });
  expect(await send('/graphql', { headers: rate(0, 90), text })).toBe(200);
  expect(await send('/graphql')).toEqual({ retryAfterMs: 90_000 });
  expect(await send('/repos/o/n', { status: 403, headers: rate(0, 40) })).toBe(403);
  expect(await send('/repos/o/n')).toEqual({ retryAfterMs: 40_000 });
  expect(await send('/graphql')).toEqual({ retryAfterMs: 90_000 });
});

test('a secondary limit pauses all requests, of REST and GraphQL', async () => {
  const { clock, send, rate, pauses } = start();
  const text = JSON.stringify({ message: 'You have exceeded a secondary rate limit' });
  expect(await send('/graphql', { status: 403, headers: rate(3000, 90), text })).toBe(403);
  expect(await send('/repos/o/n')).toEqual({ retryAfterMs: 60_000 });
  clock.advance(60_000);
  // Also where the last request of the hour was used: the primary limit goes on after it.
  const headers = { ...rate(0, 90), 'retry-after': '20' };
  expect(await send('/repos/o/n', { status: 403, headers, text })).toBe(403);
  expect(pauses()).toEqual([
    ['graphql', 20_000],
    ['core', 90_000],
  ]);
});
