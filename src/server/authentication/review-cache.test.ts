import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { ManualClock, settle } from '../../foundation/time/manual-clock.ts';
import { ReviewCache, type ReviewCacheOptions } from './review-cache.ts';

/** A cache of texts, of which `once` is not kept, and reviews that a test ends. */
function setUp(limits: Partial<ReviewCacheOptions<string>> = {}) {
  const clock = new ManualClock();
  const cache = new ReviewCache<string>({ clock, lifetimeMs: (result) => (result === 'once' ? 0 : 10_000), ...limits });
  const reviews: { readonly signal: AbortSignal; end(result: string | Error): void }[] = [];
  const review = (signal: AbortSignal) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    reviews.push({ signal, end: (result) => (result instanceof Error ? reject(result) : resolve(result)) });
    return promise;
  };
  const get = (question: string, signal?: AbortSignal) => cache.get(question, review, signal);
  const answered = async (question: string, result: string | Error) => {
    const answer = get(question);
    await settle();
    reviews.at(-1)?.end(result);
    return answer;
  };
  return { clock, cache, reviews, get, answered };
}

test('a result is used for its lifetime, and not after it', async () => {
  const { clock, reviews, get, answered } = setUp();
  expect(await answered('a', 'yes')).toBe('yes');
  clock.advance(9_999);
  expect(await get('a')).toBe('yes');
  expect(reviews).toHaveLength(1);
  clock.advance(1);
  expect(await answered('a', 'no')).toBe('no');
  expect(await answered('b', 'once')).toBe('once');
  expect(await answered('b', 'once')).toBe('once');
  expect(reviews).toHaveLength(4);
});

test('a clock that is set back makes no result last longer', async () => {
  const { cache, reviews } = setUp();
  let now = 1_000_000;
  const clock = { now: () => now, monotonic: () => now, schedule: () => () => undefined };
  const other = new ReviewCache<string>({ clock, lifetimeMs: () => 10_000 });
  await other.get('a', async () => 'old');
  now -= 500_000;
  expect(await other.get('a', async () => 'new')).toBe('new');
  expect([cache, reviews]).toHaveLength(2);
});

test('callers with the same question share one review, and a failure is not kept', async () => {
  const { reviews, get, answered } = setUp();
  const callers = [get('a'), get('a'), get('b')];
  await settle();
  expect(reviews).toHaveLength(2);
  reviews[0]?.end(new Error('down'));
  reviews[1]?.end('yes');
  const results = await Promise.allSettled(callers);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  expect(await answered('a', 'yes')).toBe('yes');
});

test('a review ends with its last caller, and the next caller begins another one', async () => {
  const { reviews, get } = setUp();
  const [first, second] = [new AbortController(), new AbortController()];
  const callers = [get('a', first.signal), get('a', second.signal)].map((call) =>
    call.catch(({ code }: { code: string }) => code),
  );
  await settle();
  first.abort();
  expect(await callers[0]).toBe('Timeout');
  expect(reviews[0]?.signal.aborted).toBe(false);
  second.abort();
  expect(await callers[1]).toBe('Timeout');
  expect(reviews[0]?.signal.aborted).toBe(true);
  const next = get('a');
  await settle();
  // The old one does not count any more.
  reviews[0]?.end('old');
  reviews[1]?.end('new');
  expect(await next).toBe('new');
  await expect(get('c', AbortSignal.abort())).rejects.toMatchObject({ code: 'Timeout' });
});

test('results and reviews are bounded', async () => {
  const { reviews, get, answered } = setUp({ maxEntries: 2, maxRunning: 1 });
  for (const question of ['a', 'b', 'c']) await answered(question, 'yes');
  expect(await get('c')).toBe('yes');
  expect(reviews).toHaveLength(3);
  const again = get('a');
  await expect(get('d')).rejects.toMatchObject({ code: 'TooManyRequests' });
  await settle();
  reviews.at(-1)?.end('yes');
  expect(await again).toBe('yes');
});

test('a question is not kept as text', async () => {
  const { cache, answered } = setUp();
  await answered('secret-token', 'yes');
  expect(inspect(cache, { depth: 20, showHidden: true })).not.toContain('secret-token');
});

test('questions that nothing is known of have a quarter of the reviews, and do not delay known ones', async () => {
  const { clock, reviews, get, answered } = setUp({ maxRunning: 8, makesKnown: (result) => result === 'yes' });
  expect(await answered('a', 'yes')).toBe('yes');
  expect(await answered('b', 'no')).toBe('no');
  clock.advance(10_000);
  const unknown = [get('b'), get('c')];
  await expect(get('d')).rejects.toMatchObject({
    code: 'TooManyRequests',
    message: expect.stringMatching(/^2 reviews/),
  });
  const known = get('a');
  await settle();
  for (const { end } of reviews.slice(2)) end('yes');
  expect(await Promise.all([...unknown, known])).toEqual(['yes', 'yes', 'yes']);
  expect(await answered('d', 'no')).toBe('no');
});
